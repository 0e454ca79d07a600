/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[32], pins[64], config[64], address[64];
static pid_t running;

static pid_t run(const char *option)
{
    const char *program;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    program = getenv("PRCBD"); /* where it is elsewhere than in the build */
    if (!program)
        program = access(PRCBD, X_OK) ? "prcbd" : PRCBD; /* a guest has no build */
    execlp(program, "prcbd", "--config", config, "--socket", address, "--pin-directory", pins,
           "--user", getpwnam("nobody") ? "nobody" : "", option, NULL);
    _exit(127);
}

static bool serves(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ret;

    memcpy(to.sun_path, address, strlen(address) + 1);
    ret = !connect(fd, (const struct sockaddr *)&to, sizeof(to));
    close(fd);
    return ret;
}

void daemon_again(void)
{
    struct prcb_error err = {0};
    struct prcb *p = NULL;

    running = run(NULL);
    assert_true(running > 0);
    if (!wait_for(serves() || waitpid(running, NULL, WNOHANG) == running))
        fail_msg("prcbd does not serve");
    assert_true(serves());
    /* It listens before it has loaded its programs, which an emulated machine takes long
     * for, and a busy one. */
    for (unsigned i = 0; !p && i < 6 * slowness(); i++)
        p = daemon_session(1, &err);
    if (!p)
        fail_msg("prcbd does not serve: %s", err.text);
    prcb_close(p);
}

void daemon_kill(void)
{
    kill(running, SIGKILL);
    while (waitpid(running, NULL, 0) < 0 && errno == EINTR)
        ;
    running = 0;
}

int daemon_clean(void)
{
    int status = -1;
    pid_t child = run("--cleanup");

    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Ends it and removes everything. */
static int stop_daemon(void)
{
    int result;

    if (!folder[0])
        return 0;
    if (running)
        daemon_kill();
    result = daemon_clean();
    unlink(config);
    unlink(address);
    rmdir(folder);
    folder[0] = '\0';
    unsetenv("PRCB_SOCKET");
    return result;
}

int daemon_end(void **state)
{
    int result = state ? test_end(state) : 0;

    return result | stop_daemon();
}

/* Where users may load BPF programs prcbd would not start: the tests are not about that. */
static bool unprivileged_bpf(void)
{
    FILE *in = fopen("/proc/sys/kernel/unprivileged_bpf_disabled", "re");
    int first = in ? fgetc(in) : EOF;

    if (in)
        fclose(in);
    return first == '0';
}

void daemon_configure(const char *settings)
{
    FILE *out = fopen(config, "we");

    assert_non_null(out);
    fputs(settings, out);
    if (unprivileged_bpf())
        fputs("allow_unprivileged_bpf = yes\n", out);
    assert_int_equal(fclose(out), 0);
}

void daemon_detach(const char *program)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/live/link_%s", pins, program);
    assert_int_equal(unlink(path), 0);
}

bool daemon_has_attached(const char *program)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/live/link_%s", pins, program);
    return !access(path, F_OK);
}

void daemon_start(const char *settings)
{
    stop_daemon();
    snprintf(folder, sizeof(folder), "/tmp/prcbd-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(pins, sizeof(pins), "/sys/fs/bpf/%s", folder + 5);
    snprintf(config, sizeof(config), "%s/conf", folder);
    snprintf(address, sizeof(address), "%s/socket", folder);
    daemon_configure(settings);
    setenv("PRCB_SOCKET", address, 1);
    daemon_again();
}

void daemon_shared(void)
{
    if (!folder[0])
        daemon_start("");
}

void become(unsigned uid)
{
    if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
        _exit(120);
    /* Such a process is one that others may not look into until it execs. */
    prctl(PR_SET_DUMPABLE, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

struct prcb *daemon_session(uint32_t max_threads, struct prcb_error *ret)
{
    struct prcb_options options = {
        .size = sizeof(options), .tier = PRCB_TIER_DAEMON, .max_threads = max_threads};
    struct prcb *p = NULL;

    prcb_open(&options, &p, ret);
    return p;
}
