/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A set-user-id program of root's that does as such programs do: works as who called it, and keeps
 * the right to be root again.
 */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (seteuid(getuid()))
        return EXIT_FAILURE;
    sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    return EXIT_SUCCESS;
}
