/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a sandbox's child may not do, tried by the child itself; its messages and its end.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child_end.h"
#include "now.h"
#include "sandbox.h"
#include "sanitized.h"

#define MEMORY (512u << 20)

static const struct sandbox_limits limits = {.memory = MEMORY, .files = 128};

/* ---- attempts: each returns errno, 0 when it succeeded -------------------------------- */

static int try_open(void)
{
    return open("/etc/passwd", O_RDONLY) < 0 ? errno : 0;
}

static int try_write_file(void)
{
    return syscall(SYS_openat, AT_FDCWD, "/tmp/sandbox-was-here", O_CREAT | O_WRONLY, 0600) < 0
               ? errno
               : 0;
}

static int try_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0;
}

static int try_fork(void)
{
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

    if (!child)
        _exit(0);
    return child < 0 ? errno : 0;
}

static int try_exec(void)
{
    char *argv[] = {(char *)(uintptr_t) "true", NULL};

    execve("/bin/true", argv, argv + 1);
    return errno;
}

static int try_kill(void)
{
    return kill(getppid(), 0) ? errno : 0;
}

/* The kernel would signal whom it names when the other end sends something. */
static int try_signal_by_socket(void)
{
    return fcntl(3, F_SETOWN, getppid()) ? errno : 0;
}

static int try_set_signal(void)
{
    return fcntl(3, F_SETSIG, SIGKILL) ? errno : 0;
}

static int try_lock(void)
{
    struct flock lock = {.l_type = F_RDLCK};

    return fcntl(3, F_SETLK, &lock) && errno == ENOSYS ? ENOSYS : 0;
}

static int try_look_at_path(void)
{
    struct stat about;

    return fstatat(AT_FDCWD, "/etc/passwd", &about, 0) ? errno : 0;
}

static int try_ptrace(void)
{
    return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) ? errno : 0;
}

static int try_become_root(void)
{
    return setuid(0) ? errno : 0;
}

static int try_memory(void)
{
    void *room = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return room == MAP_FAILED ? errno : 0;
}

static const struct {
    const char *name;
    int (*act)(void);
} attempts[] = {
    {"open a file", try_open},
    {"make a file", try_write_file},
    {"make a socket", try_socket},
    {"fork", try_fork},
    {"exec", try_exec},
    {"signal its parent", try_kill},
    {"have the kernel signal its parent", try_signal_by_socket},
    {"choose that signal", try_set_signal},
    {"lock a file", try_lock},
    {"look at a path", try_look_at_path},
    {"trace its parent", try_ptrace},
    {"become root", try_become_root},
    {"more memory than it may have", try_memory},
};
#define ATTEMPTS (sizeof(attempts) / sizeof(*attempts))

/* A number asks for an attempt; the rest for what their name says. */
enum { ASK_LOOP = 100, ASK_EXIT, ASK_ALARM, ASK_READ, ASK_MANY_FDS, ASK_STRAY };

static int serve(int socket, void *ctx)
{
    uint32_t *shared = ctx, ask;
    int fds[2];
    size_t count;

    while (sandbox_receive(socket, &ask, sizeof(ask), fds, 2, &count, -1) == sizeof(ask)) {
        int answer[3] = {0};

        if (ask < ATTEMPTS)
            answer[0] = attempts[ask].act();
        else if (ask == ASK_EXIT)
            return 7;
        else if (ask == ASK_LOOP || ask == ASK_ALARM) {
            if (ask == ASK_ALARM)
                sandbox_alarm(1);
            for (;;) {
                *shared += 1;
                poll(NULL, 0, 1);
            }
        } else if (ask == ASK_READ)
            answer[0] = read(fds[0], answer + 1, 4) == 4 ? 0 : errno;
        else if (ask == ASK_MANY_FDS)
            answer[0] = (int)count;
        else if (ask == ASK_STRAY)
            for (int fd = 4; fd < 64; fd++)
                answer[0] += fcntl(fd, F_GETFD) >= 0;
        while (count)
            close(fds[--count]);
        if (sandbox_send(socket, answer, sizeof(answer), NULL, 0))
            break;
    }
    return 0;
}

