/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Holds the mutex of a pipe for as long as it is told to: it writes to the pipe from a page that is
 * not there until then.
 *
 *   holds_lock PIPE    only writes to it, once
 *   holds_lock PIPE GO TOLD NAME USER HIDES [PROGRAM NAME]
 *       becomes this USER first (-1: stays who it is) and, with HIDES 1, one whom nobody may look
 *       into. For a byte "g" from GO: holds it and says "h" to TOLD; for the next byte: lets it go
 *       and says "d". For an "x": execs PROGRAM, which does the same under that name. Says "n"
 * where there is no userfaultfd(2)
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int faults, go, told;
static char *page;
static size_t page_size;

static void say(char what)
{
    if (write(told, &what, 1) != 1)
        exit(EXIT_FAILURE);
}

static char hear(void)
{
    char what;

    if (read(go, &what, 1) != 1)
        exit(EXIT_SUCCESS);
    return what;
}

static void *give_page(void *unused)
{
    for (;;) {
        struct uffdio_zeropage zero = {.range = {(unsigned long)page, page_size}};
        struct uffd_msg message;

        if (read(faults, &message, sizeof(message)) != sizeof(message))
            exit(EXIT_FAILURE);
        say('h');
        hear();
        if (ioctl(faults, UFFDIO_ZEROPAGE, &zero))
            exit(EXIT_FAILURE);
    }
    return NULL;
}

static int open_faults(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};

    page_size = (size_t)sysconf(_SC_PAGESIZE);
    page = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (page == MAP_FAILED || faults < 0 || ioctl(faults, UFFDIO_API, &api))
        return -1;
    range.range.start = (unsigned long)page;
    range.range.len = page_size;
    return ioctl(faults, UFFDIO_REGISTER, &range);
}

int main(int argc, char **argv)
{
    static char stay[] = "-1";
    pthread_t thread;
    long user;
    int to;

    if (argc == 2)
        return write(atoi(argv[1]), "x", 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
    if (argc < 7)
        return EXIT_FAILURE;
    to = atoi(argv[1]);
    go = atoi(argv[2]);
    told = atoi(argv[3]);
    user = atol(argv[5]);
    if (open_faults()) {
        say('n');
        return EXIT_FAILURE;
    }
    if (user > 0 && (setgroups(0, NULL) || setresgid((gid_t)user, (gid_t)user, (gid_t)user) ||
                     setresuid((uid_t)user, (uid_t)user, (uid_t)user)))
        return EXIT_FAILURE;
    if (user >= 0)
        prctl(PR_SET_DUMPABLE, *argv[6] != '1');
    prctl(PR_SET_NAME, argv[4]);
    if (pthread_create(&thread, NULL, give_page, NULL))
        return EXIT_FAILURE;
    for (;;) {
        if (hear() == 'x') {
            char *const args[] = {argv[7], argv[1], argv[2], argv[3], argv[8], stay, argv[6], NULL};

            execv(argv[7], args);
            return EXIT_FAILURE;
        }
        if (write(to, page, 1) != 1 || madvise(page, page_size, MADV_DONTNEED))
            return EXIT_FAILURE;
        say('d');
    }
}
