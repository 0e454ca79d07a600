/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Waits that a program can force: each is made to happen a known number of times,
 * by a thread that reads its own account and by another process, and must be
 * filed under its cause exactly as often, and nothing else under a waiting cause.
 * A helper process ends a wait only after the kernel's voluntary switch count says
 * that the target is off the processor. The sum of the waits is compared with the
 * time the target measured itself less the kernel's run and delay times.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 2
#define ROUNDS  10

/* What target and helper share. */
struct stage {
    uint32_t go;                            /* gate: which part the target may begin */
    uint32_t round;                         /* gate: waits begun, for the helper */
    uint64_t voluntary;                     /* the target's own count before the wait it begins */
    pid_t pid, tid;                         /* of the target */
    uint64_t inside_ns;                     /* the measured rounds by the target's clock */
    uint64_t run_ns;                        /* of this, running */
    uint64_t least_ready_ns, most_ready_ns; /* and ready */
    uint64_t stolen_ns;                     /* by a hypervisor meanwhile, from all processors */
};

struct wait_case {
    const char *name;
    enum prcb_cause cause;
    uint32_t reason;                       /* KWAIT_REASON, by NT's usage */
    const char *(*prepare)(void);          /* in the test process; NULL, or why it cannot be */
    void (*wait_once)(void);               /* target: exactly one wait */
    void (*end_wait)(struct stage *stage); /* helper: ends it; NULL: ends by itself */
    void (*clean_up)(void);
};

/* Longer on an emulated machine, where the way into the kernel may take milliseconds. */
static int wait_ns = 2000000;
static struct timespec wait_time;
static int fds[2], fd_a, ipc_id;
static char path_a[64];

static void broken(const char *what)
{
    perror(what);
    _exit(9);
}

/* ---- waits that end by a timeout ---- */

static void wait_sleep(void)
{
    if (clock_nanosleep(CLOCK_MONOTONIC, 0, &wait_time, NULL))
        broken("clock_nanosleep");
}

static void wait_sleep_plain(void)
{
    if (syscall(SYS_nanosleep, &wait_time, NULL))
        broken("nanosleep");
}

static uint32_t futex_word;

static void wait_futex(void)
{
    if (!syscall(SYS_futex, &futex_word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &wait_time, NULL, 0))
        broken("futex");
}

static void wait_futex_bitset(void)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait_ns;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    if (!syscall(SYS_futex, &futex_word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &until, NULL,
                 FUTEX_BITSET_MATCH_ANY))
        broken("futex");
}

static void wait_poll(void)
{
    if (poll(NULL, 0, wait_ns / 1000000))
        broken("poll");
}

static void wait_ppoll(void)
{
    if (ppoll(NULL, 0, &wait_time, NULL))
        broken("ppoll");
}

static void wait_select(void)
{
    struct timeval tv = {.tv_usec = wait_ns / 1000};

    if (select(0, NULL, NULL, NULL, &tv))
        broken("select");
}

static const char *prepare_epoll(void)
{
    fd_a = epoll_create1(EPOLL_CLOEXEC);
    return fd_a < 0 ? strerror(errno) : NULL;
}

static void wait_epoll(void)
{
    struct epoll_event event;

    if (epoll_wait(fd_a, &event, 1, wait_ns / 1000000))
        broken("epoll_wait");
}

static void close_a(void)
{
    close(fd_a);
}

static const char *prepare_socket(void)
{
    struct timeval tv = {.tv_usec = wait_ns / 1000};

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) ||
        setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)))
        return strerror(errno);
    return NULL;
}

static void wait_recv(void)
{
    char byte;

    if (recv(fds[0], &byte, 1, 0) >= 0 || errno != EAGAIN)
        broken("recv");
}

static void wait_read_socket(void)
{
    char byte;

    if (read(fds[0], &byte, 1) >= 0 || errno != EAGAIN)
        broken("read");
}

static void close_pair(void)
{
    close(fds[0]);
    close(fds[1]);
}

/* Of the two files of splice, the one that it waits for. */
static int splice_pipe[2];

static const char *prepare_splice(void)
{
    const char *why = prepare_socket();

    return why ? why : pipe2(splice_pipe, O_CLOEXEC) ? strerror(errno) : NULL;
}

static void wait_splice_from_socket(void)
{
    if (splice(fds[0], NULL, splice_pipe[1], NULL, 1, 0) >= 0 || errno != EAGAIN)
        broken("splice");
}