static uint32_t *shared;

static void start(struct sandbox *ret)
{
    struct prcb_error err;

    if (sandbox_start(&limits, serve, shared, ret, &err))
        fail_msg("%s", err.text);
}

static void ask_with(struct sandbox *s, uint32_t ask, const int *fds, size_t fd_count,
                     int answer[3])
{
    assert_int_equal(sandbox_send(s->socket, &ask, sizeof(ask), fds, fd_count), 0);
    assert_int_equal(sandbox_receive(s->socket, answer, 3 * sizeof(int), NULL, 0, NULL, 20000),
                     3 * sizeof(int));
}

static void test_what_it_may_not_do(void **state)
{
    struct sandbox s;
    int answer[3];

    if (SANITIZED)
        skip();
    start(&s);
    for (uint32_t i = 0; i < ATTEMPTS; i++) {
        ask_with(&s, i, NULL, 0, answer);
        if (!answer[0])
            fail_msg("it may %s", attempts[i].name);
    }
    sandbox_stop(&s);
    assert_int_equal(access("/tmp/sandbox-was-here", F_OK), -1);
}

/* A line of the child's status, as the kernel tells it. */
static void status_line(const struct sandbox *s, const char *name, char *ret, size_t size)
{
    char path[64], line[512];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", s->pid);
    file = fopen(path, "re");
    assert_non_null(file);
    *ret = '\0';
    while (fgets(line, sizeof(line), file)) {
        if (!strncmp(line, name, strlen(name)))
            snprintf(ret, size, "%s", line + strlen(name));
    }
    fclose(file);
}

static void test_it_has_no_rights(void **state)
{
    static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};
    unsigned ids[4] = {0};
    struct sandbox s;
    char line[512];

    start(&s);
    status_line(&s, "Uid:", line, sizeof(line));
    assert_int_equal(sscanf(line, "%u %u %u %u", ids, ids + 1, ids + 2, ids + 3), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ids[i], ids[0]);
    if (geteuid())
        assert_int_equal(ids[0], geteuid());
    else if (ids[0] != 65534) /* of a user namespace that has no more users */
        assert_in_range(ids[0], 0x7fff0000, 0x7fffffff);
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
        status_line(&s, sets[i], line, sizeof(line));
        assert_int_equal(strtoull(line, NULL, 16), 0);
    }
    status_line(&s, "NoNewPrivs:", line, sizeof(line));
    assert_int_equal(atoi(line), 1);
    status_line(&s, "Seccomp:", line, sizeof(line));
    assert_int_equal(atoi(line), SANITIZED ? 0 : 2);
    sandbox_stop(&s);
}

static void test_nothing_is_inherited(void **state)
{
    int secret = open("/dev/null", O_RDONLY), answer[3]; /* without O_CLOEXEC */
    struct sandbox s;

    start(&s);
    ask_with(&s, ASK_STRAY, NULL, 0, answer);
    sandbox_stop(&s);
    close(secret);
    assert_int_equal(answer[0], 0);
}

static void test_descriptors_arrive(void **state)
{
    struct sandbox s;
    int answer[3], pipes[2];

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(write(pipes[1], "four", 4), 4);
    start(&s);
    ask_with(&s, ASK_READ, pipes, 1, answer);
    assert_int_equal(answer[0], 0);
    assert_memory_equal(answer + 1, "four", 4);
    /* More than there is room for: the rest is closed, not leaked. */
    for (int i = 0; i < 200; i++) {
        int many[4] = {pipes[0], pipes[0], pipes[0], pipes[0]};

        ask_with(&s, ASK_MANY_FDS, many, 4, answer);
        assert_int_equal(answer[0], 2);
    }
    sandbox_stop(&s);
    close(pipes[0]);
    close(pipes[1]);
}

