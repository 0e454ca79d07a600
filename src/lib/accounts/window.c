/* SPDX-License-Identifier: BSD-2-Clause */
#include "window.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_BYTES (64u << 10) /* then twice as much each time */

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

static bool map_part(const struct window *w, size_t from, size_t to)
{
    return mmap(w->at + from, to - from, PROT_READ, MAP_SHARED | MAP_FIXED, w->fd, (off_t)from) !=
           MAP_FAILED;
}

/* The last page says that the others are there; it is given back. */
static bool has_all(const struct window *w)
{
    size_t last = w->bytes - (size_t)sysconf(_SC_PAGESIZE);

    return map_part(w, last, w->bytes) &&
           mmap(w->at + last, w->bytes - last, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

int window_open(int fd, size_t bytes, bool whole, struct window *ret)
{
    struct window w = {.bytes = whole_pages(bytes), .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
    size_t first = whole || w.fd < 0 || w.bytes < FIRST_BYTES ? w.bytes : FIRST_BYTES;
    int result = 0;

    if (w.fd < 0)
        w.fd = fd; /* without one of its own all is mapped now */
    w.at = mmap(NULL, w.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w.at == MAP_FAILED || !has_all(&w) || !map_part(&w, 0, first))
        result = -errno;
    if ((result || first == w.bytes) && w.fd != fd)
        close(w.fd);
    if (result) {
        if (w.at != MAP_FAILED)
            munmap(w.at, w.bytes);
        return result;
    }
    *ret = w;
    ret->reached = first;
    ret->fd = first == w.bytes ? -1 : w.fd;
    pthread_mutex_init(&ret->lock, NULL);
    return 0;
}

void window_close(struct window *w)
{
    if (!w->at)
        return;
    munmap(w->at, w->bytes);
    if (w->fd >= 0)
        close(w->fd);
    pthread_mutex_destroy(&w->lock);
    memset(w, 0, sizeof(*w));
}

static void grow(struct window *w, size_t bytes)
{
    size_t reached = w->reached, want = reached;

    while (want < bytes)
        want = want > w->bytes / 2 ? w->bytes : want * 2;
    if (want == reached || !map_part(w, reached, want))
        return;
    /* This is a release store: it pairs with the load of who does not take the lock. */
    __atomic_store_n(&w->reached, want, __ATOMIC_RELEASE);
    if (want == w->bytes) {
        close(w->fd);
        w->fd = -1;
    }
}

size_t window_reach(struct window *w, size_t bytes)
{
    bytes = bytes < w->bytes ? bytes : w->bytes;
    if (bytes > __atomic_load_n(&w->reached, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&w->lock);
        grow(w, bytes);
        pthread_mutex_unlock(&w->lock);
    }
    return __atomic_load_n(&w->reached, __ATOMIC_RELAXED);
}