static void wait_splice_to_socket(void)
{
    if (splice(splice_pipe[0], NULL, fds[0], NULL, 1, 0) != 1)
        broken("splice");
}

static void end_splice(struct stage *stage)
{
    if (write(splice_pipe[1], "x", 1) != 1)
        broken("pipe write");
}

static void close_splice(void)
{
    close_pair();
    close(splice_pipe[0]);
    close(splice_pipe[1]);
}

static const char *prepare_listener(void)
{
    struct timeval tv = {.tv_usec = wait_ns / 1000};
    struct sockaddr_un any = {.sun_family = AF_UNIX};

    fd_a = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd_a < 0 || bind(fd_a, (struct sockaddr *)&any, sizeof(sa_family_t)) || listen(fd_a, 1) ||
        setsockopt(fd_a, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)))
        return strerror(errno);
    return NULL;
}

static void wait_accept(void)
{
    if (accept(fd_a, NULL, NULL) >= 0 || errno != EAGAIN)
        broken("accept");
}

static void wait_sigtimedwait(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    if (sigtimedwait(&set, NULL, &wait_time) >= 0)
        broken("sigtimedwait");
}

static const char *prepare_semaphore(void)
{
    ipc_id = semget(IPC_PRIVATE, 1, 0600);
    return ipc_id < 0 ? strerror(errno) : NULL;
}

static void wait_semaphore(void)
{
    struct sembuf down = {.sem_op = -1};

    if (!semtimedop(ipc_id, &down, 1, &wait_time))
        broken("semtimedop");
}

static void remove_semaphore(void)
{
    semctl(ipc_id, 0, IPC_RMID);
}

static const char *prepare_posix_queue(void)
{
    struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 8};

    snprintf(path_a, sizeof(path_a), "/prcb-test-%d", (int)getpid());
    fd_a = mq_open(path_a, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
    mq_unlink(path_a);
    return fd_a < 0 ? strerror(errno) : NULL;
}

static void wait_posix_queue(void)
{
    struct timespec until;
    char text[8];

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += wait_ns;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    if (mq_timedreceive(fd_a, text, sizeof(text), NULL, &until) >= 0 || errno != ETIMEDOUT)
        broken("mq_timedreceive");
}

static const char *prepare_timerfd(void)
{
    fd_a = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    return fd_a < 0 ? strerror(errno) : NULL;
}

static void wait_timerfd(void)
{
    struct itimerspec once = {.it_value = wait_time};
    uint64_t times;

    if (timerfd_settime(fd_a, 0, &once, NULL) || read(fd_a, &times, 8) != 8)
        broken("timerfd");
}

static aio_context_t aio;

static void wait_aio(void)
{
    struct timespec timeout = wait_time;
    struct io_event event;

    if (!aio && syscall(SYS_io_setup, 4, &aio))
        broken("io_setup");
    if (syscall(SYS_io_getevents, aio, 1, 1, &event, &timeout))
        broken("io_getevents");
}

static void end_aio(void)
{
    if (aio)
        syscall(SYS_io_destroy, aio);
    aio = 0;
}

/* Each waiter makes its own ring: a ring does not survive a fork whole. */
static int ring;
static struct io_uring_params ring_params;
static struct io_uring_sqe *ring_entries;
static char *ring_memory;

