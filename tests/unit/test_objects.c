/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where futexes lie, what descriptors are and names of the kernel's locks, of this process and
 * kernel.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "futex.h"
#include "kernel_lock.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_static_memory_is_the_files),
        cmocka_unit_test(test_other_memory_is_no_files),
        cmocka_unit_test(test_a_file_that_is_mapped_again),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_locks),
    };

    in_bss = in_data;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
