/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What others control is read without waiting for it: memory as far as it is there, and answers in
 * time where it is not. The memory that hangs is of this process, served by nobody (userfaultfd),
 * which takes root.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "now.h"
#include "reach.h"
#include "sandbox.h"

#define PAGES 8

static size_t page;

static char *map(int flags, int fd)
{
    char *at = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, fd, 0);

    assert_true(at != MAP_FAILED);
    return at;
}

static ssize_t copy(const char *from, char *to, size_t size)
{
    return reach_memory(getpid(), (uintptr_t)from, to, size);
}

static void test_memory(void **state)
{
    char *at = map(MAP_ANONYMOUS, -1), *to = calloc(PAGES + 1, page);

    /* The second and the last page are there, zeros in between that nobody has asked for. */
    memset(at + page, 7, page);
    at[PAGES * page - 1] = 9;
    memset(to, 1, PAGES * page);
    assert_int_equal(copy(at + 100, to, PAGES * page - 100), PAGES * page - 100);
    assert_int_equal(to[page - 101], 0);
    assert_int_equal(to[page - 100], 7);
    assert_int_equal(to[2 * page - 101], 7);
    assert_int_equal(to[2 * page - 100], 0);
    assert_int_equal(to[PAGES * page - 101], 9);
    /* It ends with the last page that is there, and before what may not be read. (To copy the
     * others made them be there.) */
    assert_int_equal(madvise(at + 2 * page, 5 * page, MADV_DONTNEED), 0);
    assert_int_equal(copy(at + 100, to, 4 * page), 2 * page - 100);
    assert_int_equal(mprotect(at + 4 * page, page, PROT_NONE), 0);
    assert_int_equal(copy(at + page, to, PAGES * page), 3 * page);
    assert_int_equal(munmap(at + 5 * page, 3 * page), 0);
    assert_int_equal(copy(at + 5 * page, to, page), -EFAULT);
    assert_int_equal(copy((char *)8, to, 8), -EFAULT);
    free(to);
}

/* Pages of a file that are not there would be read for it, by whoever serves it. */
static void test_file(void **state)
{
    char path[] = "/tmp/prcb-reach-XXXXXX", *at, *to = calloc(PAGES, page);
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(ftruncate(fd, (off_t)(PAGES * page)), 0);
    at = map(0, fd);
    assert_int_equal(copy(at, to, page), -EFAULT);
    at[10] = 3; /* private, and there */
    assert_int_equal(copy(at, to, 2 * page), page);
    assert_int_equal(to[10], 3);
    munmap(at, PAGES * page);
    close(fd);
    free(to);
}

static void test_nobody(void **state)
{
    pid_t pid = fork();
    char byte;

    if (!pid)
        _exit(0);
    waitpid(pid, NULL, 0);
    assert_int_equal(reach_memory(pid, 4096, &byte, 1), -ESRCH);
    assert_int_equal(reach_read(pid, "/proc/self/nothing", &byte, 1), -ENOENT);
}

/* Whether this process has a file with these numbers mapped. */
static bool lists_mapping(uint64_t device, uint64_t inode)
{
    char *text, wanted[64];
    bool found;

    snprintf(wanted, sizeof(wanted), " %02x:%02x %" PRIu64 " ", major(device), minor(device),
             inode);
    assert_true(reach_text(0, "/proc/self/maps", &text) > 0); /* the child's: it runs the same */
    found = strstr(text, wanted);
    free(text);
    return found;
}

