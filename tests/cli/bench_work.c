/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program whose cost is known: N million steps; and with "lock" a mutex that another thread holds
 * for 20 ms, with "pages" M so many pages, touched once.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void cache_get(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;

static void *hold(void *arg)
{
    const struct timespec pause = {.tv_nsec = 20000000};

    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&held);
    nanosleep(&pause, NULL);
    pthread_mutex_unlock(&lock);
    return arg;
}

__attribute__((noinline)) void cache_get(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static void wait_for_lock(void)
{
    pthread_t thread;

    pthread_barrier_init(&held, NULL, 2);
    pthread_create(&thread, NULL, hold, NULL);
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

int main(int argc, char **argv)
{
    uint64_t state = 1, steps = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000000 : 0;

    for (uint64_t i = 0; i < steps; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(state));
    }
    if (argc > 2 && !strcmp(argv[2], "lock"))
        wait_for_lock();
    if (argc > 3 && !strcmp(argv[2], "pages"))
        touch(strtoull(argv[3], NULL, 10));
    return 0;
}
