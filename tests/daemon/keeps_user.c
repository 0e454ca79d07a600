/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A set-user-id program of root's that does as such programs do: works as who called it, and keeps
 * the right to be root again. With a second argument it creates as many processes when it gets a
 * byte.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char byte;

    if (seteuid(getuid()))
        return EXIT_FAILURE;
    if (argc > 2 && read(STDIN_FILENO, &byte, 1) == 1) {
        for (int i = atoi(argv[2]); i > 0; i--) {
            if (!fork())
                _exit(0);
        }
        while (wait(NULL) > 0)
            ;
    }
    sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    return EXIT_SUCCESS;
}
