/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where futexes lie, what descriptors and sockets are and names of the kernel's locks, of this
 * process and kernel.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "futex.h"
#include "kernel_lock.h"
#include "objects.h"
#include "sockets.h"
#include "unix_socket.h"

static uint32_t in_bss;
static uint32_t in_data = 1;

static struct futex_place place_of(const void *address)
{
    struct futex_place place;

    futex_find_place(getpid(), gettid(), (uintptr_t)address, &place);
    return place;
}

static void is_in_program(const void *address)
{
    struct futex_place place = place_of(address);
    char program[4096] = "";

    assert_true(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    assert_string_equal(place.path, program);
    assert_true(place.base <= (uintptr_t)address);
    /* The loader's word for where the first page is. */
    assert_memory_equal((const void *)(uintptr_t)place.base, "\177ELF", 4);
}

static void test_static_memory_is_the_files(void **state)
{
    (void)state;
    is_in_program(&in_bss);
    is_in_program(&in_data);
}

static void test_other_memory_is_no_files(void **state)
{
    uint32_t on_stack = 0, *in_heap = malloc(sizeof(*in_heap));
    char *pages = mmap(NULL, 3 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(pages != MAP_FAILED && in_heap);
    /* No mapping right before it. */
    assert_int_equal(munmap(pages, 65536), 0);
    assert_string_equal(place_of(pages + 2 * 65536).path, "");
    assert_string_equal(place_of(pages).name, "");
    assert_string_equal(place_of(&on_stack).path, "");
    assert_string_equal(place_of(in_heap).path, "");
    munmap(pages + 65536, 2 * 65536);
    free(in_heap);
}

/* A part of the program that it maps itself has no first page of its own. */
static void test_a_file_that_is_mapped_again(void **state)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    char *again = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    struct futex_place place;

    (void)state;
    assert_true(again != MAP_FAILED);
    place = place_of(again);
    assert_int_equal(place.base, (uintptr_t)again);
    is_in_program(&in_data);
    munmap(again, 4096);
    close(fd);
}

static void test_descriptors(void **state)
{
    struct descriptor pipe_is, other;
    struct stat about;
    uint64_t number = 0;
    int pipes[2];

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(fstat(pipes[0], &about), 0);
    assert_true(descriptor_read(getpid(), gettid(), (uint64_t)pipes[0], &pipe_is));
    assert_true(descriptor_number(pipe_is.link, "pipe", &number));
    assert_int_equal(number, about.st_ino);
    assert_false(descriptor_number(pipe_is.link, "socket", &number));
    assert_false(descriptor_number("pipe:[12x]", "pipe", &number));
    assert_false(descriptor_number("/tmp/pipe:[12]", "pipe", &number));
    assert_int_equal(dup2(STDIN_FILENO, pipes[0]), pipes[0]);
    assert_true(descriptor_read(getpid(), gettid(), (uint64_t)pipes[0], &other));
    assert_false(descriptor_same(&pipe_is, &other));
    close(pipes[0]);
    close(pipes[1]);
    assert_false(descriptor_read(getpid(), gettid(), (uint64_t)pipes[0], &other));
}

/* One that was closed and opened again is not named: epoll still watches the file before. */
static void test_lists(void **state)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(EPOLL_CLOEXEC), pipes[2], kept;
    char list[600], expected[64];
    unsigned count = 0;
    struct stat about;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(fstat(pipes[0], &about), 0);
    kept = dup(pipes[0]);
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event), 0);
    assert_true(
        descriptor_list_epoll(getpid(), gettid(), (uint64_t)epoll, list, sizeof(list), &count));
    snprintf(expected, sizeof(expected), "%d: pipe:[%ju]", pipes[0], (uintmax_t)about.st_ino);
    assert_string_equal(list, expected);
    assert_int_equal(count, 1);
    assert_int_equal(dup2(STDERR_FILENO, pipes[0]), pipes[0]);
    assert_true(
        descriptor_list_epoll(getpid(), gettid(), (uint64_t)epoll, list, sizeof(list), &count));
    snprintf(expected, sizeof(expected), "%d", pipes[0]);
    assert_string_equal(list, expected);
    assert_false(descriptor_list_poll(getpid(), gettid(), 8, 1, list, sizeof(list), &count));
    assert_false(descriptor_list_poll(getpid(), gettid(), 8, 1u << 31, list, sizeof(list), &count));
    close(kept);
    close(pipes[0]);
    close(pipes[1]);
    close(epoll);
}