static const char *prepare_ring(void)
{
    int status;
    pid_t child = fork(); /* one is taken apart in the background, and then who made it is woken */

    if (!child) {
        int fd = (int)syscall(SYS_io_uring_setup, 4, &(struct io_uring_params){0});

        _exit(fd < 0 ? errno : 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return "a child does not tell whether there are rings";
    ring = -1;
    return WEXITSTATUS(status) ? strerror(WEXITSTATUS(status)) : NULL;
}

static void open_ring(void)
{
    memset(&ring_params, 0, sizeof(ring_params));
    ring = (int)syscall(SYS_io_uring_setup, 4, &ring_params);
    if (ring < 0 || !(ring_params.features & IORING_FEAT_EXT_ARG))
        broken("io_uring_setup");
    ring_memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
                       IORING_OFF_SQ_RING);
    ring_entries =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
    if (ring_memory == MAP_FAILED || ring_entries == MAP_FAILED)
        broken("io_uring mmap");
}

static void ring_wait(unsigned submit)
{
    struct io_uring_getevents_arg arg = {.ts = (uintptr_t)&wait_time};

    if (syscall(SYS_io_uring_enter, ring, submit, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                &arg, sizeof(arg)) >= 0 &&
        !submit)
        broken("io_uring_enter");
}

static void wait_ring(void)
{
    if (ring < 0)
        open_ring();
    ring_wait(0);
}

/* With a request in flight: kernels from 6.1 on call this waiting for I/O. */
static void wait_ring_busy(void)
{
    static int quiet[2];

    if (ring < 0) {
        unsigned *tail, *array;

        open_ring();
        if (pipe2(quiet, O_CLOEXEC))
            broken("pipe");
        tail = (unsigned *)(ring_memory + ring_params.sq_off.tail);
        array = (unsigned *)(ring_memory + ring_params.sq_off.array);
        memset(ring_entries, 0, sizeof(*ring_entries));
        ring_entries->opcode = IORING_OP_POLL_ADD;
        ring_entries->fd = quiet[0];
        ring_entries->poll32_events = POLLIN;
        array[0] = 0;
        __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
        ring_wait(1);
        return;
    }
    ring_wait(0);
}

static void close_ring(void)
{
    if (ring >= 0) {
        munmap(ring_memory, 4096);
        munmap(ring_entries, 4096);
        close(ring);
    }
    ring = -1;
}

#if defined(__x86_64__)
/* 32-bit numbers from a 64-bit program: 162 is nanosleep there and sync here. */
static const char *prepare_compat(void)
{
    long result;

    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return result == getpid() ? NULL : "the kernel has no 32-bit system calls";
}

/* Without them the instruction is a fault. */
static const char *prepare_compat_safely(void)
{
    int status;
    pid_t child = fork();

    if (!child)
        _exit(prepare_compat() != NULL);
    return waitpid(child, &status, 0) == child && status == 0
               ? NULL
               : "the kernel has no 32-bit system calls";
}

static void wait_compat(void)
{
    static int32_t *low;
    long result;

    if (!low) {
        low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1,
                   0);
        if (low == MAP_FAILED)
            broken("mmap");
    }
    low[0] = 0;
    low[1] = wait_ns;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(162L), "b"(low), "c"(0L)
                     : "memory", "r8", "r9", "r10", "r11");
    if (result)
        broken("32-bit nanosleep");
}
#endif

/* ---- waits that a helper ends ---- */

static const char *prepare_pipe(void)
{
    return pipe2(fds, O_CLOEXEC) ? strerror(errno) : NULL;
}

static void wait_pipe(void)
{
    char byte;

    if (read(fds[0], &byte, 1) != 1)
        broken("pipe read");
}

static void end_pipe(struct stage *stage)
{
    if (write(fds[1], "x", 1) != 1)
        broken("pipe write");
}

/* Opening a FIFO waits for the other end. Two in turn: the helper may not have closed its end of
 * one yet when the target goes on. */
static char fifos[2][64];
static unsigned fifo_turn; /* the target's, and the helper's */

static const char *prepare_fifo(void)
{
    for (int i = 0; i < 2; i++) {
        snprintf(fifos[i], sizeof(fifos[i]), "/tmp/prcb-test-fifo-%d-%d", (int)getpid(), i);
        unlink(fifos[i]);
        if (mkfifo(fifos[i], 0600))
            return strerror(errno);
    }
    return NULL;
}

static void wait_fifo(void)
{
    int fd = open(fifos[fifo_turn++ % 2], O_RDONLY | O_CLOEXEC);

    if (fd < 0 || close(fd))
        broken("open of a FIFO");
}

static void end_fifo(struct stage *stage)
{
    int fd = open(fifos[fifo_turn++ % 2], O_WRONLY | O_CLOEXEC);

    if (fd < 0 || close(fd))
        broken("open of a FIFO");
}

static void remove_fifos(void)
{
    unlink(fifos[0]);
    unlink(fifos[1]);
    fifo_turn = 0;
}

/* A full pipe, of one page: the writer waits until the helper makes room. */
static char pipe_page[65536];

static const char *prepare_full_pipe(void)
{
    long size = sysconf(_SC_PAGESIZE);

    if (pipe2(fds, O_CLOEXEC) || fcntl(fds[1], F_SETPIPE_SZ, size) < 0 ||
        write(fds[1], pipe_page, (size_t)size) != size)
        return strerror(errno);
    return NULL;
}

