/* SPDX-License-Identifier: BSD-2-Clause
 *
 * record_bombs WAY: threads, processes, programs or mappings, one after the other and many at once,
 * for a recorder to keep up with. Prints "done" at the end. record_bombs calls ADDRESS: runs and
 * waits for ever, with that return address on its stack, after it has printed that.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *rest(void *unused)
{
    usleep(200000);
    return unused;
}

static int threads(void)
{
    pthread_attr_t small;
    pthread_t thread;
    int made = 0;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < 5000; i++)
        made += !pthread_create(&thread, &small, rest, NULL);
    usleep(400000);
    return made > 1000;
}

static int processes(void)
{
    for (int i = 0; i < 1000; i++) {
        pid_t pid = fork();

        if (!pid)
            _exit(0);
        waitpid(pid, NULL, 0);
    }
    return 1;
}

static int programs(const char *own, int left)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", left - 1);
    return left <= 1 || execl(own, own, "programs", number, (char *)NULL);
}

/* Near the number that a process may have (vm.max_map_count), each of this program. */
static int mappings(const char *own)
{
    int fd = open(own, O_RDONLY | O_CLOEXEC), made = 0;

    for (int i = 0; i < 65000; i++)
        made += mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
                     i % 2 * 4096) != MAP_FAILED;
    return made > 10000;
}

/* Does not end, for nobody is there to return to. */
__attribute__((noinline)) static void called_from(uintptr_t address)
{
    const struct timespec moment = {.tv_nsec = 20000000};

    ((volatile uintptr_t *)__builtin_frame_address(0))[1] = address;
    puts("done");
    fflush(stdout);
    for (;;) {
        for (volatile int i = 0; i < 10000000; i++)
            ;
        nanosleep(&moment, NULL);
    }
}

static int calls(const char *address)
{
    called_from(address ? (uintptr_t)strtoull(address, NULL, 16) : 0);
    return 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int good = !strcmp(way, "threads")     ? threads()
               : !strcmp(way, "processes") ? processes()
               : !strcmp(way, "programs")  ? programs(argv[0], argc > 2 ? atoi(argv[2]) : 200)
               : !strcmp(way, "mappings")  ? mappings(argv[0])
               : !strcmp(way, "calls")     ? calls(argv[2])
                                           : 0;

    puts(good ? "done" : "failed");
    return !good;
}
