/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A waiting thread's stack, copied and unwound: complete, through frames without frame
 * pointers, for each way to wait. Argument: stack_waiter.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "alike.h"
#include "frozen.h"
#include "stack_child.h"
#include "process.h"
#include "unwind.h"

#define FRAMES 64

static const char *waiter;

/* Once the thread waits for good: its registers are the same in two looks, a while apart. */
static struct frozen_registers await_wait(const struct child *child)
{
    struct frozen_registers at = {0}, again = {0};

    for (int i = 0; i < 10000; i++, nap()) {
        if (frozen_registers_read(child->pid, child->tid, &at))
            continue;
        nap();
        if (!frozen_registers_read(child->pid, child->tid, &again) &&
            !memcmp(&at, &again, sizeof(at)))
            return at;
    }
    fail_msg("thread %d does not wait", child->tid);
    return at;
}

static struct image *image_of(pid_t pid)
{
    char path[64], line[4352];
    struct image *image;
    FILE *maps;

    assert_int_equal(image_open(NULL, &image), 0);
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    maps = fopen(path, "re");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        struct image_file file;
        uint64_t offset;
        char name[4096];

        if (sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64 " %*s %*s %4095s", &file.start, &offset,
                   name) != 3 ||
            offset || name[0] != '/')
            continue;
        file.path = name;
        file.fd = open(name, O_RDONLY | O_CLOEXEC);
        if (file.fd >= 0)
            image_add(image, &file);
    }
    fclose(maps);
    assert_int_equal(image_ready(image), 0);
    return image;
}

/* Where a function of the waiter begins and ends, as nm tells. */
static bool function(const char *name, uint64_t *ret_start, uint64_t *ret_size)
{
    char command[4352], line[512];
    bool found = false;
    FILE *nm;

    snprintf(command, sizeof(command), "nm -S '%s'", waiter);
    nm = popen(command, "re");
    assert_non_null(nm);
    while (fgets(line, sizeof(line), nm)) {
        char text[128];

        if (sscanf(line, "%" SCNx64 " %" SCNx64 " %*c %127s", ret_start, ret_size, text) == 3 &&
            !strcmp(text, name)) {
            found = true;
            break;
        }
    }
    while (fgets(line, sizeof(line), nm))
        ;
    pclose(nm);
    return found;
}

/* Where the waiter's own file begins. A sanitizer's shadow may lie before it. */
static uint64_t base_of(pid_t pid)
{
    char path[64], line[4352];
    uint64_t start = 0;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    maps = fopen(path, "re");
    assert_non_null(maps);
    while (!start && fgets(line, sizeof(line), maps)) {
        if (strstr(line, waiter))
            sscanf(line, "%" SCNx64, &start);
    }
    fclose(maps);
    assert_true(start != 0);
    return start;
}

static void assert_frame_in(const char *name, uint64_t base, const uint64_t *frames, size_t count,
                            size_t *at)
{
    uint64_t start, size;

    assert_true(function(name, &start, &size));
    for (; *at < count; ++*at) {
        if (frames[*at] - base >= start && frames[*at] - base < start + size)
            return;
    }
    fail_msg("%s is no frame, or not in its place", name);
}

/* What libdw makes of the same copy. */
static void check_slowly(const struct child *child, const struct frozen *frozen,
                         const uint64_t *frames, size_t count, enum stack_end end)
{
    struct image *image = image_of(child->pid);
    uint64_t others[FRAMES];
    enum stack_end other_end;

    image_set_slow(image);
    assert_int_equal(image_unwind(image, frozen, others, FRAMES, &other_end), count);
    assert_int_equal(other_end, end);
    assert_memory_equal(others, frames, count * sizeof(*frames));
    image_close(image);
}

/* A copy with the same registers and words has the same frames, whatever lies between these. */
static void check_alike(struct image *image, struct frozen *frozen)
{
    const struct alike_key key = {1, 2}, other = {1, 3};
    struct alike *alike = NULL;
    struct alike_words by;
    size_t at;

    by.words = image_words(image, &by.count, &by.used_fp);
    if (!by.words)
        return; /* the frame pointer had to be searched for */
    assert_null(alike_find(alike, key, frozen));
    alike_keep(&alike, key, frozen, &by, image);
    assert_ptr_equal(alike_find(alike, key, frozen), image);
    assert_null(alike_find(alike, other, frozen));
    for (size_t i = 0; i < by.count; i++) {
        at = (size_t)(by.words[i].address - frozen->low);
        frozen->bytes[at] ^= 1;
        assert_null(alike_find(alike, key, frozen));
        frozen->bytes[at] ^= 1;
    }
    at = (size_t)(by.words[by.count - 1].address - frozen->low);
    frozen->length -= frozen->length - at;
    assert_null(alike_find(alike, key, frozen));
    alike_free(alike);
}