static void wait_full_pipe(void)
{
    long size = sysconf(_SC_PAGESIZE);

    if (write(fds[1], pipe_page, (size_t)size) != size)
        broken("pipe write");
}

static void end_full_pipe(struct stage *stage)
{
    long size = sysconf(_SC_PAGESIZE);

    if (read(fds[0], pipe_page, (size_t)size) != size)
        broken("pipe read");
}

static const char *prepare_eventfd(void)
{
    fd_a = eventfd(0, EFD_CLOEXEC);
    return fd_a < 0 ? strerror(errno) : NULL;
}

static void wait_eventfd(void)
{
    uint64_t value;

    if (read(fd_a, &value, 8) != 8)
        broken("eventfd read");
}

static void end_eventfd(struct stage *stage)
{
    uint64_t one = 1;

    if (write(fd_a, &one, 8) != 8)
        broken("eventfd write");
}

static void on_signal(int number)
{
}

static const char *prepare_signal(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    return sigaction(SIGUSR1, &action, NULL) ? strerror(errno) : NULL;
}

#ifdef SYS_pause /* not on arm64, where the C library's pause() is a poll */
static void wait_pause(void)
{
    syscall(SYS_pause);
}
#endif

static void wait_sigsuspend(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigsuspend(&none);
}

static void end_by_signal(struct stage *stage)
{
    if (syscall(SYS_tgkill, stage->pid, stage->tid, SIGUSR1))
        broken("tgkill");
}

static void no_signal(void)
{
    signal(SIGUSR1, SIG_DFL);
}

/* The target stops itself; the helper lets it go on. */
static void wait_stop(void)
{
    raise(SIGSTOP);
}

static void end_stop(struct stage *stage)
{
    if (!wait_for(kernel_state(stage->pid, stage->tid) == 'T') || kill(stage->pid, SIGCONT))
        broken("SIGCONT");
}

static const char *prepare_messages(void)
{
    ipc_id = msgget(IPC_PRIVATE, 0600);
    return ipc_id < 0 ? strerror(errno) : NULL;
}

struct message {
    long type;
    char text[8];
};

static void wait_message(void)
{
    struct message message;

    if (msgrcv(ipc_id, &message, sizeof(message.text), 0, 0) < 0)
        broken("msgrcv");
}

static void end_message(struct stage *stage)
{
    struct message message = {.type = 1};

    if (msgsnd(ipc_id, &message, sizeof(message.text), 0))
        broken("msgsnd");
}

static void remove_messages(void)
{
    msgctl(ipc_id, IPC_RMID, NULL);
}

/* Two locks in turn, both held by the helper, which gives one up to end a round and
 * takes it back when the next round waits for the other: the target always finds its
 * lock taken, and never loses it to the helper once it was woken. */
#define LOCKS 2
static unsigned lock_turn;  /* target: which it waits for next */
static unsigned lock_given; /* helper: which it gives up next */
static int lock_files[LOCKS];

static const char *prepare_locks(void)
{
    for (int i = 0; i < LOCKS; i++) {
        snprintf(path_a, sizeof(path_a), "/tmp/prcb-lock-%d-%d", (int)getpid(), i);
        lock_files[i] = open(path_a, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (lock_files[i] < 0)
            return strerror(errno);
    }
    lock_turn = lock_given = 0;
    return NULL;
}

static void close_locks(void)
{
    for (int i = 0; i < LOCKS; i++) {
        snprintf(path_a, sizeof(path_a), "/tmp/prcb-lock-%d-%d", (int)getpid(), i);
        unlink(path_a);
        close(lock_files[i]);
    }
}

static void range_lock(unsigned which, short type, int command)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

    if (fcntl(lock_files[which % LOCKS], command, &lock))
        broken("fcntl");
}

static void wait_range_lock(void)
{
    range_lock(lock_turn, F_WRLCK, F_SETLKW);
    range_lock(lock_turn++, F_UNLCK, F_SETLK);
}

static void hold_range_locks(void)
{
    for (unsigned i = 0; i < LOCKS; i++)
        range_lock(i, F_WRLCK, F_SETLK);
}

static void end_range_lock(struct stage *stage)
{
    if (lock_given)
        range_lock(lock_given - 1, F_WRLCK, F_SETLKW);
    range_lock(lock_given++, F_UNLCK, F_SETLK);
}

