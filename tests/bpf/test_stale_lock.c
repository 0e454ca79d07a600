/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The end of a wait for a kernel lock that is not reported, as may happen from Linux 7.0 on: here
 * the program that would see it is detached. The lock is the cause of the wait that it was, and of
 * none after it: neither in another system call nor, by the state it sleeps in, in the same.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tier_bpf.h"

#define PIPE_PAGES 16
#define MOST_PAGE  65536

static size_t page_size;
static int pipe_fds[2];
static void *held_page;
static pid_t waiter;

/* Holds the pipe's mutex while its page is not given. */
static void *write_held(void *arg)
{
    return write(pipe_fds[1], held_page, page_size) == (ssize_t)page_size ? NULL : held_page;
}

static void *write_one(void *arg)
{
    __atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
    return write(pipe_fds[1], "x", 1) == 1 ? NULL : held_page;
}

/* Until the waiter sleeps so, and a moment more, so that it has switched. */
static void await_state(char wanted)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    char path[64], line[256], state = 0;

    for (int i = 0; i < 10000 && state != wanted; i++) {
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)waiter);
        file = waiter ? fopen(path, "r") : NULL;
        if (file && fgets(line, sizeof(line), file) && strrchr(line, ')'))
            state = strrchr(line, ')')[2];
        if (file)
            fclose(file);
        nanosleep(&pause, NULL);
    }
    nanosleep(&pause, NULL);
}

/* A page of the pipe: it has room again when one is empty. */
static void *drain_later(void *arg)
{
    static char bytes[MOST_PAGE];

    await_state('S');
    return read(pipe_fds[0], bytes, page_size) > 0 ? NULL : held_page;
}

/* A descriptor that is told of faults in *ret. */
static int open_keeper(void **ret)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK); /* else there is no polling */
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};

    if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
        return -1;
    *ret = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(*ret != MAP_FAILED);
    range.range.start = (uintptr_t)*ret;
    range.range.len = page_size;
    assert_int_equal(ioctl(fd, UFFDIO_REGISTER, &range), 0);
    return fd;
}

/* Gives the page once the waiter is asleep. */
static void *give_page(void *arg)
{
    int keeper = *(int *)arg;
    struct uffdio_zeropage give = {.range = {(uintptr_t)held_page, page_size}};

    await_state('D');
    return ioctl(keeper, UFFDIO_ZEROPAGE, &give) ? held_page : NULL;
}

/* Waits for the pipe's mutex, of which the end is not seen. */
static void wait_for_mutex(int keeper)
{
    struct pollfd faults = {.fd = keeper, .events = POLLIN};
    pthread_t holder, giver;
    void *bad[2];

    assert_int_equal(pthread_create(&holder, NULL, write_held, NULL), 0);
    assert_int_equal(poll(&faults, 1, 10000), 1);
    assert_int_equal(faults.revents, POLLIN);
    assert_int_equal(pthread_create(&giver, NULL, give_page, &keeper), 0);
    assert_null(write_one(NULL));
    pthread_join(holder, &bad[0]);
    pthread_join(giver, &bad[1]);
    assert_null(bad[0]);
    assert_null(bad[1]);
}

static uint64_t count_of(struct prcb_thread *t, enum prcb_cause cause)
{
    struct prcb_account a = {.size = sizeof(a)};

    assert_int_equal(prcb_thread_read(t, &a), 0);
    return a.waits[cause].count;
}

static void not_the_cause_of_what_follows(void **state)
{
    const struct prcb_options opts = {
        .size = sizeof(opts), .tier = PRCB_TIER_BPF, .max_threads = 64};
    const struct timespec pause = {.tv_nsec = 1000000};
    struct prcb_error err = {0};
    struct prcb_thread *t;
    struct prcb *p = NULL;
    uint64_t mutex, piped;
    pthread_t drain;
    static const char bytes[MOST_PAGE];
    void *bad;
    int keeper;

    page_size = (size_t)sysconf(_SC_PAGESIZE);
    assert_true(page_size <= MOST_PAGE);
    keeper = open_keeper(&held_page);
    if (keeper < 0) {
        printf("    not run: userfaultfd is not allowed here\n");
        skip();
    }
    if (prcb_open(&opts, &p, &err)) {
        printf("    not run: %s\n", err.text);
        skip();
    }
    if (!p->bpf->skeleton->links.prcb_contention_end) {
        printf("    not run: this kernel reports no locks\n");
        skip();
    }
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    assert_int_equal(fcntl(pipe_fds[1], F_SETPIPE_SZ, PIPE_PAGES * page_size),
                     PIPE_PAGES * page_size);
    assert_int_equal(prcb_profile_thread(p, gettid(), 0, &err), 0);
    assert_int_equal(prcb_thread_open_self(p, &t, &err), 0);
    bpf_link__destroy(p->bpf->skeleton->links.prcb_contention_end);
    p->bpf->skeleton->links.prcb_contention_end = NULL;

    wait_for_mutex(keeper);
    mutex = count_of(t, PRCB_CAUSE_MUTEX);
    assert_true(mutex);
    /* Another call. */
    for (int i = 0; i < 5; i++)
        nanosleep(&pause, NULL);
    assert_int_equal(count_of(t, PRCB_CAUSE_MUTEX), mutex);
    assert_true(count_of(t, PRCB_CAUSE_SLEEP) >= 5);

    /* The same call, until the pipe is full and a reader comes. Its pages hold a byte each. */
    madvise(held_page, page_size, MADV_DONTNEED);
    waiter = 0;
    wait_for_mutex(keeper);
    mutex = count_of(t, PRCB_CAUSE_MUTEX);
    piped = count_of(t, PRCB_CAUSE_PIPE);
    fcntl(pipe_fds[1], F_SETFL, O_NONBLOCK);
    while (write(pipe_fds[1], bytes, page_size) > 0)
        ;
    fcntl(pipe_fds[1], F_SETFL, 0);
    assert_int_equal(pthread_create(&drain, NULL, drain_later, NULL), 0);
    assert_int_equal(write(pipe_fds[1], bytes, 1), 1);
    pthread_join(drain, &bad);
    assert_null(bad);
    assert_int_equal(count_of(t, PRCB_CAUSE_MUTEX), mutex);
    assert_true(count_of(t, PRCB_CAUSE_PIPE) > piped);
    prcb_thread_close(t);
    prcb_close(p);
    close(keeper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(not_the_cause_of_what_follows)};

    if (geteuid()) {
        printf("needs root\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