static void is_lock(const char *list, uint64_t address, const char *name)
{
    char found[64];

    kernel_lock_name(list, address, found, sizeof(found));
    assert_string_equal(found, name);
}

static void test_locks(void **state)
{
    static const char some[] = "ffffffff82000000 D cgroup_mutex\n";
    static const char text[] = "0000000000000000 A fixed_percpu_data\n"
                               "ffffffff81000000 T _text\n"
                               "ffffffff82000000 D cgroup_mutex\n"
                               "ffffffff82000040 d table\n"
                               "ffffffff82000100 t code_between\n"
                               "ffffffff83000000 D init_task\n"
                               "ffffffffc0400000 b lock_of_module\t[module]\n"
                               "not a line\n";
    char path[] = "/tmp/prcb-symbols-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    close(fd);
    is_lock(path, 0xffffffff82000000, "cgroup_mutex");
    is_lock(path, 0xffffffff82000060, "table+0x20");
    is_lock(path, 0xffffffff82000108, ""); /* code */
    is_lock(path, 0xffffffffc0400000, "lock_of_module");
    is_lock(path, 0xffffffffc0500000, ""); /* far behind it */
    is_lock(path, 0xffff888100000000, ""); /* allocated */
    is_lock(path, 0x1000, "");
    fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_int_equal(write(fd, some, sizeof(some) - 1), sizeof(some) - 1);
    close(fd);
    is_lock(path, 0xffffffff82000000, "cgroup_mutex");
    is_lock(path, 0xffffffff82000060, "");
    assert_int_equal(unlink(path), 0);
    is_lock(path, 0xffffffff82000000, "");
    is_lock(KERNEL_SYMBOLS, 0x1000, "");
}

/* ---- waits that may be over ---- */

static struct prcb_chosen read_of(int fd, uint32_t cause, const char *name)
{
    struct prcb_chosen ret = {.size = sizeof(ret),
                              .pid = getpid(),
                              .tid = gettid(),
                              .cause = cause,
                              .syscall = SYS_read,
                              .args = {(uint64_t)fd}};
    struct descriptor is;
    struct stat about;
    char device[80];

    assert_int_equal(fstat(fd, &about), 0);
    assert_true(descriptor_read(getpid(), gettid(), (uint64_t)fd, &is));
    if (!is.ino)
        skip(); /* before Linux 5.14 procfs does not tell */
    descriptor_mount(getpid(), is.mount, device, sizeof(device), &ret.object.device);
    ret.object.inode = is.ino;
    ret.mode = about.st_mode;
    snprintf(ret.name, sizeof(ret.name), "%s", name);
    return ret;
}

static void is_object(struct objects *o, const struct prcb_chosen *chosen, enum object_kind kind,
                      const char *name)
{
    uint32_t number = objects_read_chosen(o, chosen, NULL).object;

    if (!number)
        fail_msg("%s: nothing is known", name);
    assert_int_equal(objects_at(o, number)->kind, kind);
    assert_string_equal(objects_at(o, number)->name, name);
    assert_false(objects_at(o, number)->now);
}