static void check_way(const char *way, const char *deep, size_t bytes, enum stack_end expected)
{
    struct child child = child_start(waiter, way, deep);
    struct frozen_registers at = await_wait(&child);
    struct image *image = image_of(child.pid);
    struct frozen frozen = {0};
    uint64_t frames[FRAMES], base = base_of(child.pid);
    enum stack_end end;
    size_t count, found = 0;

    assert_int_equal(frozen_copy(child.pid, &at, bytes, &frozen), 0);
    count = image_unwind(image, &frozen, frames, FRAMES, &end);
    assert_int_equal(end, expected);
    if (end == STACK_COMPLETE) {
        assert_frame_in("inner", base, frames, count, &found);
        assert_frame_in("middle", base, frames, count, &found);
        assert_frame_in("outer", base, frames, count, &found);
        assert_frame_in("run", base, frames, count, &found);
    }
    check_slowly(&child, &frozen, frames, count, end);
    if (end == STACK_COMPLETE)
        check_alike(image, &frozen);
    frozen_deinit(&frozen);
    image_close(image);
    child_end(&child);
}

static void test_each_way_is_complete(void **state)
{
    static const char *const ways[] = {"sleep", "mutex",     "condition", "pipe",
                                       "poll",  "semaphore", "leaf"};

    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        print_message("%s\n", ways[i]);
        check_way(ways[i], "0", 16384, STACK_COMPLETE);
    }
}

static void test_copy_that_is_too_short_says_so(void **state)
{
    check_way("sleep", "100000", 16384, STACK_SHORT);
    check_way("sleep", "100000", 262144, STACK_COMPLETE);
}

static void test_no_room_for_frames(void **state)
{
    struct child child = child_start(waiter, "poll", "0");
    struct frozen_registers at = await_wait(&child);
    struct image *image = image_of(child.pid);
    struct frozen frozen = {0};
    uint64_t frames[2];
    enum stack_end end;

    assert_int_equal(frozen_copy(child.pid, &at, 16384, &frozen), 0);
    assert_int_equal(image_unwind(image, &frozen, frames, 2, &end), 2);
    assert_int_equal(end, STACK_DEEP);
    frozen_deinit(&frozen);
    image_close(image);
    child_end(&child);
}

static void test_unknown_code_is_broken(void **state)
{
    struct child child = child_start(waiter, "poll", "0");
    struct frozen_registers at = await_wait(&child);
    struct image *image = image_of(child.pid);
    struct frozen frozen = {0};
    uint64_t frames[FRAMES];
    enum stack_end end;

    assert_int_equal(frozen_copy(child.pid, &at, 16384, &frozen), 0);
    frozen.at.pc = 0x1000;
    assert_int_equal(image_unwind(image, &frozen, frames, FRAMES, &end), 1);
    assert_int_equal(frames[0], 0x1000);
    assert_int_equal(end, STACK_BROKEN);
    frozen_deinit(&frozen);
    image_close(image);
    child_end(&child);
}

static void test_errors(void **state)
{
    struct frozen_registers at = {0x1234, 0x5678, 0, 0}, before = at;
    struct frozen frozen = {0};
    pid_t child = fork();

    if (!child)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(frozen_registers_read(child, child, &at), -ESRCH);
    assert_memory_equal(&at, &before, sizeof(at));
    assert_int_equal(frozen_copy(child, &at, 4096, &frozen), -ESRCH);
    assert_int_equal(frozen_copy(getpid(), &at, 4096, &frozen), -EFAULT);
    assert_int_equal(frozen.length, 0);
    frozen_deinit(&frozen);
}

/* What this process has read so far, as the kernel counts it. */
static uint64_t bytes_read(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    uint64_t bytes = 0;

    if (file && fscanf(file, "rchar: %" SCNu64, &bytes) != 1)
        bytes = 0;
    if (file)
        fclose(file);
    return bytes;
}

static uint64_t size_of(const char *path)
{
    uint64_t before = bytes_read();
    char bytes[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    while (read(fd, bytes, sizeof(bytes)) > 0)
        ;
    close(fd);
    return bytes_read() - before;
}

/* Any process may have tens of thousands of mappings with code, and of mounts: no more files are
 * opened than are used, and no list is read for each of them. */
static void test_many_mappings(void **state)
{
    enum { MAPPINGS = 4 * PROCESS_FILES };
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct process_files files;
    uint64_t lists, before;
    char *place = mmap(NULL, 2 * MAPPINGS * 65536ul, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(place != MAP_FAILED && self >= 0);
    for (unsigned i = 0; i < MAPPINGS; i++)
        assert_true(mmap(place + 2ul * i * 65536, 4096, PROT_READ | PROT_EXEC,
                         MAP_PRIVATE | MAP_FIXED, self, 0) != MAP_FAILED);
    close(self);
    lists = size_of("/proc/self/maps") + size_of("/proc/self/mountinfo");
    before = bytes_read();
    if (!before)
        skip(); /* a kernel that does not count this */
    assert_int_equal(process_files_open(getpid(), &files), 0);
    assert_in_range(bytes_read() - before, 1, lists + 65536);
    assert_int_equal(files.count, PROCESS_FILES);
    process_files_close(&files);
    munmap(place, 2 * MAPPINGS * 65536ul);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_way_is_complete),
        cmocka_unit_test(test_copy_that_is_too_short_says_so),
        cmocka_unit_test(test_no_room_for_frames),
        cmocka_unit_test(test_unknown_code_is_broken),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_many_mappings),
    };

    waiter = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
