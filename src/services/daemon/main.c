/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcbd: its options and the order of its start and end. prcbd(8) is its manual.
 */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf_load.h"
#include "filter.h"
#include "listen.h"
#include "log.h"
#include "options.h"
#include "privilege.h"
#include "server.h"
#include "shared.h"

struct options {
    const char *config_file; /* NULL: the default one, which may be missing */
    const char *socket;
    const char *pins;
    const char *user;
    bool check_config, cleanup, verbose, foreground;
};

#define AT(member) .at = offsetof(struct options, member)
/* clang-format off */
static const struct cli_option rows[] = {
    {0, "foreground", NULL, "stay in the foreground, which prcbd always does", AT(foreground)},
    {0, "config", "FILE", "read settings from FILE, not " PRCBD_CONFIG_FILE, .kind = CLI_TEXT, AT(config_file),
     .what = "the file name is empty"},
    {0, "socket", "PATH", "listen on PATH, whatever the settings say", .kind = CLI_TEXT, AT(socket),
     .max = PRCBD_PATH_SIZE - 1, .what = "the path is empty"},
    {0, "pin-directory", "PATH", "pin programs and maps in PATH, the same", .kind = CLI_TEXT, AT(pins),
     .max = PRCBD_PATH_SIZE - 1, .what = "the path is empty"},
    {0, "user", "NAME", "become this user after the start, the same; '' for none", .kind = CLI_TEXT, AT(user),
     .max = PRCBD_NAME_SIZE - 1},
    {0, "check-config", NULL, "print the settings, or what is wrong with them, and end", AT(check_config)},
    {0, "cleanup", NULL, "end all sessions, remove programs and maps, and end", AT(cleanup)},
    {'v', "verbose", NULL, "where the kernel refuses a program, its verifier's last lines", AT(verbose)},
    {0},
};
/* clang-format on */

static const struct cli_command command = {
    .program = "prcbd",
    .synopsis = "[options]",
    .description =
        "Lets users profile their own threads: keeps accounts for programs that use libprcb.",
    .options = rows,
    .manual = "prcbd(8)",
};

/* ---- settings ---- */

/* The option's row made sure that the text fits. */
static void take_text(char *to, size_t size, const char *from)
{
    if (from) {
        memset(to, 0, size);
        memcpy(to, from, strlen(from));
    }
}

/* *ret_file: the file that was read; NULL: none. */
static int read_settings(const struct options *options, struct prcbd_config *ret,
                         const char **ret_file)
{
    const char *file = options->config_file ? options->config_file : PRCBD_CONFIG_FILE;
    struct prcb_error err = {0};
    int result = prcbd_config_load(file, ret, &err);

    *ret_file = file;
    if (result == -ENOENT && !options->config_file) {
        prcbd_config_default(ret);
        *ret_file = NULL;
        result = 0;
    }
    if (result) {
        log_line(LOG_LINE_ERROR, "%s", err.text);
        return result;
    }
    take_text(ret->socket, sizeof(ret->socket), options->socket);
    take_text(ret->pin_directory, sizeof(ret->pin_directory), options->pins);
    take_text(ret->user, sizeof(ret->user), options->user);
    return 0;
}

static int print_settings(const struct prcbd_config *config)
{
    char text[8192];

    prcbd_config_write(config, false, text, sizeof(text));
    fputs(text, stdout);
    return EXIT_SUCCESS;
}

/* ---- start ---- */

static void told(const char *line)
{
    log_line(LOG_LINE_NOTICE, "%s", line);
}

/* A session may have two descriptors, and each connection has one. */
static void raise_limits(const struct prcbd_config *config)
{
    struct rlimit limit;
    rlim_t want = config->connections_total + 2 * PRCB_CLIENT_COUNT + 128;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= want)
        return;
    limit.rlim_cur = want;
    if (limit.rlim_max < want)
        limit.rlim_max = want;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        log_line(LOG_LINE_WARNING, "prcbd is limited to %lu descriptors: %s",
                 (unsigned long)limit.rlim_max, strerror(errno));
}

