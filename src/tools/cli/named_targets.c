/* SPDX-License-Identifier: BSD-2-Clause */
#include "named_targets.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "cgroup_find.h"
#include "container_names.h"

#define MOUNTS "/proc/self/mounts"

/* Adds the cgroups that were found behind the first `before`. */
static int add_found(const struct cli_command *command, struct stat_options *options, size_t before)
{
    for (size_t i = before; i < options->found.count; i++) {
        if (array_append(options->cgroups, options->cgroup_count, options->found.paths[i]))
            return cli_error(command, "out of memory");
    }
    return CLI_OK;
}

static int add_wanted(struct cli_parser *parser, struct stat_options *options,
                      enum cgroup_wanted wanted, const char *name)
{
    size_t before = options->found.count;
    int result = cgroup_find(MOUNTS, wanted, name, &options->found);

    if (result == -ENOENT)
        return cli_error(parser->command, "--%s %s: no cgroup of it was found",
                         parser->option->name, parser->value);
    if (result)
        return cli_error(parser->command, "--%s %s: %s", parser->option->name, parser->value,
                         strerror(-result));
    if (wanted == CGROUP_BY_CONTAINER && options->found.count > before + 1)
        return cli_usage_error(parser->command,
                               "--container '%s': the ids of %zu containers begin so",
                               parser->value, options->found.count - before);
    return add_found(parser->command, options, before);
}

int stat_options_take_unit(struct cli_parser *parser, void *target)
{
    return add_wanted(parser, target, CGROUP_BY_UNIT, parser->value);
}

int stat_options_take_container(struct cli_parser *parser, void *target)
{
    char id[65];
    bool named = container_id_by_name("", parser->value, id);

    return add_wanted(parser, target, CGROUP_BY_CONTAINER, named ? id : parser->value);
}

int stat_options_take_pod(struct cli_parser *parser, void *target)
{
    char uid[37];
    bool named = pod_uid_by_name("", parser->value, uid);

    return add_wanted(parser, target, CGROUP_BY_POD, named ? uid : parser->value);
}

static enum named_word add_cgroup(const struct cli_command *command, const char *path,
                                  struct stat_options *options)
{
    size_t before = options->found.count;
    char procs[4096];
    int result;

    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    result = access(procs, F_OK) ? cgroup_find(MOUNTS, CGROUP_BY_PATH, path, &options->found)
                                 : cgroup_list_add(&options->found, path);
    if (result == -ENOENT)
        return NAMED_NOTHING;
    if (result)
        return cli_error(command, "%s: %s", path, strerror(-result)), NAMED_FAILED;
    return add_found(command, options, before) == CLI_OK ? NAMED_TARGET : NAMED_FAILED;
}

enum named_word named_target_add(const struct cli_command *command, const char *word,
                                 struct stat_options *options)
{
    struct prcb_error err;
    int found;

    if (*word == '/')
        return add_cgroup(command, word, options);
    found = cli_add_process(word, &options->pids, &err);
    if (found == -ENOMEM)
        return cli_error(command, "out of memory"), NAMED_FAILED;
    if (found < 0 && found != -EINVAL)
        return cli_error(command, "'%s': %s", word, err.text), NAMED_FAILED;
    return found > 0 ? NAMED_TARGET : NAMED_NOTHING;
}