/* flock belongs to the open file: target and helper open it anew. */
static int own_flock(unsigned which)
{
    static int own[LOCKS];
    static pid_t opener;
    char path[64];

    if (opener != getpid()) {
        for (int i = 0; i < LOCKS; i++) {
            snprintf(path, sizeof(path), "/proc/self/fd/%d", lock_files[i]);
            own[i] = open(path, O_RDWR | O_CLOEXEC);
            if (own[i] < 0)
                broken("open");
        }
        opener = getpid();
    }
    return own[which % LOCKS];
}

static void wait_flock(void)
{
    int fd = own_flock(lock_turn++);

    if (flock(fd, LOCK_EX) || flock(fd, LOCK_UN))
        broken("flock");
}

static void hold_flocks(void)
{
    for (unsigned i = 0; i < LOCKS; i++) {
        if (flock(own_flock(i), LOCK_EX))
            broken("flock");
    }
}

static void end_flock(struct stage *stage)
{
    if (lock_given && flock(own_flock(lock_given - 1), LOCK_EX))
        broken("flock");
    if (flock(own_flock(lock_given++), LOCK_UN))
        broken("flock");
}

/* ---- children ---- */

/* A child that ends once its parent waits for it. */
static void wait_child_by(bool by_waitid)
{
    uint64_t before;
    pid_t parent = getpid(), child;
    siginfo_t info;

    kernel_switches(parent, parent, &before, NULL);
    child = fork();
    if (!child) {
        wait_switched_out(parent, parent, before);
        sleep_ns(wait_ns / 2);
        _exit(0);
    }
    if (by_waitid ? waitid(P_PID, (id_t)child, &info, WEXITED) : waitpid(child, NULL, 0) != child)
        broken("wait");
}

static void wait_child(void)
{
    wait_child_by(false);
}

static void wait_child_id(void)
{
    wait_child_by(true);
}

/* The parent waits until the child ends; children are reaped by nobody. */
static void wait_vfork(void)
{
    struct timespec time = wait_time;
    pid_t child;

    signal(SIGCHLD, SIG_IGN);
    child = vfork();
    if (!child) {
        syscall(SYS_nanosleep, &time, NULL);
        _exit(0);
    }
    if (child < 0)
        broken("vfork");
}

static void default_children(void)
{
    signal(SIGCHLD, SIG_DFL);
}

/* ---- the table ---- */

