/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The /proc parsers on text as the kernel writes it, on text it never would, and the
 * readers on a made-up tree and on this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "procfs.h"

/* Fields 4 to 22 of a real thread, its creation time last. */
#define FIELDS " 9 8 7 34816 -1 4194560 98 1 2 3 4 5 6 7 20 0 12 0 321864"
#define TAIL   " 3133440 390 18446744073709551615 94730571075584\n"

static int parse_stat(const char *text, struct procfs_stat *ret)
{
    return procfs_parse_stat(text, strlen(text), ret);
}

static void stat_fields(void **state)
{
    struct procfs_stat stat;

    assert_int_equal(parse_stat("15339 (cat) S" FIELDS TAIL, &stat), 0);
    assert_int_equal(stat.tid, 15339);
    assert_string_equal(stat.comm, "cat");
    assert_int_equal(stat.state, 'S');
    assert_int_equal(stat.ppid, 9);
    assert_int_equal(stat.flags, 4194560);
    assert_int_equal(stat.start, 321864);
}

/* The kernel does not escape the name here, and anybody may choose his. */
static void stat_names(void **state)
{
    static const struct {
        const char *text, *comm;
    } cases[] = {
        {"1 () R" FIELDS TAIL, ""},
        {"1 (a b) R" FIELDS TAIL, "a b"},
        {"1 ((sd-pam)) R" FIELDS TAIL, "(sd-pam)"},
        {"1 (x) Z 0 0 0) R" FIELDS TAIL, "x) Z 0 0 0"},
        {"1 (a\n2 (b) R" FIELDS TAIL, "a\n2 (b"},
        {"1 (kworker/0:1H-kblockd) R" FIELDS TAIL, "kworker/0:1H-kb"},
    };
    struct procfs_stat stat;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse_stat(cases[i].text, &stat), 0);
        assert_string_equal(stat.comm, cases[i].comm);
        assert_int_equal(stat.state, 'R');
        assert_int_equal(stat.start, 321864);
    }
}

static void stat_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "1",
        "1 (",
        "1 )x(",
        "1 (x)",
        "1 (x) ",
        "1 (x) R",
        "1 (x) R 1 2 3",
        " (x) R" FIELDS TAIL,
        "-1 (x) R" FIELDS TAIL,
        "2147483648 (x) R" FIELDS TAIL, /* no pid_t */
        "1 (x) R x 8 7 34816 -1 4194560 98 1 2 3 4 5 6 7 20 0 12 0 321864" TAIL,
        "1 (x) R 9 8 7 34816 -1 4294967296 98 1 2 3 4 5 6 7 20 0 12 0 321864" TAIL,
        "1 (x) R 9 8 7 34816 -1 4194560 98 1 2 3 4 5 6 7 20 0 12 0 18446744073709551616" TAIL,
        "1 (x) R 9 8 7 34816 -1 4194560 98 1 2 3 4 5 6 7 20 0 12 0 -5" TAIL,
    };
    struct procfs_stat stat = {.tid = 77, .comm = "kept"}, before = stat;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse_stat(cases[i], &stat), -EBADMSG);
        assert_memory_equal(&stat, &before, sizeof(stat));
    }
}

/* Cut off anywhere before the last field it needs, on memory that ends there: refused,
 * or (a number cut short) still a number; never read beyond. */
static void stat_cut_off(void **state)
{
    static const char whole[] = "15339 (cat) S" FIELDS;
    const size_t last_field = sizeof(whole) - 1 - strlen("321864");

    for (size_t length = 0; length < sizeof(whole); length++) {
        struct procfs_stat stat;
        char *text = malloc(length + 1);
        char *exact = memcpy(text + 1, whole, length);

        assert_int_equal(procfs_parse_stat(exact, length, &stat),
                         length > last_field ? 0 : -EBADMSG);
        free(text);
    }
}

