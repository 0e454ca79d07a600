/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A second thread for what takes the kernel long: waiting for its readers, loading programs. One
 * job at a time, which the loop gives it; the loop learns of its end by a descriptor, and takes
 * no part of what the job works on meanwhile.
 */
#ifndef PRCB_DAEMON_WORKER_H
#define PRCB_DAEMON_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include <prcb/error.h>

struct worker {
    pthread_t thread;
    int asked, done;        /* eventfd; done: readable when the job is over */
    bool busy;              /* the loop's own: a job was given and its end not taken */
    void (*job)(void *arg); /* NULL: the thread is to end */
    void *arg;
};

/* After privileges were dropped, for these are each thread's own. */
int worker_start(struct worker *w, struct prcb_error *err);

/* Not while it is busy. */
void worker_give(struct worker *w, void (*job)(void *arg), void *arg);

/* Waits for the end of the job, if there is one, and takes it. */
void worker_take(struct worker *w);

/* Takes the end of the last job as well. */
void worker_stop(struct worker *w);

#endif