/* clang-format off */
static const struct wait_case cases[] = {
    {"nanosleep", PRCB_CAUSE_SLEEP, 4, NULL, wait_sleep_plain, NULL, NULL},
    {"clock_nanosleep", PRCB_CAUSE_SLEEP, 4, NULL, wait_sleep, NULL, NULL},
    {"futex with timeout", PRCB_CAUSE_FUTEX, 37, NULL, wait_futex, NULL, NULL},
    {"futex bitset", PRCB_CAUSE_FUTEX, 37, NULL, wait_futex_bitset, NULL, NULL},
    {"poll", PRCB_CAUSE_POLL, 6, NULL, wait_poll, NULL, NULL},
    {"ppoll", PRCB_CAUSE_POLL, 6, NULL, wait_ppoll, NULL, NULL},
    {"select", PRCB_CAUSE_POLL, 6, NULL, wait_select, NULL, NULL},
    {"epoll_wait", PRCB_CAUSE_EPOLL, 15, prepare_epoll, wait_epoll, NULL, close_a},
    {"recv", PRCB_CAUSE_SOCKET, 6, prepare_socket, wait_recv, NULL, close_pair},
    {"read of a socket", PRCB_CAUSE_SOCKET, 6, prepare_socket, wait_read_socket, NULL, close_pair},
    {"accept", PRCB_CAUSE_SOCKET, 6, prepare_listener, wait_accept, NULL, close_a},
    {"sigtimedwait", PRCB_CAUSE_SIGNAL, 6, NULL, wait_sigtimedwait, NULL, NULL},
    {"semtimedop", PRCB_CAUSE_SEMAPHORE, 6, prepare_semaphore, wait_semaphore, NULL, remove_semaphore},
    {"mq_timedreceive", PRCB_CAUSE_MSGQUEUE, 16, prepare_posix_queue, wait_posix_queue, NULL, close_a},
    {"timerfd read", PRCB_CAUSE_FD, 0, prepare_timerfd, wait_timerfd, NULL, close_a},
    {"io_getevents", PRCB_CAUSE_AIO, 15, NULL, wait_aio, NULL, end_aio},
    {"io_uring wait", PRCB_CAUSE_IO_URING, 40, prepare_ring, wait_ring, NULL, close_ring},
    {"io_uring wait, request in flight", PRCB_CAUSE_IO_URING, 40, prepare_ring, wait_ring_busy, NULL, close_ring},
#if defined(__x86_64__)
    {"32-bit nanosleep", PRCB_CAUSE_SLEEP, 4, prepare_compat_safely, wait_compat, NULL, NULL},
#endif
    {"splice from a socket", PRCB_CAUSE_SOCKET, 6, prepare_splice, wait_splice_from_socket, NULL,
     close_splice},
    {"splice from a pipe to a socket", PRCB_CAUSE_PIPE, 0, prepare_splice, wait_splice_to_socket,
     end_splice, close_splice},
    {"pipe read", PRCB_CAUSE_PIPE, 0, prepare_pipe, wait_pipe, end_pipe, close_pair},
    {"opening a FIFO", PRCB_CAUSE_PIPE, 0, prepare_fifo, wait_fifo, end_fifo, remove_fifos},
    {"pipe write", PRCB_CAUSE_PIPE, 0, prepare_full_pipe, wait_full_pipe, end_full_pipe, close_pair},
    {"eventfd read", PRCB_CAUSE_EVENTFD, 0, prepare_eventfd, wait_eventfd, end_eventfd, close_a},
#ifdef SYS_pause
    {"pause", PRCB_CAUSE_SIGNAL, 6, prepare_signal, wait_pause, end_by_signal, no_signal},
#endif
    {"sigsuspend", PRCB_CAUSE_SIGNAL, 6, prepare_signal, wait_sigsuspend, end_by_signal, no_signal},
    {"SIGSTOP", PRCB_CAUSE_STOPPED, 5, NULL, wait_stop, end_stop, NULL},
    {"msgrcv", PRCB_CAUSE_MSGQUEUE, 16, prepare_messages, wait_message, end_message, remove_messages},
    {"fcntl lock", PRCB_CAUSE_FILE_LOCK, 6, prepare_locks, wait_range_lock, end_range_lock, close_locks},
    {"flock", PRCB_CAUSE_FILE_LOCK, 6, prepare_locks, wait_flock, end_flock, close_locks},
    {"wait4", PRCB_CAUSE_CHILD, 6, NULL, wait_child, NULL, NULL},
    {"waitid", PRCB_CAUSE_CHILD, 6, NULL, wait_child_id, NULL, NULL},
    {"vfork", PRCB_CAUSE_VFORK, 6, NULL, wait_vfork, NULL, default_children},
};
/* clang-format on */

/* ---- running a case ---- */

static const struct wait_case *the_case;
static struct stage *stage;

static void run_rounds(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (the_case->end_wait) {
            kernel_switches(stage->pid, stage->tid, &stage->voluntary, NULL);
            gate_set(&stage->round, stage->round + 1);
        }
        the_case->wait_once();
    }
}

/* The kernel's count of ready time is read at other moments than the clocks: once outside of
 * theirs and once inside, for this thread may be preempted between any two of them. */
static void measured_rounds(void)
{
    struct kernel_times outer[2], inner[2];
    uint64_t run, begin, taken = stolen_ns();

    kernel_times(getpid(), gettid(), &outer[0]);
    begin = mono_ns();
    run = own_run();
    kernel_times(getpid(), gettid(), &inner[0]);
    run_rounds(ROUNDS);
    kernel_times(getpid(), gettid(), &inner[1]);
    stage->run_ns = own_run() - run;
    stage->inside_ns = mono_ns() - begin;
    kernel_times(getpid(), gettid(), &outer[1]);
    stage->least_ready_ns = inner[1].ready_ns - inner[0].ready_ns;
    stage->most_ready_ns = outer[1].ready_ns - outer[0].ready_ns;
    stage->stolen_ns = stolen_ns() - taken;
}

static int helper(void *arg)
{
    if (the_case->wait_once == wait_range_lock)
        hold_range_locks();
    if (the_case->wait_once == wait_flock)
        hold_flocks();
    gate_set(&stage->go, 1);
    for (uint32_t done = 0;; done++) {
        gate_wait_while(&stage->round, done);
        if (!wait_switched_out(stage->pid, stage->tid, stage->voluntary))
            return 2;
        sleep_ns(wait_ns / 2);
        the_case->end_wait(stage);
    }
}

