/* SPDX-License-Identifier: BSD-2-Clause */
#include "syncer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <sqlite3.h>

#define LOG_PAGES                                                                                  \
    16384 /* 64 MiB: from then on a commit waits a moment, so that the log, once all               \
             of it is in the file, begins anew */
#define WAIT_NS 50000000 /* less than the rings of switches hold */

struct syncer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t told, done;
    uint64_t commits, synced; /* how many there were, and of these in the file */
    bool ends;
    sqlite3 *db, *followed;
};

static void *sync_on(void *arg)
{
    struct syncer *s = arg;

    pthread_mutex_lock(&s->lock);
    while (!s->ends) {
        uint64_t commits = s->commits;

        if (commits == s->synced) {
            pthread_cond_wait(&s->told, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        pthread_mutex_lock(&s->lock);
        s->synced = commits;
        pthread_cond_signal(&s->done);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Called by SQLite after each commit. */
static int tell(void *arg, sqlite3 *db, const char *name, int pages)
{
    struct syncer *s = arg;
    struct timespec until;

    pthread_mutex_lock(&s->lock);
    s->commits++;
    pthread_cond_signal(&s->told);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (pages > LOG_PAGES && s->synced != s->commits) {
        if (pthread_cond_timedwait(&s->done, &s->lock, &until))
            break;
    }
    pthread_mutex_unlock(&s->lock);
    return SQLITE_OK;
}

static void prepare(struct syncer *s)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->told, NULL);
    pthread_cond_init(&s->done, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Signals are the other threads'. */
static int start_thread(struct syncer *s)
{
    sigset_t all, before;
    int result;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    result = pthread_create(&s->thread, NULL, sync_on, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -result;
}

static void destroy(struct syncer *s)
{
    sqlite3_close(s->db);
    pthread_cond_destroy(&s->told);
    pthread_cond_destroy(&s->done);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int syncer_start(const char *path, sqlite3 *db, struct syncer **ret)
{
    struct syncer *s = calloc(1, sizeof(*s));
    int result = -EIO;

    if (!s)
        return -ENOMEM;
    prepare(s);
    s->followed = db;
    if (sqlite3_threadsafe() &&
        sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_exec(s->db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL) == SQLITE_OK)
        result = start_thread(s);
    if (result) {
        destroy(s);
        return result;
    }
    sqlite3_exec(db, "PRAGMA synchronous=OFF", NULL, NULL, NULL);
    sqlite3_wal_hook(db, tell, s); /* in place of the checkpoints after commits */
    *ret = s;
    return 0;
}

void syncer_stop(struct syncer *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_cond_signal(&s->told);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    sqlite3_wal_autocheckpoint(s->followed, 1000); /* as without one */
    sqlite3_exec(s->followed, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
    destroy(s);
}
