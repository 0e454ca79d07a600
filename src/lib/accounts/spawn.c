/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Starts a command that is profiled from before its exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/prcb.h>

#include "error.h"
#include "sized.h"

static ssize_t read_again(int fd, void *to, size_t bytes)
{
    ssize_t got;

    do
        got = read(fd, to, bytes);
    while (got < 0 && errno == EINTR);
    return got;
}

/* This runs between fork and exec. The child waits at the go pipe, asleep. An account that began
 * there would begin with that wait, which is none of the command's, so the account is made when the
 * child is awake again: it says so on the result pipe, and runs until `released`. */
struct gate {
    int go[2];          /* a byte: go on */
    int result[2];      /* a byte: awake; then the errno of an exec that failed */
    uint32_t *released; /* shared memory */
};

static void wait_for_release(const struct gate *gate, pid_t parent)
{
    /* This pairs with the store in release_child: the account is there. */
    while (!__atomic_load_n(gate->released, __ATOMIC_ACQUIRE)) {
        if (getppid() != parent)
            _exit(126);
        sched_yield(); /* to the parent, should it have no other processor */
    }
}

static void run_child(char *const argv[], const struct gate *gate)
{
    pid_t parent = getppid(); /* 0 where the parent is of another pid namespace */
    char byte;
    int code;

    if (read_again(gate->go[0], &byte, 1) != 1 || write(gate->result[1], "a", 1) != 1)
        _exit(126);
    wait_for_release(gate, parent);
    execvp(argv[0], argv);
    code = errno;
    if (write(gate->result[1], &code, sizeof(code)) != sizeof(code))
        _exit(126);
    _exit(code == ENOENT ? 127 : 126);
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* The go pipe's read end is open here until the end: a child that was killed meanwhile
 * must not make the write a SIGPIPE. */
static int wake_child(char *const argv[], const struct gate *gate, struct prcb_error *err)
{
    char byte;

    if (write(gate->go[1], "g", 1) == 1 && read_again(gate->result[0], &byte, 1) == 1)
        return 0;
    return prcb_fail(err, -ECHILD, "%s: the child did not start: it was killed before its exec",
                     argv[0]);
}

static void release_child(const struct gate *gate)
{
    __atomic_store_n(gate->released, 1, __ATOMIC_RELEASE); /* see wait_for_release */
}

/* Takes the waiting child to its exec. 0, or why there is none any more. */
static int launch(struct prcb *p, char *const argv[], unsigned follow,
                  const struct prcb_spawn_hook *hook, pid_t child, const struct gate *gate,
                  struct prcb_error *err)
{
    int code, result = hook ? hook->before_exec(child, hook->ctx, err) : 0;

    if (!result)
        result = wake_child(argv, gate, err);
    if (!result && p)
        result = prcb_profile_thread(p, child, follow, err);
    if (result) {
        end_child(child);
        return result;
    }
    release_child(gate);
    if (read_again(gate->result[0], &code, sizeof(code)) == sizeof(code)) {
        result = prcb_fail(err, -code, "%s: %s", argv[0],
                           code == ENOENT ? "command not found" : strerror(code));
        end_child(child);
    }
    return result;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_gate(struct gate *gate)
{
    for (int i = 0; i < 2; i++) {
        close_end(&gate->go[i]);
        close_end(&gate->result[i]);
    }
    if (gate->released != MAP_FAILED)
        munmap(gate->released, sizeof(*gate->released));
}

static int open_gate(struct gate *ret, struct prcb_error *err)
{
    struct gate gate = {{-1, -1}, {-1, -1}, MAP_FAILED};
    int result;

    gate.released = mmap(NULL, sizeof(*gate.released), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (gate.released == MAP_FAILED || pipe2(gate.go, O_CLOEXEC) || pipe2(gate.result, O_CLOEXEC)) {
        result = prcb_fail(err, -errno, "a command cannot be started: %s", strerror(errno));
        close_gate(&gate);
        return result;
    }
    *ret = gate;
    return 0;
}

int prcb_spawn(struct prcb *p, char *const argv[], unsigned follow, pid_t *ret,
               struct prcb_error *err)
{
    return prcb_spawn_hooked(p, argv, follow, NULL, ret, err);
}

int prcb_spawn_hooked(struct prcb *p, char *const argv[], unsigned follow,
                      const struct prcb_spawn_hook *hook, pid_t *ret, struct prcb_error *err)
{
    struct prcb_spawn_hook own;
    struct gate gate = {0};
    int result = 0;
    pid_t child;

    if (!argv || !argv[0])
        return prcb_fail(err, -EINVAL, "there is no command to start: argv is empty");
    if (hook)
        result = sized_take_options("prcb_spawn_hook", hook, &own, sizeof(own), err);
    if (!result && hook && !own.before_exec)
        result = prcb_fail(err, -EINVAL, "prcb_spawn_hook: before_exec is not set");
    if (!result)
        result = open_gate(&gate, err);
    if (result)
        return result;
    child = fork();
    if (!child) {
        close_end(&gate.go[1]);
        close_end(&gate.result[0]);
        run_child(argv, &gate);
    }
    if (child < 0) {
        result = prcb_fail(err, -errno, "fork: %s", strerror(errno));
    } else {
        close_end(&gate.result[1]); /* its end is the child's exec, or the child's end */
        result = launch(p, argv, follow, hook ? &own : NULL, child, &gate, err);
    }
    close_gate(&gate);
    if (!result)
        *ret = child;
    return result;
}
