/* SPDX-License-Identifier: BSD-2-Clause */
#include "named_targets.h"

#include <errno.h>
#include <stdlib.h>
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

/* Says that no cgroup is called so. id: the one that files of root's have for the name; NULL: none
 */
static int not_found(const struct cli_parser *parser, enum cgroup_wanted wanted, const char *id)
{
    const char *option = parser->option->name, *name = parser->value;

    if (wanted == CGROUP_BY_UNIT)
        return cli_error(parser->command,
                         "--%s '%s': no unit of this name runs: no cgroup is called so, with "
                         ".service or without",
                         option, name);
    if (id)
        return cli_error(parser->command,
                         "--%s '%s': it does not run, or has no cgroup of its own: there is none "
                         "for %.12s",
                         option, name, id);
    return cli_error(parser->command, "--%s '%s': no %s runs that has this name, or %s%s", option,
                     name, option, wanted == CGROUP_BY_POD ? "this uid" : "an id that begins so",
                     geteuid() ? "; names are in files of root's, so give the id" : "");
}

/* id: what the name was found to mean; NULL: the name is asked for itself. */
static int add_wanted(struct cli_parser *parser, struct stat_options *options,
                      enum cgroup_wanted wanted, const char *id)
{
    size_t before = options->found.count;
    int result = cgroup_find(MOUNTS, wanted, id ? id : parser->value, &options->found);

    if (result == -ENOENT)
        return not_found(parser, wanted, id);
    if (result)
        return cli_error(parser->command, "--%s '%s': %s", parser->option->name, parser->value,
                         strerror(-result));
    if (wanted == CGROUP_BY_CONTAINER && options->found.count > before + 1)
        return cli_usage_error(parser->command,
                               "--container '%s': the ids of %zu containers begin so",
                               parser->value, options->found.count - before);
    return add_found(parser->command, options, before);
}

int stat_options_take_unit(struct cli_parser *parser, void *target)
{
    return add_wanted(parser, target, CGROUP_BY_UNIT, NULL);
}

int stat_options_take_container(struct cli_parser *parser, void *target)
{
    char id[65];
    bool named = container_id_by_name("", parser->value, id);

    return add_wanted(parser, target, CGROUP_BY_CONTAINER, named ? id : NULL);
}

int stat_options_take_pod(struct cli_parser *parser, void *target)
{
    char uid[37];
    bool named = pod_uid_by_name("", parser->value, uid);

    return add_wanted(parser, target, CGROUP_BY_POD, named ? uid : NULL);
}

static enum named_word take_found(const struct cli_command *command, const char *word, int result,
                                  size_t before, struct stat_options *options)
{
    if (result == -ENOENT)
        return NAMED_NOTHING;
    if (result)
        return cli_error(command, "'%s': %s", word, strerror(-result)), NAMED_FAILED;
    return add_found(command, options, before) == CLI_OK ? NAMED_TARGET : NAMED_FAILED;
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
    return take_found(command, path, result, before, options);
}

/* A unit, or else a container, that has the whole name. */
static enum named_word add_unit(const struct cli_command *command, const char *name,
                                struct stat_options *options)
{
    size_t before = options->found.count;
    int result = cgroup_find(MOUNTS, CGROUP_BY_UNIT, name, &options->found);
    char id[65];

    if (result == -ENOENT)
        result = container_id_by_name("", name, id)
                     ? cgroup_find(MOUNTS, CGROUP_BY_CONTAINER, id, &options->found)
                     : cgroup_find(MOUNTS, CGROUP_BY_MACHINE, name, &options->found);
    return take_found(command, name, result, before, options);
}

/* Adds processes by numbers and names with commas between them. None is left out in silence. */
static enum named_word add_list(const struct cli_command *command, const char *list,
                                struct stat_options *options)
{
    char *copy = strdup(list), *at = copy, *word;
    struct prcb_error err;
    int found = copy ? 1 : -ENOMEM;

    while (found > 0 && (word = strsep(&at, ",")))
        found = cli_add_process(word, &options->pids, &err);
    if (found == -ENOMEM)
        cli_error(command, "out of memory");
    else if (found < 0 && found != -EINVAL)
        cli_error(command, "'%s': %s", list, err.text);
    else if (found <= 0)
        cli_error(command, "'%s': no process is called '%s'", list, word);
    free(copy);
    return found > 0 ? NAMED_TARGET : NAMED_FAILED;
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
    if (found <= 0 && strchr(word, ',')) {
        options->below = true;
        return add_list(command, word, options);
    }
    options->below |= found > 0;
    return found > 0 ? NAMED_TARGET : add_unit(command, word, options);
}