/* A path is believed for the very file, and else its last part is told, and which file that was. */
static void test_chosen_waits_for_files(void **state)
{
    char path[] = "/tmp/test_objects-XXXXXX", other[64];
    int fd = mkostemp(path, O_CLOEXEC);
    struct prcb_chosen chosen;
    struct objects *o;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(objects_open(NULL, &o), 0);
    chosen = read_of(fd, PRCB_CAUSE_FILE, path + 5);
    is_object(o, &chosen, OBJECT_FILE, path);
    /* Renamed since, or the kernel's name is of another file with the same number. */
    snprintf(chosen.name, sizeof(chosen.name), "%s", "another");
    is_object(o, &chosen, OBJECT_FILE, "another");
    chosen = read_of(fd, PRCB_CAUSE_FILE, path + 5);
    chosen.object.inode++;
    is_object(o, &chosen, OBJECT_FILE, path + 5);
    chosen = read_of(fd, PRCB_CAUSE_FILE, path + 5);
    chosen.object.device++;
    is_object(o, &chosen, OBJECT_FILE, path + 5);
    chosen = read_of(fd, PRCB_CAUSE_FILE, path + 5);
    assert_int_equal(unlink(path), 0);
    close(fd);
    chosen.object.inode += 2; /* not what was found out before */
    is_object(o, &chosen, OBJECT_FILE, path + 5);
    snprintf(other, sizeof(other), "inode %" PRIu64 " on ", chosen.object.inode);
    assert_true(!strncmp(objects_at(o, objects_count(o))->detail, other, strlen(other)));
    /* A wait of this cause is for no file. */
    chosen.cause = PRCB_CAUSE_SOCKET;
    chosen.args[0]++;
    assert_int_equal(objects_read_chosen(o, &chosen, NULL).object, 0);
    objects_close(o);
}

static void test_chosen_waits_for_others(void **state)
{
    struct prcb_chosen chosen;
    struct stat about;
    struct objects *o;
    char name[160];
    int fds[2];

    (void)state;
    assert_int_equal(objects_open(NULL, &o), 0);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(fstat(fds[0], &about), 0);
    snprintf(name, sizeof(name), "pipe:[%ju]", (uintmax_t)about.st_ino);
    chosen = read_of(fds[0], PRCB_CAUSE_PIPE, "");
    is_object(o, &chosen, OBJECT_PIPE, name);
    /* What the number is by now does not matter. */
    close(fds[0]);
    close(fds[1]);
    chosen.args[0]++;
    is_object(o, &chosen, OBJECT_PIPE, name);
    chosen = (struct prcb_chosen){.size = sizeof(chosen),
                                  .pid = getpid(),
                                  .tid = gettid(),
                                  .cause = PRCB_CAUSE_FUTEX,
                                  .syscall = SYS_futex,
                                  .args = {(uintptr_t)&in_bss}};
    snprintf(name, sizeof(name), "0x%" PRIxPTR " (%s)", (uintptr_t)&in_bss, place_of(&in_bss).name);
    is_object(o, &chosen, OBJECT_FUTEX, name);
    chosen.syscall = -1; /* of a 32-bit program */
    assert_int_equal(objects_read_chosen(o, &chosen, NULL).object, 0);
    chosen.cause = PRCB_CAUSE_MUTEX;
    assert_int_equal(objects_read_chosen(o, &chosen, NULL).object, 0);
    chosen.object.lock = 0xffff888100000000;
    is_object(o, &chosen, OBJECT_LOCK, "0xffff888100000000");
    objects_close(o);
}

/* ---- holders ---- */

#define WAIT         0
#define WAIT_PRIVATE 0x80
#define LOCK_PI      6
#define WAITERS      0x80000000u

