/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcbd: its options and the order of its start and end. prcbd(8) is its manual.
 */
#include <errno.h>
#include <getopt.h>
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
#include "privilege.h"
#include "server.h"
#include "shared.h"

struct options {
    const char *config_file; /* NULL: the default one, which may be missing */
    const char *socket;
    const char *pins;
    const char *user;
    bool check_config, cleanup, verbose, version, help;
};

enum { OPT_CONFIG = 1, OPT_SOCKET, OPT_PINS, OPT_USER, OPT_CHECK, OPT_CLEANUP, OPT_FOREGROUND };

static const struct option long_options[] = {
    {"foreground", no_argument, NULL, OPT_FOREGROUND},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"socket", required_argument, NULL, OPT_SOCKET},
    {"pin-directory", required_argument, NULL, OPT_PINS},
    {"user", required_argument, NULL, OPT_USER},
    {"check-config", no_argument, NULL, OPT_CHECK},
    {"cleanup", no_argument, NULL, OPT_CLEANUP},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static const char usage[] =
    "Usage: prcbd [OPTION]...\n"
    "Lets users profile their own threads: keeps accounts for programs that use libprcb.\n"
    "\n"
    "      --foreground          stay in the foreground, which prcbd always does\n"
    "      --config FILE         read settings from FILE, not " PRCBD_CONFIG_FILE "\n"
    "      --socket PATH         listen on PATH, whatever the settings say\n"
    "      --pin-directory PATH  pin programs and maps in PATH, the same\n"
    "      --user NAME           become this user after the start, the same; '' for none\n"
    "      --check-config        print the settings, or what is wrong with them, and end\n"
    "      --cleanup             end all sessions, remove programs and maps, and end\n"
    "  -v, --verbose             where the kernel refuses a program, its verifier's last lines\n"
    "  -h, --help                this text\n"
    "  -V, --version             the version\n";

static int parse_options(int argc, char **argv, struct options *ret)
{
    int option;

    while ((option = getopt_long(argc, argv, "hvV", long_options, NULL)) != -1) {
        switch (option) {
        case OPT_CONFIG:
            ret->config_file = optarg;
            break;
        case OPT_SOCKET:
            ret->socket = optarg;
            break;
        case OPT_PINS:
            ret->pins = optarg;
            break;
        case OPT_USER:
            ret->user = optarg;
            break;
        case OPT_CHECK:
            ret->check_config = true;
            break;
        case OPT_CLEANUP:
            ret->cleanup = true;
            break;
        case OPT_FOREGROUND:
            break;
        case 'v':
            ret->verbose = true;
            break;
        case 'V':
            ret->version = true;
            break;
        case 'h':
            ret->help = true;
            break;
        default:
            return -EINVAL;
        }
    }
    if (optind < argc) {
        log_line(LOG_LINE_ERROR, "%s: takes no argument", argv[optind]);
        return -EINVAL;
    }
    return 0;
}

/* ---- settings ---- */

static int take_text(char *to, size_t size, const char *from, const char *option)
{
    if (!from)
        return 0;
    if (strlen(from) >= size) {
        log_line(LOG_LINE_ERROR, "%s: %s: too long", option, from);
        return -EINVAL;
    }
    memset(to, 0, size);
    memcpy(to, from, strlen(from));
    return 0;
}

/* *ret_file: the one that was read; NULL: none. */
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
    if (result)
        log_line(LOG_LINE_ERROR, "%s", err.text);
    if (!result)
        result = take_text(ret->socket, sizeof(ret->socket), options->socket, "--socket");
    if (!result)
        result = take_text(ret->pin_directory, sizeof(ret->pin_directory), options->pins,
                           "--pin-directory");
    if (!result)
        result = take_text(ret->user, sizeof(ret->user), options->user, "--user");
    return result;
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

/* Two a session, and one connection may each have. */
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
        log_line(LOG_LINE_WARNING, "no more than %lu descriptors: %s",
                 (unsigned long)limit.rlim_max, strerror(errno));
}

/* The pins are to be removed at the end by who is no longer root. */
static void give_pins(const struct kernel *k, const char *name)
{
    const struct passwd *user = *name ? getpwnam(name) : NULL;

    if (user &&
        (fchown(k->directory, user->pw_uid, (gid_t)-1) || fchown(k->live, user->pw_uid, (gid_t)-1)))
        log_line(LOG_LINE_WARNING, "pins: %s: they will stay at the end", strerror(errno));
}

/* Where there can be none it is said and done without. */
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

/* Sessions that are open stay for the next daemon: a restart must not end them. Without any,
 * nothing stays behind. */
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
    static struct server server; /* at an end with open sessions it keeps what they have */
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
    const char *file;
    struct options options = {0};
    struct prcbd_config config;

    if (parse_options(argc, argv, &options)) {
        fputs("prcbd --help lists the options\n", stderr);
        return 2;
    }
    if (options.help) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    if (options.version) {
        printf("prcbd %s\n", PRCB_VERSION);
        return EXIT_SUCCESS;
    }
    if (read_settings(&options, &config, &file))
        return 2;
    if (options.check_config)
        return print_settings(&config);
    return options.cleanup ? clean_up(&config) : run(&config, file, options.verbose);
}
