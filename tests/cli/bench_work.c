/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program whose cost is known: N million steps (also 0.5), and then in pairs, as often as wanted:
 * "lock" MS a mutex that another thread holds for so many milliseconds (alone: 20) after it is
 * asked for, "pages" M so many pages, touched once, "sync" FILE a page written to a new file, and
 * to the disk.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void cache_get(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;
static atomic_bool asked;

static void *hold(void *arg)
{
    const long *ms = arg;
    const struct timespec pause = {.tv_sec = *ms / 1000, .tv_nsec = *ms % 1000 * 1000000};
    const struct timespec moment = {.tv_nsec = 100000};

    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&held);
    /* Where the other thread gets no processor in time, it would find the mutex free. */
    while (!atomic_load(&asked))
        nanosleep(&moment, NULL);
    nanosleep(&pause, NULL);
    pthread_mutex_unlock(&lock);
    return NULL;
}

__attribute__((noinline)) void cache_get(void)
{
    atomic_store(&asked, true);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static void wait_for_lock(long ms)
{
    pthread_t thread;

    pthread_barrier_init(&held, NULL, 2);
    pthread_create(&thread, NULL, hold, &ms);
    pthread_barrier_wait(&held);
    cache_get();
    pthread_join(thread, NULL);
}

static void touch(size_t count)
{
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, count * (size_t)page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (size_t i = 0; i < count; i++)
        *(volatile char *)(pages + i * (size_t)page) = 1;
}

static int sync_file(const char *path)
{
    char page[4096] = {1};
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int failed = fd < 0 || write(fd, page, sizeof(page)) < 0 || fsync(fd);

    return failed | (fd >= 0 ? close(fd) : 0) | unlink(path);
}

static int act(const char *what, const char *value)
{
    if (!strcmp(what, "lock"))
        wait_for_lock(value ? strtol(value, NULL, 10) : 20);
    else if (value && !strcmp(what, "pages"))
        touch(strtoull(value, NULL, 10));
    else if (value && !strcmp(what, "sync"))
        return sync_file(value) ? 1 : 0;
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t state = 1, steps = argc > 1 ? (uint64_t)(strtod(argv[1], NULL) * 1e6) : 0;
    int failed = 0;

    for (uint64_t i = 0; i < steps; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(state));
    }
    for (int i = 2; i < argc; i += 2)
        failed |= act(argv[i], i + 1 < argc ? argv[i + 1] : NULL);
    return failed;
}
