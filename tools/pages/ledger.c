// SPDX-License-Identifier: BSD-2-Clause
// Threads that share a lock, for docs/locks.md: "writer" waits for storage while it holds it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;
static int file;
static long balance;

__attribute__((noinline)) static void book(void)
{
    pthread_mutex_lock(&ledger);
    balance++;
    pthread_mutex_unlock(&ledger);
}

__attribute__((noinline)) static void save(void)
{
    pthread_mutex_lock(&ledger);
    for (int copy = 0; copy < 8; copy++) {
        if (pwrite(file, &balance, sizeof(balance), copy * 4096) != sizeof(balance) || fsync(file))
            abort();
    }
    pthread_mutex_unlock(&ledger);
}

static void *booking(void *name)
{
    pthread_setname_np(pthread_self(), name);
    for (;;) {
        book();
        usleep(100);
    }
}

int main(void)
{
    pthread_t thread;

    file = open("ledger.data", O_RDWR | O_CREAT, 0600);
    if (file < 0 || pthread_create(&thread, NULL, booking, "teller-1") ||
        pthread_create(&thread, NULL, booking, "teller-2"))
        return 1;
    pthread_setname_np(pthread_self(), "writer");
    for (;;) {
        save();
        usleep(100);
    }
}