/* Innermost first; NULL: a function without a name. */
#define STACK(ret, says, ...)                                                                      \
    const char *const ret##_names[] = {__VA_ARGS__};                                               \
    struct prcb_frame ret##_frames[8] = {{0}};                                                     \
    struct prcb_stack ret = {.word = (says), .frames = ret##_frames};                              \
    for (size_t i_ = 0; i_ < sizeof(ret##_names) / sizeof(*ret##_names); i_++)                     \
    ret##_frames[ret.frame_count++].function = ret##_names[i_]

/* A word and an owner say who holds a mutex only where the stack says that it is one. */
static void test_holders_in_copies(void **state)
{
    const uint32_t word[3] = {2, 1, 4711}, tid[3] = {WAITERS | 4711, 0, 0};
    STACK(mutex, "mutex", NULL, "pthread_mutex_lock", "main");
    STACK(condition, "condition variable", "pthread_cond_wait", "main");

    (void)state;
    assert_int_equal(futex_holder_in(word, 3, WAIT_PRIVATE, &mutex, true), 4711);
    assert_int_equal(futex_holder_in(word, 3, WAIT_PRIVATE, &mutex, false), 0);
    assert_int_equal(futex_holder_in(word, 1, WAIT_PRIVATE, &mutex, true), 0);
    assert_int_equal(futex_holder_in(word, 0, WAIT_PRIVATE, &mutex, true), 0);
    assert_int_equal(futex_holder_in(word, 3, WAIT_PRIVATE, &condition, true), 0);
    assert_int_equal(futex_holder_in(word, 3, WAIT_PRIVATE, NULL, true), 0);
    assert_int_equal(futex_holder_in(tid, 1, LOCK_PI | WAIT_PRIVATE, NULL, false), 4711);
}

/* Locks that are waited for like a pthread mutex, behind whose word there is something else: 1
 * where malloc has chunks to take, a stream's number of entries, what a mutex of Rust protects. */
static void test_locks_without_an_owner(void **state)
{
    const uint32_t word[3] = {2, 0, 1};
    STACK(arena, "malloc arena", "__lll_lock_wait_private", "_int_malloc", "malloc", "main");
    STACK(stream, "stdio lock", "__lll_lock_wait_private", "fputs", "main");
    STACK(random_lock, "mutex", "__lll_lock_wait_private", "random", "main");
    STACK(rust, "mutex", "syscall", "std::sys::sync::mutex::futex::Mutex::lock_contended", "main");
    STACK(loader, "loader lock", "__GI___lll_lock_wait", "___pthread_mutex_lock", "_dl_open");
    STACK(nameless, "mutex", NULL, NULL);

    (void)state;
    assert_int_equal(futex_holder_in(word, 3, WAIT_PRIVATE, &arena, true), 0);
    assert_int_equal(futex_holder_in(word, 3, WAIT_PRIVATE, &stream, true), 0);
    assert_int_equal(futex_holder_in(word, 3, WAIT_PRIVATE, &random_lock, true), 0);
    assert_int_equal(futex_holder_in(word, 3, WAIT_PRIVATE, &rust, true), 0);
    assert_int_equal(futex_holder_in(word, 3, WAIT_PRIVATE, &nameless, true), 0);
    assert_int_equal(futex_holder_in(word, 3, WAIT_PRIVATE, &loader, true), 1);
}

/* A word that is no owner's number: what glibc's is between its owners, and what musl's is where it
 * keeps none. */
static void test_words_that_are_no_owner(void **state)
{
    STACK(mutex, "mutex", "__timedwait", "pthread_mutex_timedlock", "pthread_mutex_lock", "main");
    STACK(join, "join", "pthread_join", "main");
    const uint32_t words[] = {0, 1, WAITERS, 16, WAITERS | 16, 4711, 1 << 19 | 2};
    const uint32_t owned[3] = {WAITERS | 4711}, tid[3] = {4711}, joinable[3] = {2};
    const uint32_t busy[3] = {WAITERS | 16};

    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        const uint32_t word[3] = {words[i], 1, 1};

        assert_int_equal(futex_holder_in(word, 3, WAIT_PRIVATE, &mutex, true), 0);
    }
    assert_int_equal(futex_holder_in(owned, 1, WAIT_PRIVATE, &mutex, false), 4711);
    /* glibc's robust ones keep numbers alone, of which this may be one. */
    mutex_frames[1].file = "/lib/ld-musl-x86_64.so.1";
    assert_int_equal(futex_holder_in(busy, 1, WAIT_PRIVATE, &mutex, false), 0);
    mutex_frames[1].file = "/lib/x86_64-linux-gnu/libc.so.6";
    assert_int_equal(futex_holder_in(busy, 1, WAIT_PRIVATE, &mutex, false), 16);
    assert_int_equal(futex_holder_in(tid, 1, WAIT, &join, false), 4711);
    assert_int_equal(futex_holder_in(joinable, 1, WAIT_PRIVATE, &join, false), 0);
}

static void *wait_for_end(void *end)
{
    char byte;

    *(pid_t *)end = gettid();
    return (void *)read(((int *)end)[1], &byte, 1);
}

/* The number of an owner is its process's own: it names no thread of another one. */
static void test_holders_are_of_the_same_process(void **state)
{
    STACK(mutex, "mutex", NULL, "pthread_mutex_lock", "main");
    struct prcb_chosen chosen = {.size = sizeof(chosen),
                                 .pid = getpid(),
                                 .tid = getpid(),
                                 .cause = PRCB_CAUSE_FUTEX,
                                 .syscall = SYS_futex,
                                 .args = {(uintptr_t)&in_bss, WAIT_PRIVATE},
                                 .word = {2, 1},
                                 .words = 3};
    volatile int other[2] = {0}; /* its number; where it reads its end */
    struct objects *o;
    pthread_t thread;
    uint32_t number;
    int pipes[2];

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    other[1] = pipes[0];
    assert_int_equal(pthread_create(&thread, NULL, wait_for_end, (void *)other), 0);
    while (!other[0])
        usleep(1000);
    assert_int_equal(objects_open(NULL, &o), 0);
    chosen.word[2] = (uint32_t)other[0];
    number = objects_read_chosen(o, &chosen, &mutex).holder;
    if (!number)
        fail_msg("nothing is known of thread %d", other[0]);
    assert_int_equal(objects_at(o, number)->tid, other[0]);
    assert_int_equal(objects_at(o, number)->pid, getpid());
    chosen.word[2] = (uint32_t)getppid();
    assert_int_equal(objects_read_chosen(o, &chosen, &mutex).holder, 0);
    chosen.word[2] = (uint32_t)getpid(); /* of oneself nobody waits */
    assert_int_equal(objects_read_chosen(o, &chosen, &mutex).holder, 0);
    close(pipes[1]);
    pthread_join(thread, NULL);
    close(pipes[0]);
    objects_close(o);
}

static int take(const struct prcb_account *a, void *ctx)
{
    *(struct prcb_account *)ctx = *a;
    return 1;
}

static uint32_t object_of(struct objects *o, const struct prcb_account *a)
{
    return objects_read(o, a, NULL).object;
}

/* Of a wait that is over procfs tells no call. The account has the file and its number, and is
 * believed while that number is that file. The record of a thread that runs, as if of its last
 * wait. */
static void test_waits_that_are_over(void **state)
{
    struct prcb_options options = {.size = sizeof(options), .tier = PRCB_TIER_PERF};
    char path[] = "/tmp/test_objects-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC), other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct prcb_chosen like = read_of(fd, PRCB_CAUSE_FILE, path + 5);
    struct prcb_account a = {.size = sizeof(a)};
    struct objects *o;
    struct prcb *p;

    (void)state;
    assert_int_equal(prcb_open(&options, &p, NULL), 0);
    assert_int_equal(prcb_profile_thread(p, gettid(), PRCB_FOLLOW_NONE, NULL), 0);
    assert_int_equal(prcb_walk(p, take, &a, NULL), 1);
    assert_int_equal(objects_open(p, &o), 0);
    a.flags &= ~(uint32_t)PRCB_ACCOUNT_RUNNING;
    a.present |= PRCB_HAS_OBJECT | PRCB_HAS_OPEN | PRCB_HAS_SYSCALL;
    a.open.cause = PRCB_CAUSE_FILE;
    a.last_syscall = SYS_read;
    a.object = like.object;
    a.object.descriptor = (uint32_t)fd;
    assert_true(object_of(o, &a) != 0);
    assert_string_equal(objects_at(o, object_of(o, &a))->name, path);
    assert_false(objects_at(o, object_of(o, &a))->now);
    a.last_syscall = SYS_futex; /* its argument is no descriptor */
    assert_int_equal(object_of(o, &a), 0);
    a.last_syscall = -1;
    assert_int_equal(object_of(o, &a), 0);
    a.last_syscall = SYS_read;
    a.object.inode++;
    assert_int_equal(object_of(o, &a), 0);
    a.object.inode = 0;
    assert_int_equal(object_of(o, &a), 0);
    a.object = like.object;
    a.object.descriptor = (uint32_t)fd;
    if (like.object.device) { /* in a chroot it may be on no mount that is listed */
        a.object.device++;
        assert_int_equal(object_of(o, &a), 0);
        a.object.device--;
    }
    a.open.cause = PRCB_CAUSE_SOCKET;
    assert_int_equal(object_of(o, &a), 0);
    a.open.cause = PRCB_CAUSE_THROTTLED; /* in the middle of the call */
    assert_int_equal(object_of(o, &a), 0);
    a.open.cause = PRCB_CAUSE_MUTEX;
    assert_int_equal(object_of(o, &a), 0);
    a.object.lock = 0xffff888100000000;
    assert_string_equal(objects_at(o, object_of(o, &a))->name, "0xffff888100000000");
    a.object.lock = 0;
    a.open.cause = PRCB_CAUSE_FILE;
    assert_int_equal(dup2(other, fd), fd); /* the number is another file by now */
    assert_int_equal(object_of(o, &a), 0);
    close(fd);
    close(other);
    assert_int_equal(object_of(o, &a), 0);
    assert_int_equal(unlink(path), 0);
    objects_close(o);
    prcb_close(p);
}

/* ---- sockets ---- */

static uint64_t inode_of(int fd)
{
    struct stat about;

    return fstat(fd, &about) ? 0 : about.st_ino;
}

/* A path, or an abstract name of this length. -1: it failed. */
static int listen_at(const char *name, size_t length)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || length > sizeof(at.sun_path))
        return -1;
    memcpy(at.sun_path, name, length);
    return bind(fd, (const void *)&at, size) || listen(fd, 4) ? -1 : fd;
}