/* Gives the pins to the user who removes them at the end, when prcbd is no longer root. */
static void give_pins(const struct kernel *k, const char *name)
{
    const struct passwd *user = *name ? getpwnam(name) : NULL;

    if (user &&
        (fchown(k->directory, user->pw_uid, (gid_t)-1) || fchown(k->live, user->pw_uid, (gid_t)-1)))
        log_line(LOG_LINE_WARNING, "the pins stay when prcbd ends: %s", strerror(errno));
}

/* Where no filter is possible prcbd says so and runs without it. */
static int filter(struct prcb_error *err)
{
    int result = filter_install(err);

    if (result != -EOPNOTSUPP)
        return result;
    log_line(LOG_LINE_NOTICE, "%s", err->text);
    return 0;
}

static int start(struct server *s, struct kernel *k, bool *ret_own_socket)
{
    struct prcb_error err = {0};
    int result;

    raise_limits(s->config);
    result = s->config->allow_unprivileged_bpf ? 0 : privilege_check_bpf(&err);
    if (!result)
        result = peer_find_groups(s->config, &s->groups, &err);
    if (!result) {
        s->listener = listen_open(s->config, ret_own_socket, &err);
        result = s->listener < 0 ? s->listener : 0;
    }
    if (!result)
        result = kernel_open(k, s->config->pin_directory, s->config->interrupted, told, &err);
    if (!result) {
        sessions_start(s->sessions, k, s->config);
        shared_take_over(s->sessions);
        give_pins(k, s->config->user);
        result = privilege_drop(s->config->user, &err);
    }
    if (!result)
        result = server_start(s, &err);
    if (!result && s->config->system_call_filter)
        result = filter(&err);
    if (result)
        log_line(LOG_LINE_ERROR, "%s", err.text);
    return result;
}

/* ---- end ---- */

/* Open sessions stay for the next daemon: a restart must not end them. Without any, nothing
 * stays behind. */
static void finish(struct server *s, struct kernel *k, bool own_socket)
{
    uint32_t open;

    listen_notify("STOPPING=1");
    server_settle(s);
    open = s->sessions->used + s->sessions->waiting;
    if (open) {
        log_line(
            LOG_LINE_NOTICE,
            "%u sessions continue without a daemon until the next one starts; prcbd --cleanup ends "
            "them",
            open);
        kernel_close(k);
    } else {
        kernel_end(k);
    }
    if (own_socket)
        listen_remove(s->config);
}

static int run(const struct prcbd_config *config, const char *file, bool verbose)
{
    static struct prcbd_config settings;
    static struct sessions sessions;
    static struct kernel kernel;
    static struct server server; /* if sessions are open at the end, it keeps what they have */
    struct prcb_error err = {0};
    bool own_socket = false;
    int result;

    settings = *config;
    server = (struct server){
        .kernel = &kernel, .sessions = &sessions, .config = &settings, .config_file = file};
    result = start(&server, &kernel, &own_socket);
    if (result && verbose && bpf_last_log())
        fprintf(stderr, "the verifier's last lines:\n%s", bpf_last_log());
    if (result)
        return EXIT_FAILURE;
    log_line(LOG_LINE_NOTICE, "%s serves %s", PRCB_VERSION,
             own_socket ? settings.socket : "the socket of systemd");
    listen_notify("READY=1");
    result = server_run(&server, &err);
    if (result)
        log_line(LOG_LINE_ERROR, "%s", err.text);
    finish(&server, &kernel, own_socket);
    return result ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int clean_up(const struct prcbd_config *config)
{
    struct prcb_error err = {0};
    int result = kernel_cleanup(config->pin_directory, &err);

    if (result)
        log_line(LOG_LINE_ERROR, "%s", err.text);
    return result ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct cli_parser parser = {.command = &command, .argc = argc, .argv = argv};
    const char *file;
    struct options options = {0};
    struct prcbd_config config;
    int status;

    if (cli_take_options(&parser, &options, &status))
        return status;
    if (read_settings(&options, &config, &file))
        return CLI_USAGE;
    if (options.check_config)
        return print_settings(&config);
    return options.cleanup ? clean_up(&config) : run(&config, file, options.verbose);
}