static void test_files(void **state)
{
    char *text, start[16], byte;
    int sockets[2], fd = -1, place;
    uint64_t device, inode;
    struct stat about, is;
    size_t count = 0;

    assert_true(reach_text(0, "/proc/version", &text) > 0);
    assert_non_null(strstr(text, "Linux"));
    assert_int_equal(reach_read(0, "/proc/version", start, 5), 5);
    assert_memory_equal(start, text, 5);
    free(text);
    assert_int_equal(reach_open(0, "/proc/version", &about), -EINVAL);
    assert_int_equal(reach_open(0, "/dev/null", &about), -EINVAL);
    place = reach_open(0, "/proc/self/exe", &about);
    assert_true(place >= 0);
    assert_true(fcntl(place, F_GETFL) & O_PATH);
    assert_int_equal(stat("/proc/self/exe", &is), 0);
    assert_int_equal(about.st_ino, is.st_ino);
    assert_int_equal(reach_mapped_as(place, &device, &inode), 0);
    assert_true(lists_mapping(device, inode));
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(reach_hand(0, place, sockets[0], "x", 1), 0);
    assert_int_equal(sandbox_receive(sockets[1], &byte, 1, &fd, 1, &count, 1000), 1);
    assert_int_equal(count, 1);
    assert_int_equal(read(fd, start, 4), 4);
    assert_memory_equal(start, "\177ELF", 4);
    close(fd);
    close(place);
    close(sockets[0]);
    close(sockets[1]);
}

static pid_t child_of_reach(void)
{
    char path[64], text[64] = "";
    FILE *in;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    in = fopen(path, "re");
    if (!in || !fgets(text, sizeof(text), in))
        text[0] = '\0';
    if (in)
        fclose(in);
    return (pid_t)atoi(text);
}

/* One that is killed is replaced, and nothing is said of a hang; none outlives who asks. */
static void test_life(void **state)
{
    unsigned hangs = reach_hangs();
    char byte;
    pid_t first;

    reach_hold();
    assert_int_equal(reach_read(0, "/proc/version", &byte, 1), 1);
    first = child_of_reach();
    if (!first)
        skip(); /* a kernel without CONFIG_PROC_CHILDREN */
    kill(first, SIGKILL);
    assert_int_equal(reach_read(0, "/proc/version", &byte, 1), 1);
    assert_true(child_of_reach() != first);
    assert_int_equal(reach_hangs(), hangs);
    if (!fork()) /* which has a child of its own */
        _exit(reach_read(0, "/proc/version", &byte, 1) != 1);
    wait(NULL);
    assert_int_equal(reach_read(0, "/proc/version", &byte, 1), 1);
    reach_release();
    assert_int_equal(child_of_reach(), 0);
}

/* One answer is waited for, the rest is refused at once, and others are asked as before. */
static void test_hang(void **state)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    char *at = map(MAP_ANONYMOUS, -1), *to = calloc(PAGES, page), byte;
    struct uffdio_register range = {.range = {(uintptr_t)at, PAGES * page},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    uint64_t began;
    pid_t pid;

    at[PAGES * page - 1] = 1; /* else nothing behind the first page is worth asking for */
    if (geteuid() || fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
        skip(); /* needs root, and a kernel with userfaultfd */
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    began = now_ms();
    assert_int_equal(copy(at, to, PAGES * page), -ETIMEDOUT);
    assert_in_range(now_ms() - began, 900, 15000);
    assert_int_equal(reach_hangs(), 1);
    began = now_ms();
    for (int i = 0; i < 100; i++)
        assert_int_equal(copy(at, to, PAGES * page), -ETIMEDOUT);
    assert_in_range(now_ms() - began, 0, 500);
    assert_int_equal(reach_hangs(), 1);
    assert_int_equal(reach_memory(pid, (uintptr_t)&page, &byte, 1), 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(fd);
    free(to);
}

/* A thread may have a name with a new line, which the kernel writes into /proc/PID/status. */
static void test_user(void **state)
{
    int ends[2];
    char byte;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if ((!geteuid() && setresuid(4711, 4711, 4711)) ||
            prctl(PR_SET_NAME, "a\nUid:\t7\n", 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
            write(ends[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(reach_user(pid), geteuid() ? geteuid() : 4711);
    assert_int_equal(reach_user(getpid()), geteuid() ? (int64_t)geteuid() : -1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(reach_user(pid), -1);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory), cmocka_unit_test(test_file), cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_files),  cmocka_unit_test(test_life), cmocka_unit_test(test_hang),
        cmocka_unit_test(test_user),
    };

    page = (size_t)sysconf(_SC_PAGESIZE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