/* A name of which a part is a row for another's socket in /proc/net/unix. columns:
 * those in front of the inode. */
static int forge(uint64_t inode, const char *columns)
{
    char name[108];
    int length;

    length = snprintf(name, sizeof(name), "%cx\n0000000000000000: 00000002 %s %5" PRIu64 " /forged",
                      '\0', columns, inode);
    return listen_at(name, (size_t)length);
}

#define AS_THE_KERNEL "00000000 00010000 0001 01"

/* expected: NULL: it has no name. */
static uint64_t is_named(struct sockets *s, pid_t pid, uint64_t inode, const char *expected)
{
    uint64_t netns, peer = 0;
    char name[300] = "";
    int result = sockets_name(s, pid, inode, name, sizeof(name), &netns, &peer);

    if (expected && result)
        fail_msg("%s: %s", expected, strerror(-result));
    if (expected)
        assert_string_equal(name, expected);
    else if (!result)
        fail_msg("it is named %s", name);
    return peer;
}

static void test_names_of_unix_sockets(void **state)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int diag = unix_socket_open(), pair[2], path, abstract, client, accepted, tcp, liar, other;
    char name[200], is_abstract[32] = "";
    socklen_t size = sizeof(loopback);
    struct sockets *s;

    (void)state;
    if (diag < 0)
        skip(); /* CONFIG_UNIX_DIAG */
    close(diag);
    snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/test_objects-%d", (int)getpid());
    path = listen_at(at.sun_path, strlen(at.sun_path));
    snprintf(is_abstract + 1, sizeof(is_abstract) - 1, "a b-%d", (int)getpid());
    abstract = listen_at(is_abstract, strlen(is_abstract + 1) + 1);
    client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (const void *)&at, sizeof(at)), 0);
    accepted = accept4(path, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(tcp, (const void *)&loopback, size), 0);
    assert_int_equal(listen(tcp, 1), 0);
    assert_int_equal(getsockname(tcp, (void *)&loopback, &size), 0);
    liar = forge(inode_of(pair[0]), AS_THE_KERNEL);
    other = forge(inode_of(tcp), AS_THE_KERNEL);
    assert_true(path >= 0 && abstract >= 0 && accepted >= 0 && liar >= 0 && other >= 0);

    assert_int_equal(sockets_open(&s), 0);
    assert_int_equal(is_named(s, getpid(), inode_of(pair[0]), "unix without a name"),
                     inode_of(pair[1]));
    assert_int_equal(is_named(s, getpid(), inode_of(pair[1]), "unix without a name"),
                     inode_of(pair[0]));
    snprintf(name, sizeof(name), "unix %s (listens)", at.sun_path);
    assert_int_equal(is_named(s, getpid(), inode_of(path), name), 0);
    snprintf(name, sizeof(name), "unix %s", at.sun_path);
    assert_int_equal(is_named(s, getpid(), inode_of(client), name), inode_of(accepted));
    assert_int_equal(is_named(s, getpid(), inode_of(accepted), name), inode_of(client));
    snprintf(name, sizeof(name), "unix @%s (listens)", is_abstract + 1);
    assert_int_equal(is_named(s, getpid(), inode_of(abstract), name), 0);
    snprintf(name, sizeof(name), "tcp 127.0.0.1:%u (listens)", ntohs(loopback.sin_port));
    is_named(s, getpid(), inode_of(tcp), name);
    /* The liar's name is its own, newline and all: who prints it escapes that. */
    snprintf(name, sizeof(name),
             "unix @x\n0000000000000000: 00000002 " AS_THE_KERNEL " %5" PRIu64 " /forged (listens)",
             inode_of(pair[0]));
    is_named(s, getpid(), inode_of(liar), name);
    sockets_close(s);
    unlink(at.sun_path);
    for (size_t i = 0; i < 9; i++)
        close((int[]){path, abstract, client, accepted, pair[0], pair[1], tcp, liar, other}[i]);
}

