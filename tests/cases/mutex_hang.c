/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A process that has hung in state D since before anybody looked: splice() holds a pipe's mutex
 * while it waits for a client that never reads, and the one that writes into the pipe waits for
 * that mutex. Prints both numbers, of the one that splices and of the one that hangs.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static char bytes[65536];

static void hang(int to)
{
    prctl(PR_SET_PDEATHSIG, 9);
    prctl(PR_SET_NAME, "backend");
    /* Never for room in the pipe: that would be another wait. */
    fcntl(to, F_SETFL, O_NONBLOCK);
    for (;;) {
        ssize_t written = write(to, bytes, sizeof(bytes));

        (void)written;
        usleep(10000);
    }
}

int main(void)
{
    int ends[2], client[2];
    pid_t child;

    alarm(60);
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, client))
        return 1;
    child = fork();
    if (!child)
        hang(ends[1]);
    prctl(PR_SET_NAME, "proxy");
    printf("%d %d\n", (int)getpid(), (int)child);
    fflush(stdout);
    while (splice(ends[0], NULL, client[0], NULL, sizeof(bytes), 0) > 0)
        ;
    return 1;
}
