// SPDX-License-Identifier: BSD-2-Clause
/* Sixty threads wake the first one by a pipe, each in its turn, and one named "friend" by an
 * eventfd, ten times as often and at once. All on one processor, so that the first one is behind
 * each of them as well. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CROWD  60
#define ROUNDS 20

static sem_t go[CROWD + 1];
static int bytes[2], event;

static void *of_the_crowd(void *arg)
{
    sem_t *mine = arg;

    for (int i = 0; i < ROUNDS; i++) {
        while (sem_wait(mine))
            continue;
        usleep(200);
        if (write(bytes[1], "x", 1) != 1)
            abort();
    }
    return NULL;
}

static void *be_a_friend(void *arg)
{
    sem_t *mine = arg;
    uint64_t one = 1;

    prctl(PR_SET_NAME, "friend");
    for (int i = 0; i < ROUNDS * CROWD / 6; i++) {
        while (sem_wait(mine))
            continue;
        if (write(event, &one, sizeof(one)) != sizeof(one))
            abort();
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[CROWD + 1];
    uint64_t word;
    cpu_set_t set;
    char byte;

    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    event = eventfd(0, 0);
    if (sched_setaffinity(0, sizeof(set), &set) || pipe(bytes) || event < 0)
        return 1;
    for (int i = 0; i <= CROWD; i++) {
        sem_init(&go[i], 0, 0);
        pthread_create(&threads[i], NULL, i < CROWD ? of_the_crowd : be_a_friend, &go[i]);
    }
    prctl(PR_SET_NAME, "woken");
    for (int i = 0; i < ROUNDS * CROWD; i++) {
        sem_post(&go[i % CROWD]);
        if (read(bytes[0], &byte, 1) != 1)
            return 1;
        if (i % 6)
            continue;
        sem_post(&go[CROWD]);
        if (read(event, &word, sizeof(word)) != sizeof(word))
            return 1;
    }
    for (int i = 0; i <= CROWD; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
