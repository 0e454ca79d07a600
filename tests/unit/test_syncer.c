/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who writes a recording does not wait for the disk, and loses nothing. The disk is slow: the C
 * library's call is replaced.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "syncer.h"

#define ROWS 200

static _Atomic unsigned own_syncs, other_syncs;
static pthread_t writer;

static int sync_slowly(void)
{
    if (pthread_equal(pthread_self(), writer)) {
        own_syncs++;
    } else {
        other_syncs++;
        usleep(20000);
    }
    return 0;
}

/* In place of libc's, for SQLite as well. */
__attribute__((visibility("default"))) int fdatasync(int fd)
{
    return sync_slowly();
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    return sync_slowly();
}

static void run(sqlite3 *db, const char *sql)
{
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static int count_rows(const char *path)
{
    sqlite3_stmt *statement;
    sqlite3 *db;
    int count;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM t", -1, &statement, NULL), 0);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    count = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return count;
}

static void another_waits_for_the_disk(void **state)
{
    char folder[] = "/tmp/prcb-syncer-XXXXXX", path[64];
    struct syncer *syncer = NULL;
    sqlite3 *db;

    writer = pthread_self();
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/t.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE t(x)");
    assert_int_equal(syncer_start(path, db, &syncer), 0);
    own_syncs = 0;
    for (int i = 0; i < ROWS; i++)
        run(db, "INSERT INTO t VALUES(randomblob(9000))"); /* some are a checkpoint's worth */
    assert_int_equal(own_syncs, 0);
    syncer_stop(syncer);
    assert_true(other_syncs > 0);
    own_syncs = 0;
    run(db, "PRAGMA journal_mode=DELETE");
    assert_true(own_syncs > 0); /* the last one is its own again */
    sqlite3_close(db);
    assert_int_equal(count_rows(path), ROWS);
    assert_int_equal(unlink(path), 0); /* and nothing is beside it */
    assert_int_equal(rmdir(folder), 0);
}

static void what_is_no_database(void **state)
{
    struct syncer *syncer = NULL;
    sqlite3 *db;

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_true(syncer_start("/nonexistent/t.db", db, &syncer) < 0);
    assert_null(syncer);
    syncer_stop(NULL);
    sqlite3_close(db);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_waits_for_the_disk),
        cmocka_unit_test(what_is_no_database),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
