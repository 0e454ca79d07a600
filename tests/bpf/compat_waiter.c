/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A 32-bit x86 program that waits: compat_waiter WAIT ROUNDS MILLISECONDS. Stops
 * itself, makes the rounds, stops itself again and exits. Without a C library, so
 * that it is built and runs on a machine that has none of 32 bits. Exit status 2:
 * no such wait; 3: a call did not do what it should.
 */
#include <asm/unistd_32.h>

#define EAGAIN    11
#define ETIMEDOUT 110
#define SIGSTOP   19

struct time32 {
    long seconds, part; /* timespec and timeval */
};

struct time64 {
    long long seconds, nanoseconds;
};

int syscall6(int number, ...);
__attribute__((noreturn, used)) void begin(const int *stack);

__asm__(".globl _start\n"
        "_start:\n"
        "    mov %esp, %eax\n"
        "    and $-16, %esp\n"
        "    sub $12, %esp\n"
        "    push %eax\n"
        "    call begin\n"
        ".globl syscall6\n"
        "syscall6:\n"
        "    push %ebp\n"
        "    push %edi\n"
        "    push %esi\n"
        "    push %ebx\n"
        "    mov 20(%esp), %eax\n"
        "    mov 24(%esp), %ebx\n"
        "    mov 28(%esp), %ecx\n"
        "    mov 32(%esp), %edx\n"
        "    mov 36(%esp), %esi\n"
        "    mov 40(%esp), %edi\n"
        "    mov 44(%esp), %ebp\n"
        "    int $0x80\n"
        "    pop %ebx\n"
        "    pop %esi\n"
        "    pop %edi\n"
        "    pop %ebp\n"
        "    ret\n"
        ".section .note.GNU-stack, \"\", @progbits\n"
        ".text\n");

/* Always six arguments, as syscall6 reads them. */
#define CALL_(number, a, b, c, d, e, f, ...) syscall6(number, a, b, c, d, e, f)
#define CALL(...)                            CALL_(__VA_ARGS__, 0, 0, 0, 0, 0, 0)

static int milliseconds;
static struct time32 nano32, micro32;
static struct time64 nano64;
static int word, fds[4];

__attribute__((noreturn)) static void leave(int status)
{
    CALL(__NR_exit_group, status);
    __builtin_unreachable();
}

static void must(int right)
{
    if (!right)
        leave(3);
}

static void prepare_nothing(void)
{
}

/* ---- sleep, futex ---- */

static void wait_nanosleep(void)
{
    must(CALL(__NR_nanosleep, &nano32, 0) == 0);
}

static void wait_clock_nanosleep(void)
{
    must(CALL(__NR_clock_nanosleep, 1, 0, &nano32, 0) == 0);
}

static void wait_clock_nanosleep64(void)
{
    must(CALL(__NR_clock_nanosleep_time64, 1, 0, &nano64, 0) == 0);
}

static void wait_futex(void)
{
    must(CALL(__NR_futex, &word, 0, 0, &nano32) == -ETIMEDOUT);
}

static void wait_futex64(void)
{
    must(CALL(__NR_futex_time64, &word, 0, 0, &nano64) == -ETIMEDOUT);
}

/* ---- poll, epoll ---- */

static void wait_poll(void)
{
    must(CALL(__NR_poll, 0, 0, milliseconds) == 0);
}

static void wait_ppoll64(void)
{
    struct time64 left = nano64; /* the kernel counts it down */

    must(CALL(__NR_ppoll_time64, 0, 0, &left, 0) == 0);
}

static void wait_select(void)
{
    struct time32 left = micro32;

    must(CALL(__NR__newselect, 0, 0, 0, 0, &left) == 0);
}

static void prepare_epoll(void)
{
    fds[0] = CALL(__NR_epoll_create1, 0);
    must(fds[0] >= 0);
}

static void wait_epoll(void)
{
    int event[3];

    must(CALL(__NR_epoll_wait, fds[0], event, 1, milliseconds) == 0);
}

/* ---- pipe and child: the other end is a process of its own ---- */

static void prepare_pipe(void)
{
    char byte = 0;

    must(CALL(__NR_pipe2, &fds[0], 0) == 0 && CALL(__NR_pipe2, &fds[2], 0) == 0);
    if (CALL(__NR_fork))
        return;
    CALL(__NR_close, fds[3]); /* the end of our parent ends the loop */
    while (CALL(__NR_read, fds[2], &byte, 1) == 1) {
        CALL(__NR_nanosleep, &nano32, 0);
        CALL(__NR_write, fds[1], &byte, 1);
    }
    leave(0);
}