static void status_fields(void **state)
{
    static const char text[] = "Name:\tTgid: 1\nUmask:\t0022\nTgid:\t15340\nPid:\t15341\n"
                               "voluntary_ctxt_switches:\t18446744073709551615\n"
                               "nonvoluntary_ctxt_switches:\t7\n";
    struct procfs_status status;

    assert_int_equal(procfs_parse_status(text, sizeof(text) - 1, &status), 0);
    assert_int_equal(status.tgid, 15340);
    assert_true(status.voluntary == UINT64_MAX);
    assert_int_equal(status.involuntary, 7);
}

static void status_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "Tgid:\t1\n",
        "Tgid:\t1\nnonvoluntary_ctxt_switches:\t7\n", /* must not pass for the voluntary ones */
        "Tgid:\t1\nvoluntary_ctxt_switches:\t7\n",
        "Tgid:\t\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t7\n",
        "Tgid:\t1x\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t7\n",
        "Tgid:\t1\nvoluntary_ctxt_switches:\nnonvoluntary_ctxt_switches:\t7\n",
        "Tgid:\t1\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t-7\n",
        "voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t7\n",
    };
    struct procfs_status status = {.tgid = 77}, before = status;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(procfs_parse_status(cases[i], strlen(cases[i]), &status), -EBADMSG);
        assert_memory_equal(&status, &before, sizeof(status));
    }
}

static void schedstat_fields(void **state)
{
    static const char text[] = "183573 46369 1\n";
    static const char *const refused[] = {"",     "\n",    "1",      "1 2",
                                          "1 2 ", "1 2 x", "1 -2 3", "1.5 2 3"};
    struct procfs_schedstat schedstat;

    assert_int_equal(procfs_parse_schedstat(text, sizeof(text) - 1, &schedstat), 0);
    assert_int_equal(schedstat.run_ns, 183573);
    assert_int_equal(schedstat.ready_ns, 46369);
    assert_int_equal(schedstat.arrivals, 1);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        assert_int_equal(procfs_parse_schedstat(refused[i], strlen(refused[i]), &schedstat),
                         -EBADMSG);
}

static void pid_lists(void **state)
{
    static const char text[] = "1 22\n0\t333\n";
    static const pid_t expected[] = {1, 22, 0, 333};
    static const char *const refused[] = {"x", "1x", "-1", "2147483648", "99999999999999999999"};
    const char *at = text, *end = text + sizeof(text) - 1;
    pid_t pid;

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_int_equal(procfs_parse_pid(&at, end, &pid), 1);
        assert_int_equal(pid, expected[i]);
    }
    assert_int_equal(procfs_parse_pid(&at, end, &pid), 0);
    assert_int_equal(procfs_parse_pid(&at, end, &pid), 0);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        at = refused[i];
        assert_int_equal(procfs_parse_pid(&at, at + strlen(at), &pid), -EBADMSG);
        assert_ptr_equal(at, refused[i]);
    }
}

/* ---- readers ---- */

