/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "error.h"

/* The kernel orders what was written before one side's write(2) before what the other reads after
 * its read(2): `job` and `arg`, and all that they name, need nothing further. */
static void signal_to(int fd)
{
    const uint64_t one = 1;

    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void wait_on(int fd)
{
    uint64_t count;

    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}

static void *work(void *arg)
{
    struct worker *w = arg;

    for (;;) {
        wait_on(w->asked);
        w->job(w->arg);
        signal_to(w->done);
    }
    return NULL;
}

int worker_start(struct worker *w, struct prcb_error *err)
{
    int result;

    w->asked = eventfd(0, EFD_CLOEXEC);
    w->done = eventfd(0, EFD_CLOEXEC);
    if (w->asked < 0 || w->done < 0)
        return prcb_fail(err, -errno, "an eventfd cannot be made: %s", strerror(errno));
    result = pthread_create(&w->thread, NULL, work, w);
    return result
               ? prcb_fail(err, -result, "a second thread cannot be started: %s", strerror(result))
               : 0;
}

void worker_give(struct worker *w, void (*job)(void *arg), void *arg)
{
    w->job = job;
    w->arg = arg;
    w->busy = true;
    signal_to(w->asked);
}

void worker_take(struct worker *w)
{
    if (w->busy)
        wait_on(w->done);
    w->busy = false;
}