static int target(void *arg)
{
    gate_wait_while(&stage->go, 0);
    run_rounds(WARM_UP);
    gate_set(&stage->go, 2);
    gate_wait_while(&stage->go, 2);
    measured_rounds();
    gate_set(&stage->go, 4);
    gate_wait_while(&stage->go, 4);
    return 0;
}

/* Causes that the machine may add by its own: memory taken away under pressure, and
 * locks that others hold for a moment. */
static bool is_noise(uint32_t cause)
{
    return cause == PRCB_CAUSE_DISK || cause == PRCB_CAUSE_PAGE_FAULT ||
           cause == PRCB_CAUSE_MMAP_LOCK || cause == PRCB_CAUSE_RWSEM ||
           cause == PRCB_CAUSE_MUTEX || cause == PRCB_CAUSE_KLOCK;
}

/* Counts of the waiting causes as forced; *ret_noise: something else waited too. */
static bool counts_right(const struct prcb_account *d, const uint64_t *expected, bool *ret_noise)
{
    bool right = true;

    *ret_noise = false;
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(i);

        if (!info || info->kind != PRCB_KIND_WAIT || d->waits[i].count == expected[i])
            continue;
        if (is_noise(i))
            *ret_noise = true;
        else
            right = false;
    }
    return right;
}

/* Right but for forced waits that are too few. */
static bool never_waited(const struct prcb_account *d, const uint64_t *expected)
{
    struct prcb_account full = *d;
    bool noise;

    if (d->waits[the_case->cause].count >= expected[the_case->cause])
        return false;
    full.waits[the_case->cause].count = expected[the_case->cause];
    return counts_right(&full, expected, &noise);
}

/* The waits against what the target's clock and the kernel say: elapsed - run - delay.
 * Allowed: 20 us per wait for stamps that lag in interrupt tails (an emulated processor: 1 ms), and
 * what was stolen, which is neither run nor delay. */
static bool time_right(const struct prcb_account *d)
{
    int64_t rest = (int64_t)(stage->inside_ns - stage->run_ns);
    int64_t least = rest - (int64_t)stage->most_ready_ns - (int64_t)stage->stolen_ns;
    int64_t most = rest - (int64_t)stage->least_ready_ns;
    int64_t got = (int64_t)d->waits[the_case->cause].ns;
    int64_t allowed = (slowness() > 1 ? 1000000 : 20000) * ROUNDS + rest / 100;

    if (got >= least - allowed && got <= most + allowed)
        return true;
    printf("    %s: %" PRId64 " ns in the account, %" PRId64 " .. %" PRId64
           " by the kernel's times\n",
           the_case->name, got, least, most);
    return false;
}

static void check_case(const struct prcb_account *d, uint64_t extra_futex, bool *ret_again)
{
    uint64_t expected[PRCB_CAUSE_MAX] = {[PRCB_CAUSE_FUTEX] = extra_futex};
    bool right;

    expected[the_case->cause] += ROUNDS;
    right = counts_right(d, expected, ret_again);
    /* Who has no processor for longer than a wait lasts, beside storms or where a hypervisor takes
     * it, finds it over: there was no switch then, by the law that all switches have causes. An
     * emulated one may also stop between the two that end a wait. */
    *ret_again |= (slowness() > 1 || !the_case->end_wait) && !right && never_waited(d, expected);
    if ((!right && !*ret_again) || d->missed_switches) {
        print_account(the_case->name, d);
        fail_msg("%s: waits are not as forced", the_case->name);
    }
    /* The wait at the gate would be in a remote futex's time. */
    if (*ret_again || (extra_futex && the_case->cause == PRCB_CAUSE_FUTEX) || time_right(d))
        return;
    /* An emulated processor that stops between two clocks looks the same, and one of which a
     * hypervisor takes less than the ticks that /proc/stat counts; not five times. */
    *ret_again = slowness() > 1 || stolen_ns();
    if (!*ret_again) {
        print_account(the_case->name, d);
        fail_msg("%s: time is not right", the_case->name);
    }
}

static void begin_case(struct stage *fresh)
{
    memset(fresh, 0, sizeof(*fresh));
    stage = fresh;
    ring = -1;
    lock_turn = lock_given = 0;
    if (the_case->end_wait)
        child_start(helper, NULL);
    else
        gate_set(&stage->go, 1);
}

/* The helper goes first: what it holds must not be needed any more. */
static void end_case(void)
{
    test_end(NULL);
}