static void write_file(const char *root, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void make_directory(const char *root, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void tree(void **state)
{
    char root[] = "/tmp/prcb-procfs-XXXXXX", command[64];
    struct procfs fs;
    struct procfs_stat stat;
    struct procfs_schedstat schedstat;
    struct procfs_features features;
    struct pid_list list = {0};
    char *many = malloc(100000 * 8);
    size_t length = 0;

    assert_non_null(mkdtemp(root));
    make_directory(root, "5");
    make_directory(root, "5/task");
    make_directory(root, "5/task/5");
    make_directory(root, "5/task/6");
    make_directory(root, "sys");
    write_file(root, "uptime", "1 1\n");
    write_file(root, "5/task/5/stat", "5 (five) S" FIELDS TAIL);
    write_file(root, "5/task/5/schedstat", "");
    /* A list longer than any first buffer. */
    for (int i = 0; i < 100000; i++)
        length += (size_t)sprintf(many + length, "%d ", i + 1);
    write_file(root, "5/task/5/children", many);
    write_file(root, "5/task/6/children", "");

    assert_int_equal(procfs_open(&fs, root), 0);
    procfs_probe(&fs, &features);
    assert_false(features.schedstat);
    assert_false(features.children);
    assert_int_equal(procfs_read_stat(&fs, 5, 5, &stat), 0);
    assert_string_equal(stat.comm, "five");
    assert_int_equal(procfs_read_stat(&fs, 5, 6, &stat), -ESRCH);
    assert_int_equal(procfs_read_stat(&fs, 7, 7, &stat), -ESRCH);
    /* A file of a thread that has just ended reads as empty. */
    assert_int_equal(procfs_read_schedstat(&fs, 5, 5, &schedstat), -ESRCH);

    assert_int_equal(procfs_list_processes(&fs, &list), 0);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0], 5);
    list.count = 0;
    assert_int_equal(procfs_list_threads(&fs, 5, &list), 0);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.items[0] + list.items[1], 11);
    assert_int_equal(procfs_list_threads(&fs, 7, &list), -ESRCH);
    list.count = 0;
    assert_int_equal(procfs_list_children(&fs, 5, 6, &list), 0);
    assert_int_equal(list.count, 0);
    assert_int_equal(procfs_list_children(&fs, 5, 5, &list), 0);
    assert_int_equal(list.count, 100000);
    assert_int_equal(list.items[99999], 100000);
    assert_int_equal(procfs_list_children(&fs, 5, 8, &list), -ESRCH);

    pid_list_free(&list);
    free(many);
    procfs_close(&fs);
    snprintf(command, sizeof(command), "rm -r %s", root);
    assert_int_equal(system(command), 0);
    assert_int_equal(procfs_open(&fs, root), -ENOENT);
    procfs_close(&fs);
}

/* The kernel in use, against what system calls say. */
static void own_thread(void **state)
{
    struct procfs fs;
    struct procfs_stat stat;
    struct procfs_status status;
    struct procfs_features features;
    struct pid_list list = {0};
    struct rusage before, after;
    char comm[16];

    assert_int_equal(procfs_open(&fs, "/proc"), 0);
    assert_int_equal(prctl(PR_SET_NAME, "a) R 1 (b"), 0);
    prctl(PR_GET_NAME, comm);
    assert_int_equal(procfs_read_stat(&fs, getpid(), gettid(), &stat), 0);
    assert_int_equal(stat.tid, gettid());
    assert_string_equal(stat.comm, comm);
    assert_int_equal(stat.state, 'R');
    assert_int_equal(stat.ppid, getppid());
    assert_false(stat.flags & PROCFS_KTHREAD);

    usleep(1000);
    getrusage(RUSAGE_THREAD, &before);
    assert_int_equal(procfs_read_status(&fs, getpid(), gettid(), &status), 0);
    getrusage(RUSAGE_THREAD, &after);
    assert_int_equal(status.tgid, getpid());
    assert_in_range(status.voluntary, (uint64_t)before.ru_nvcsw, (uint64_t)after.ru_nvcsw);
    assert_in_range(status.involuntary, (uint64_t)before.ru_nivcsw, (uint64_t)after.ru_nivcsw);

    procfs_probe(&fs, &features);
    if (features.children) {
        pid_t child = fork();

        if (!child) {
            pause();
            _exit(0);
        }
        assert_int_equal(procfs_list_children(&fs, getpid(), gettid(), &list), 0);
        assert_int_equal(list.count, 1);
        assert_int_equal(list.items[0], child);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    pid_list_free(&list);
    procfs_close(&fs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stat_fields),
        cmocka_unit_test(stat_names),
        cmocka_unit_test(stat_refused),
        cmocka_unit_test(stat_cut_off),
        cmocka_unit_test(status_fields),
        cmocka_unit_test(status_refused),
        cmocka_unit_test(schedstat_fields),
        cmocka_unit_test(pid_lists),
        cmocka_unit_test(tree),
        cmocka_unit_test(own_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
