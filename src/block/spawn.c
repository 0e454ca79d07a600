/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Starts a command that is profiled from before its exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/prcb.h>

#include "error.h"

static ssize_t read_again(int fd, void *to, size_t bytes)
{
    ssize_t got;

    do
        got = read(fd, to, bytes);
    while (got < 0 && errno == EINTR);
    return got;
}

/* The child: waits for the go, then becomes the command; an exec that fails sends
 * its errno up the pipe. */
static void run_child(char *const argv[], int go, int failed)
{
    char byte;
    int code;

    if (read_again(go, &byte, 1) != 1)
        _exit(126);
    execvp(argv[0], argv);
    code = errno;
    if (write(failed, &code, sizeof(code)) != sizeof(code))
        _exit(126);
    _exit(code == ENOENT ? 127 : 126);
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Profiles the waiting child and lets it go. 0, or why there is none any more. The go
 * pipe's read end stays open here until then: a child that was killed meanwhile must
 * not make the write a SIGPIPE. */
static int launch(struct prcb *p, char *const argv[], unsigned follow,
                  const struct prcb_spawn_hook *hook, pid_t child, const int go[2], int failed,
                  struct prcb_error *err)
{
    int code, result = p ? prcb_profile_thread(p, child, follow, err) : 0;

    if (!result && hook)
        result = hook->before_exec(child, hook->ctx, err);
    if (!result && write(go[1], "g", 1) != 1)
        result =
            prcb_fail(err, -errno, "%s: the child did not start: %s", argv[0], strerror(errno));
    close(go[0]);
    close(go[1]);
    if (!result && read_again(failed, &code, sizeof(code)) == sizeof(code))
        result = prcb_fail(err, -code, "%s: %s", argv[0],
                           code == ENOENT ? "command not found" : strerror(code));
    close(failed);
    if (result)
        end_child(child);
    return result;
}

int prcb_spawn(struct prcb *p, char *const argv[], unsigned follow, pid_t *ret,
               struct prcb_error *err)
{
    return prcb_spawn_hooked(p, argv, follow, NULL, ret, err);
}

int prcb_spawn_hooked(struct prcb *p, char *const argv[], unsigned follow,
                      const struct prcb_spawn_hook *hook, pid_t *ret, struct prcb_error *err)
{
    int go[2], failed[2], result;
    pid_t child;

    if (!argv || !argv[0])
        return prcb_fail(err, -EINVAL, "there is no command to start: argv is empty");
    if (pipe2(go, O_CLOEXEC))
        return prcb_fail(err, -errno, "pipe: %s", strerror(errno));
    if (pipe2(failed, O_CLOEXEC)) {
        result = prcb_fail(err, -errno, "pipe: %s", strerror(errno));
        close(go[0]);
        close(go[1]);
        return result;
    }
    child = fork();
    if (!child) {
        close(go[1]);
        close(failed[0]);
        run_child(argv, go[0], failed[1]);
    }
    result = child < 0 ? prcb_fail(err, -errno, "fork: %s", strerror(errno)) : 0;
    close(failed[1]);
    if (result) {
        close(go[0]);
        close(go[1]);
        close(failed[0]);
        return result;
    }
    result = launch(p, argv, follow, hook, child, go, failed[0], err);
    if (!result)
        *ret = child;
    return result;
}