static bool own_once(void)
{
    struct prcb *p = session_shared();
    struct prcb_thread *self = must_open(p, 0);
    struct prcb_account a, b, d;
    bool again;

    begin_case(shared_memory(sizeof(*stage)));
    stage->pid = getpid();
    stage->tid = gettid();
    gate_wait_while(&stage->go, 0);
    /* Where the kernel did not report the last switch in, that wait is open still: it would close,
     * and count, among the rounds that are measured. */
    do {
        run_rounds(WARM_UP);
        a = must_read(self);
    } while (a.open.ns);
    measured_rounds();
    b = must_read(self);
    assert_laws(&a);
    assert_laws(&b);
    prcb_account_sub(&b, &a, &d);
    again = b.open.ns;
    if (!again)
        check_case(&d, 0, &again);
    end_case();
    return !again;
}

/* The target is asleep at its gate, and the account knows it. The gate is looked at
 * first: an account read before might tell of the sleep at the gate before. */
static bool at_gate(struct prcb_thread *t, uint32_t part)
{
    struct prcb_account a;
    uint64_t voluntary;

    if (gate_get(&stage->go) != part)
        return false;
    a = must_read(t);
    return !(a.flags & PRCB_ACCOUNT_RUNNING) && a.open.cause == PRCB_CAUSE_FUTEX &&
           kernel_switches(stage->pid, stage->tid, &voluntary, NULL) &&
           kernel_state(stage->pid, stage->tid) == 'S' && kernel_off(stage->pid, stage->tid);
}

static bool remote_once(void)
{
    struct prcb *p = session_shared();
    struct prcb_thread *t;
    struct prcb_account a, b, d;
    bool again;
    pid_t child;

    stage = shared_memory(sizeof(*stage));
    memset(stage, 0, sizeof(*stage));
    ring = -1;
    child = child_start(target, NULL);
    stage->pid = stage->tid = child;
    if (the_case->end_wait)
        child_start(helper, NULL);
    else
        gate_set(&stage->go, 1);
    must_profile_process(p, child, PRCB_FOLLOW_THREADS);
    t = must_open(p, child);
    assert_true(wait_for(at_gate(t, 2)));
    a = must_read(t);
    gate_set(&stage->go, 3);
    assert_true(wait_for(at_gate(t, 4)));
    b = must_read(t);
    assert_laws(&a);
    assert_laws(&b);
    prcb_account_sub(&b, &a, &d);
    check_case(&d, 1, &again);
    gate_set(&stage->go, 5);
    assert_int_equal(child_wait(child), 0);
    end_case();
    return !again;
}

/* A noisy round is run again, a wrong one fails at once. */
static void run_case(bool (*once)(void))
{
    const char *reason = the_case->prepare ? the_case->prepare() : NULL;
    const struct prcb_cause_info *info = prcb_cause_info(the_case->cause);
    int tries = 0;

    if (reason)
        skip_because("%s: %s", the_case->name, reason);
    assert_non_null(info);
    assert_int_equal(info->reason, the_case->reason);
    while (!once()) {
        if (++tries == 5)
            fail_msg("%s: other causes keep showing up, or the time stays wrong", the_case->name);
    }
    if (the_case->clean_up)
        the_case->clean_up();
}

static void test_own(void **state)
{
    the_case = *state;
    run_case(own_once);
}

static void test_remote(void **state)
{
    the_case = *state;
    run_case(remote_once);
}

/* ---- run ---- */

#define CASES (sizeof(cases) / sizeof(cases[0]))

int main(void)
{
    static struct CMUnitTest tests[2 * CASES];
    static char names[2 * CASES][80];
    size_t n = 0;

    if (slowness() > 1)
        wait_ns = 10000000;
    wait_time.tv_nsec = wait_ns;
    for (size_t i = 0; i < CASES; i++) {
        for (int remote = 0; remote < 2; remote++) {
            /* In turn where loading the programs takes most of a second. */
            if (slowness() > 1 && remote != (int)(i % 2))
                continue;
            snprintf(names[n], sizeof(names[n]), "%s, %s", cases[i].name,
                     remote ? "another process" : "own thread");
            tests[n] = (struct CMUnitTest){.name = names[n],
                                           .test_func = remote ? test_remote : test_own,
                                           .teardown_func = test_end,
                                           .initial_state = (void *)&cases[i]};
            n++;
        }
    }
    return bpf_run("forced waits", tests, n);
}
