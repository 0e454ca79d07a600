// SPDX-License-Identifier: BSD-2-Clause
/* A process that ends, and one whose core is dumped.
 *
 *   ending init          The first process of a pid namespace is killed, while another in it is
 * kept from ending by a debugger. Prints the number of the first, which waits in its exit until
 * this program ends; 0: the kernel refuses. ending core FOLDER   A process with much memory and a
 * thread named "waiter", which waits for a pipe, aborts. Prints 1 if a core was dumped, into
 * FOLDER.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUCH (256u << 20)

static int be_first(void *unused)
{
    if (fork() < 0)
        return 1;
    while (pause())
        continue;
    return 0;
}

/* The only child of a process. */
static pid_t child_of(pid_t pid)
{
    char path[64];
    FILE *file;
    int ret = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    for (int i = 0; i < 2000 && !ret; i++) {
        file = fopen(path, "r");
        if (!file || fscanf(file, "%d", &ret) != 1)
            usleep(1000);
        if (file)
            fclose(file);
    }
    return ret;
}

static int end_first(void)
{
    static char stack[65536];
    pid_t first = clone(be_first, stack + sizeof(stack), CLONE_NEWPID | SIGCHLD, NULL);
    pid_t held = first > 0 ? child_of(first) : 0;

    if (!held || ptrace(PTRACE_SEIZE, held, NULL, PTRACE_O_TRACEEXIT)) {
        puts("0");
        return 0;
    }
    kill(first, SIGKILL);
    printf("%d\n", first);
    fflush(stdout);
    for (;;)
        pause();
}

static void *wait_for_nothing(void *unused)
{
    int nothing[2];
    char byte;

    prctl(PR_SET_NAME, "waiter");
    if (pipe(nothing) || read(nothing[0], &byte, 1) != 1)
        abort();
    return NULL;
}

static void die(void)
{
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    char *memory;
    pthread_t thread;

    if (getrlimit(RLIMIT_CORE, &all))
        abort();
    all.rlim_cur = all.rlim_max;
    setrlimit(RLIMIT_CORE, &all);
    prctl(PR_SET_DUMPABLE, 1);
    memory = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    memset(memory, 1, MUCH);
    pthread_create(&thread, NULL, wait_for_nothing, NULL);
    usleep(50000);
    abort();
}

int main(int argc, char **argv)
{
    int status;
    pid_t child;

    if (argc == 2 && !strcmp(argv[1], "init"))
        return end_first();
    if (argc != 3 || strcmp(argv[1], "core") || chdir(argv[2]))
        return 1;
    child = fork();
    if (!child)
        die();
    if (waitpid(child, &status, 0) != child)
        return 1;
    printf("%d\n", WCOREDUMP(status));
    return 0;
}