struct elsewhere {
    uint64_t abstract, victim, gone;
};

static void be_elsewhere(int to)
{
    struct elsewhere is = {0};
    int pair[2], gone;

    if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET))
        _exit(write(to, &is, sizeof(is)) != sizeof(is));
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not end it; new rights forget it */
    is.abstract = inode_of(listen_at("\0elsewhere", 10));
    gone = listen_at("\0gone", 5);
    is.gone = inode_of(gone);
    close(gone);
    /* The second forged row is the only one of its inode, but no kernel writes its flags so. */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ||
        forge(is.victim = inode_of(pair[0]), AS_THE_KERNEL) < 0 ||
        forge(is.gone, "00000000 10000 0001 01") < 0 || write(to, &is, sizeof(is)) != sizeof(is))
        _exit(1);
    pause();
}

/* There the list in procfs is all there is. */
static void test_unix_sockets_elsewhere(void **state)
{
    struct elsewhere is = {0};
    struct sockets *s;
    int pipes[2];
    pid_t child;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    child = fork();
    if (!child)
        be_elsewhere(pipes[1]);
    assert_true(child > 0);
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &is, sizeof(is)), sizeof(is));
    close(pipes[0]);
    if (is.abstract) {
        assert_int_equal(sockets_open(&s), 0);
        is_named(s, child, is.abstract, "unix @elsewhere (listens)");
        is_named(s, child, is.victim, NULL);
        is_named(s, child, is.gone, NULL);
        sockets_close(s);
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    if (!is.abstract)
        skip(); /* no namespaces */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_static_memory_is_the_files),
        cmocka_unit_test(test_other_memory_is_no_files),
        cmocka_unit_test(test_a_file_that_is_mapped_again),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_locks),
        cmocka_unit_test(test_chosen_waits_for_files),
        cmocka_unit_test(test_chosen_waits_for_others),
        cmocka_unit_test(test_waits_that_are_over),
        cmocka_unit_test(test_holders_in_copies),
        cmocka_unit_test(test_locks_without_an_owner),
        cmocka_unit_test(test_words_that_are_no_owner),
        cmocka_unit_test(test_holders_are_of_the_same_process),
        cmocka_unit_test(test_names_of_unix_sockets),
        cmocka_unit_test(test_unix_sockets_elsewhere),
    };

    in_bss = in_data;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
