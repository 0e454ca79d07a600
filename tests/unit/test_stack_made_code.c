/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Lists of compiled code (/tmp/perf-PID.map): what is found at an address, in lists as compilers
 * write them and as nobody should; and whose list is read at all.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "made_code.h"
#include "perf_list.h"

#define NOBODY 65534

static struct made_code code;

static void read_bytes(const char *text, size_t length)
{
    int fd = memfd_create("list", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), length);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    made_code_read(fd, &code);
}

static void read_text(const char *text)
{
    read_bytes(text, strlen(text));
}

static int forget(void **state)
{
    made_code_free(&code);
    return 0;
}

static void assert_at(uint64_t address, const char *name)
{
    const char *found = made_code_find(&code, address);

    if (name)
        assert_string_equal(found ? found : "(none)", name);
    else
        assert_null(found);
}

static void test_names(void **state)
{
    read_text("7f0000001000 40 LazyCompile:~wait /a b/c.js:3:7\n7f0000002000 10 second\r\n");
    assert_int_equal(code.count, 2);
    assert_at(0x7f0000000fff, NULL);
    assert_at(0x7f0000001000, "LazyCompile:~wait /a b/c.js:3:7");
    assert_at(0x7f000000103f, "LazyCompile:~wait /a b/c.js:3:7");
    assert_at(0x7f0000001040, NULL);
    assert_at(0x7f000000200f, "second");
    assert_at(UINT64_MAX, NULL);
    assert_at(0, NULL);
}

/* Code is moved and made anew: the later line is what lies there now. */
static void test_overlapping(void **state)
{
    read_text("1000 100 old\n1000 80 new\n2000 100 wide\n2040 10 within\n1f80 100 across\n");
    assert_at(0x1000, "new");
    assert_at(0x10c0, NULL); /* what was there went when the new code came */
    assert_at(0x1fff, "across");
    assert_at(0x2000, "wide");
    assert_at(0x2045, "within");
    assert_at(0x2060, NULL);
}

static void test_lines_that_are_none(void **state)
{
    static const char nul[] = "1000 10 one\n2000 10 t\0wo\n3000 10 three\n";

    read_text("\n \nname\n1000\n1000 10\n1000 10 \n1000 0 empty\nffffffffffffffff 10 wraps\n"
              "-1000 10 negative\n10 fffffffffffffff8 ends before it begins\nzz 10 no number\n"
              "99999999999999999999999 1 too large\n5000 8 good");
    assert_at(0x5000, "good");
    assert_at(0x1000, NULL);
    assert_at(UINT64_MAX, NULL);
    forget(NULL);
    read_bytes(nul, sizeof(nul) - 1);
    assert_at(0x1000, "one");
    assert_at(0x2000, "t");
    assert_at(0x3000, "three");
    forget(NULL);
    read_text("");
    assert_at(0x1000, NULL);
}

/* What does not fit a line is no line of its own. */
static void test_long_names(void **state)
{
    static const char tail[] = " 4000 10 forged\n9000 10 last\n";
    static char text[300000];
    size_t length = (size_t)sprintf(text, "1000 10 ");

    for (size_t i = 0; length + sizeof(tail) + 32 < sizeof(text); i++)
        length += (size_t)sprintf(text + length, "%s", i % 2 ? " 4000 10 forged" : "xxxxxxx");
    strcpy(text + length, tail);
    read_text(text);
    assert_int_equal(code.count, 2);
    assert_at(0x1000, code.rows[0].name);
    assert_memory_equal(code.rows[0].name, "xxxxxxx", 7);
    assert_at(0x4000, NULL);
    assert_at(0x9000, "last");
}

static void test_many(void **state)
{
    size_t room = 16u << 20, length = 0, rows = 0;
    char *text = malloc(room), name[32];

    assert_non_null(text);
    for (; length + 64 < room; rows++) /* from the highest down */
        length += (size_t)sprintf(text + length, "%zx 10 f%zu\n", 0x40000000 - 16 * rows, rows);
    read_bytes(text, length);
    free(text);
    assert_int_equal(code.count, rows);
    for (size_t i = 0; i < rows; i += 997) {
        sprintf(name, "f%zu", i);
        assert_at(0x40000000 - 16 * i + 15, name);
    }
}

/* ---- whose list --------------------------------------------------------------------------- */

static pid_t sleeper;
static char path[64];

static int start_sleeper(void **state)
{
    sleeper = fork();
    if (!sleeper) {
        if (!geteuid() && (setgid(NOBODY) || setuid(NOBODY)))
            _exit(1);
        for (;;)
            pause();
    }
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)sleeper);
    unlink(path);
    return sleeper < 0;
}

static int end_sleeper(void **state)
{
    kill(sleeper, SIGKILL);
    waitpid(sleeper, NULL, 0);
    unlink(path);
    return 0;
}

static void write_list(uid_t owner, off_t bytes)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    assert_true(owner == geteuid() || !fchown(fd, owner, owner));
    close(fd);
}

static void test_whose(void **state)
{
    uid_t its = geteuid() ? geteuid() : NOBODY;
    struct stat about;
    int fd;

    assert_int_equal(perf_list_place(sleeper, its, 100, &about), -ENOENT);
    write_list(its, 100);
    fd = perf_list_place(sleeper, its, 100, &about);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(perf_list_place(sleeper, its, 99, &about), -EFBIG);
    assert_int_equal(perf_list_place(sleeper, its + 1, 100, &about), -EPERM);
    unlink(path);
    if (!geteuid()) { /* somebody else put it there first */
        write_list(0, 100);
        assert_int_equal(perf_list_place(sleeper, its, 100, &about), -EPERM);
        unlink(path);
    }
}

/* Nothing is waited for, nothing elsewhere is opened. */
static void test_no_plain_file(void **state)
{
    uid_t its = geteuid() ? geteuid() : NOBODY;
    struct stat about;

    assert_int_equal(mkfifo(path, 0666), 0);
    assert_true(perf_list_place(sleeper, its, 100, &about) < 0);
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_true(perf_list_place(sleeper, 0, 1 << 20, &about) < 0);
    unlink(path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_true(perf_list_place(sleeper, its, 1 << 20, &about) < 0);
    rmdir(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_names, forget),
        cmocka_unit_test_teardown(test_overlapping, forget),
        cmocka_unit_test_teardown(test_lines_that_are_none, forget),
        cmocka_unit_test_teardown(test_long_names, forget),
        cmocka_unit_test_teardown(test_many, forget),
        cmocka_unit_test_setup_teardown(test_whose, start_sleeper, end_sleeper),
        cmocka_unit_test_setup_teardown(test_no_plain_file, start_sleeper, end_sleeper),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
