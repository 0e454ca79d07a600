// SPDX-License-Identifier: BSD-2-Clause
/* Threads whose waits have no stack, each for a reason of its own: "brief" sleeps for a third of a
 * millisecond at a time, "bare" waits for ever without a stack pointer. The first waits for a
 * signal and has one. With an argument sixty are as "brief", and nice. Prints its number. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *brief(void *unused)
{
    pthread_setname_np(pthread_self(), "brief");
    for (;;)
        usleep(300);
    return unused;
}

static void *bare(void *unused)
{
    pthread_setname_np(pthread_self(), "bare");
#ifdef __x86_64__
    __asm__ volatile("xor %%esp, %%esp\n\tmov $34, %%eax\n1:\n\tsyscall\n\tjmp 1b" /* pause */
                     ::
                         : "rax", "rcx", "r11", "memory");
#else
    pause();
#endif
    return unused;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? 64 : 2;
    pthread_t thread;

    (void)argv;
    alarm(60);
    if (argc > 1 && nice(19) < 0)
        return 1;
    for (int i = 0; i < count; i++) {
        if (pthread_create(&thread, NULL, i == 1 && argc == 1 ? bare : brief, NULL))
            return 1;
    }
    printf("%d\n", (int)getpid());
    fflush(stdout);
    pause();
    return 0;
}