static void wait_pipe(void)
{
    char byte = 0;

    must(CALL(__NR_write, fds[3], &byte, 1) == 1 && CALL(__NR_read, fds[0], &byte, 1) == 1);
}

static void wait_child(void)
{
    int child = CALL(__NR_fork);

    if (!child) {
        CALL(__NR_nanosleep, &nano32, 0);
        leave(0);
    }
    must(child > 0 && CALL(__NR_waitpid, child, 0, 0) == child);
}

/* ---- sockets: SO_RCVTIMEO is 20, the level 1; socketcall's 10 is recv ---- */

static void prepare_socket(void)
{
    must(CALL(__NR_socketpair, 1, 1, 0, fds) == 0 &&
         CALL(__NR_setsockopt, fds[0], 1, 20, &micro32, sizeof(micro32)) == 0);
}

static void wait_recv(void)
{
    char byte;

    must(CALL(__NR_recvfrom, fds[0], &byte, 1, 0, 0, 0) == -EAGAIN);
}

static void wait_socketcall(void)
{
    char byte;
    unsigned arguments[4] = {(unsigned)fds[0], (unsigned)&byte, 1, 0};

    must(CALL(__NR_socketcall, 10, arguments) == -EAGAIN);
}

/* ---- semaphores: ipc's 2, 3 and 4 are semget, semctl and semtimedop ---- */

static int semaphore = -1;
static struct {
    unsigned short number;
    short by, flags;
} down = {0, -1, 0};

static void prepare_semaphore(void)
{
    semaphore = CALL(__NR_ipc, 2, 0, 1, 0600);
    must(semaphore >= 0);
}

static void wait_ipc(void)
{
    must(CALL(__NR_ipc, 4, semaphore, 1, 0, &down, &nano32) == -EAGAIN);
}

static void wait_semtimedop64(void)
{
    must(CALL(__NR_semtimedop_time64, semaphore, &down, 1, &nano64) == -EAGAIN);
}

/* ---- signals ---- */

static void wait_sigtimedwait(void)
{
    unsigned set[2] = {1u << 11, 0}; /* SIGUSR2 */

    must(CALL(__NR_rt_sigtimedwait, set, 0, &nano32, 8) == -EAGAIN);
}

/* ---- run ---- */

static const struct {
    const char *name;
    void (*prepare)(void);
    void (*once)(void);
} waits[] = {
    {"nanosleep", prepare_nothing, wait_nanosleep},
    {"clock_nanosleep", prepare_nothing, wait_clock_nanosleep},
    {"clock_nanosleep_time64", prepare_nothing, wait_clock_nanosleep64},
    {"futex", prepare_nothing, wait_futex},
    {"futex_time64", prepare_nothing, wait_futex64},
    {"poll", prepare_nothing, wait_poll},
    {"ppoll_time64", prepare_nothing, wait_ppoll64},
    {"select", prepare_nothing, wait_select},
    {"epoll_wait", prepare_epoll, wait_epoll},
    {"pipe", prepare_pipe, wait_pipe},
    {"waitpid", prepare_nothing, wait_child},
    {"recvfrom", prepare_socket, wait_recv},
    {"socketcall", prepare_socket, wait_socketcall},
    {"ipc", prepare_semaphore, wait_ipc},
    {"semtimedop_time64", prepare_semaphore, wait_semtimedop64},
    {"rt_sigtimedwait", prepare_nothing, wait_sigtimedwait},
};

static int same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static int number(const char *text)
{
    int value = 0;

    while (*text)
        value = value * 10 + (*text++ - '0');
    return value;
}

static void stop(void)
{
    CALL(__NR_kill, CALL(__NR_getpid), SIGSTOP);
}

static void run(int i, int rounds)
{
    waits[i].prepare();
    waits[i].once();
    stop();
    while (rounds--)
        waits[i].once();
    stop();
    if (semaphore >= 0)
        CALL(__NR_ipc, 3, semaphore, 0, 0, &word);
    leave(0);
}

void begin(const int *stack)
{
    const char *const *arguments = (const char *const *)(stack + 1);

    if (stack[0] != 4)
        leave(2);
    milliseconds = number(arguments[3]);
    nano32.part = milliseconds * 1000000;
    nano64.nanoseconds = nano32.part;
    micro32.part = milliseconds * 1000;
    for (unsigned i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        if (same(arguments[1], waits[i].name))
            run((int)i, number(arguments[2]));
    }
    leave(2);
    __builtin_unreachable();
}
