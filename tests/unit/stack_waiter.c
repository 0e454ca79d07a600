/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Waits, in the way its argument names, below outer() > middle() > inner(), which keep their
 * frames in different ways. Says "PID TID" first. It ends when its standard input does, for
 * whoever started it may be gone.
 */
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define HARD __attribute__((noinline))
#else
#define HARD __attribute__((noinline, noclone))
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int pipes[2];

static void by_sleep(void)
{
    nanosleep(&(struct timespec){1000, 0}, NULL);
}

static void by_mutex(void)
{
    pthread_mutex_lock(&mutex);
}

static void by_condition(void)
{
    pthread_cond_wait(&cond, &mutex);
}

static void by_pipe(void)
{
    char byte;

    if (read(pipes[0], &byte, 1) < 0)
        abort();
}

static void by_poll(void)
{
    poll(NULL, 0, -1);
}

static void by_semaphore(void)
{
    static sem_t semaphore;

    sem_wait(&semaphore);
}

/* ppoll, by a function that calls no other and has no frame, as the C library makes it where a
 * thread can be cancelled: on arm64 the address that it returns to is in a register alone. */
long leaf_ppoll(void *list, long count, void *limit, void *mask, long bytes);
__asm__(".text\n"
        ".balign 16\n"
        ".hidden leaf_ppoll\n"
        ".type leaf_ppoll, %function\n"
        "leaf_ppoll:\n"
        ".cfi_startproc\n"
#if defined(__aarch64__)
        "mov x8, #73\n"
        "svc #0\n"
        "ret\n"
#else
        "mov %rcx, %r10\n"
        "mov $271, %eax\n"
        "syscall\n"
        "ret\n"
#endif
        ".cfi_endproc\n"
        ".size leaf_ppoll, . - leaf_ppoll\n");

static void by_leaf(void)
{
    if (leaf_ppoll(NULL, 0, NULL, NULL, 0) >= 0)
        abort();
}

/* The cause names the device; where in the kernel only the kernel's frames tell. */
static void by_terminal(void)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), user;
    char byte;

    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal))
        abort();
    user = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    if (user < 0 || read(user, &byte, 1) < 0)
        abort();
}

/* Where libuv's event loop waits, by name. */
HARD static void uv__io_poll(void)
{
    if (poll(NULL, 0, -1) < 0)
        abort();
}

static void by_event_loop(void)
{
    uv__io_poll();
}

volatile int sink;

/* Its frame is found by the frame pointer alone, which the C library's wait does not save; what
 * lies in it looks like the frame of somebody that it did not call. */
HARD static int hold(size_t words, const uintptr_t decoy[2])
{
    volatile uintptr_t *room = alloca(words * sizeof(*room));

    for (size_t i = 0; i < words; i++)
        room[i] = decoy[i % 2];
    return poll(NULL, 0, -1) + (int)room[0] + sink;
}

HARD static void by_dynamic(void)
{
    const uintptr_t decoy[2] = {(uintptr_t)__builtin_frame_address(0),
                                (uintptr_t)__builtin_return_address(0)};

    sink += hold(64, decoy);
}

static const struct {
    const char *name;
    void (*wait)(void);
} ways[] = {
    {"event-loop", by_event_loop},
    {"sleep", by_sleep},
    {"mutex", by_mutex},
    {"condition", by_condition},
    {"pipe", by_pipe},
    {"poll", by_poll},
    {"semaphore", by_semaphore},
    {"terminal", by_terminal},
    {"dynamic", by_dynamic},
    {"leaf", by_leaf},
};

size_t deep; /* bytes of stack between outer and middle */

HARD int inner(void (*wait)(void));
HARD int middle(void (*wait)(void), size_t bytes);
HARD int outer(void (*wait)(void));

HARD int inner(void (*wait)(void))
{
    printf("%d %ld\n", getpid(), syscall(SYS_gettid));
    fflush(stdout);
    wait();
    return sink + 1;
}

/* Its frame is of a size that only the run tells: it is found by a register. */
HARD int middle(void (*wait)(void), size_t bytes)
{
    volatile char *room = alloca(bytes);

    room[0] = 1;
    room[bytes - 1] = 2;
    return inner(wait) + room[0] + sink;
}

HARD int outer(void (*wait)(void))
{
    return middle(wait, 64 + deep) + sink;
}

static void *run(void *wait)
{
    outer((void (*)(void))(uintptr_t)wait);
    return NULL;
}

int main(int argc, char **argv)
{
    void (*wait)(void) = NULL;
    pthread_t thread;
    char byte;

    for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(*ways); i++) {
        if (!strcmp(argv[1], ways[i].name))
            wait = ways[i].wait;
    }
    if (!wait || pipe(pipes))
        return 2;
    deep = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    pthread_mutex_lock(&mutex);
    if (pthread_create(&thread, NULL, run, (void *)(uintptr_t)wait))
        return 2;
    return read(0, &byte, 1) < 0;
}
