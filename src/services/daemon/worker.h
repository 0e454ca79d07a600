/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A second thread for work that takes the kernel long: waiting for its readers, loading
 * programs. The loop gives it one job at a time; the loop learns of the job's end by a
 * descriptor, and touches nothing that the job works on meanwhile.
 */
#ifndef PRCB_DAEMON_WORKER_H
#define PRCB_DAEMON_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include <prcb/error.h>

struct worker {
    pthread_t thread;
    int asked, done; /* eventfd; done: readable when the job is over */
    bool busy;       /* only the loop uses it: a job was given and its end not taken */
    void (*job)(void *arg);
    void *arg;
};

/* Starts the thread, which ends with the process. Call it after privileges were dropped, for each
 * thread has its own. */
int worker_start(struct worker *w, struct prcb_error *err);

/* Gives it a job; must not be called while it is busy. */
void worker_give(struct worker *w, void (*job)(void *arg), void *arg);

/* Waits for the end of the job, if there is one, and takes note of it. */
void worker_take(struct worker *w);

#endif