static void test_an_end_is_seen(void **state)
{
    struct sandbox s;
    uint32_t ask = ASK_EXIT;
    int answer[3];

    start(&s);
    assert_int_equal(sandbox_send(s.socket, &ask, sizeof(ask), NULL, 0), 0);
    assert_int_equal(sandbox_receive(s.socket, answer, sizeof(answer), NULL, 0, NULL, 20000),
                     -EPIPE);
    assert_int_equal(sandbox_send(s.socket, &ask, sizeof(ask), NULL, 0), -EPIPE);
    sandbox_stop(&s);
    sandbox_stop(&s); /* nothing */
}

static void test_one_that_does_not_answer_is_stopped(void **state)
{
    struct sandbox s;
    uint32_t ask = ASK_LOOP, before;
    int answer[3];

    start(&s);
    assert_int_equal(sandbox_send(s.socket, &ask, sizeof(ask), NULL, 0), 0);
    assert_int_equal(sandbox_receive(s.socket, answer, sizeof(answer), NULL, 0, NULL, 50),
                     -ETIMEDOUT);
    sandbox_stop(&s);
    before = *(volatile uint32_t *)shared;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(*(volatile uint32_t *)shared, before);
}

/* Its parent is not held up by what it sends, either. */
static void test_one_that_takes_nothing(void **state)
{
    uint32_t ask = ASK_LOOP;
    struct sandbox s;
    int result;

    start(&s);
    do
        result = sandbox_send(s.socket, &ask, sizeof(ask), NULL, 0);
    while (!result);
    sandbox_stop(&s);
    assert_int_equal(result, -ETIMEDOUT);
}

static void test_it_ends_by_itself_when_told_to(void **state)
{
    struct sandbox s;
    uint32_t ask = ASK_ALARM;
    int answer[3];

    start(&s);
    assert_int_equal(sandbox_send(s.socket, &ask, sizeof(ask), NULL, 0), 0);
    assert_int_equal(sandbox_receive(s.socket, answer, sizeof(answer), NULL, 0, NULL, 60000),
                     -EPIPE);
    assert_true(sandbox_cpu_ns(&s) > 0);
    sandbox_stop(&s);
    assert_int_equal(sandbox_cpu_ns(&s), 0);
}

static void test_too_long_a_message(void **state)
{
    struct sandbox s;
    uint32_t ask = ASK_STRAY;
    int answer;

    start(&s);
    assert_int_equal(sandbox_send(s.socket, &ask, sizeof(ask), NULL, 0), 0);
    assert_int_equal(sandbox_receive(s.socket, &answer, sizeof(answer), NULL, 0, NULL, 20000),
                     -EMSGSIZE);
    sandbox_stop(&s);
}

/* One that goes on is left, and reaped once it has ended. */
static void test_end_of_a_child(void **state)
{
    uint64_t deadline = now_ns() + 60000000000ull;
    pid_t pid = fork();
    int status = 0;

    (void)state;
    if (!pid)
        _exit(pause());
    assert_true(pid > 0);
    assert_int_equal(children_left(), 0);
    assert_false(child_end(pid, 10, &status));
    assert_int_equal(children_left(), 1);
    kill(pid, SIGKILL);
    while (children_left())
        assert_true(now_ns() < deadline);
    assert_int_equal(kill(pid, 0), -1);
    pid = fork();
    if (!pid)
        _exit(3);
    assert_true(child_end(pid, 60000, &status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_may_not_do),
        cmocka_unit_test(test_it_has_no_rights),
        cmocka_unit_test(test_nothing_is_inherited),
        cmocka_unit_test(test_descriptors_arrive),
        cmocka_unit_test(test_an_end_is_seen),
        cmocka_unit_test(test_one_that_does_not_answer_is_stopped),
        cmocka_unit_test(test_one_that_takes_nothing),
        cmocka_unit_test(test_it_ends_by_itself_when_told_to),
        cmocka_unit_test(test_too_long_a_message),
        cmocka_unit_test(test_end_of_a_child),
    };

    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
