/* SPDX-License-Identifier: BSD-2-Clause
 *
 * An event loop as nginx's worker has it, which wakes up every so many milliseconds (50, or the
 * argument). Prints its number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

int ngx_epoll_process_events(int epoll, int ms);

__attribute__((noinline)) int ngx_epoll_process_events(int epoll, int ms)
{
    struct epoll_event event;
    int count = epoll_wait(epoll, &event, 1, ms);

    __asm__ volatile("" ::: "memory"); /* no tail call: the function stays on the stack */
    return count;
}

int main(int argc, char **argv)
{
    int epoll = epoll_create1(0);

    alarm(60);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    for (;;)
        ngx_epoll_process_events(epoll, argc > 1 ? atoi(argv[1]) : 50);
}
