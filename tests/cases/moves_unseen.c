/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Runs a program with accounts of its threads, by eBPF programs of which one is missing: that which
 * is told of moves. So it is where the kernel does not report a move to programs, as on a virtual
 * machine that runs none in the context of a virtual machine's own processes.
 *
 *   moves_unseen THREAD PROGRAM ARGUMENTS...
 *
 * Prints, behind what the program printed, of its thread of that name: nanoseconds that it was
 * ready, that it slept, that it waited in all, and its unclear wakes.
 */
#include <bpf/bpf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/prcb.h>

static void end_if(bool wrong, const char *what)
{
    if (!wrong)
        return;
    fprintf(stderr, "moves_unseen: %s\n", what);
    exit(1);
}

/* Whether a descriptor keeps a program of this name attached. */
static bool attaches(int fd, const char *name)
{
    char path[64], is[64] = "";
    struct bpf_link_info link = {0};
    struct bpf_prog_info program = {0};
    unsigned size = sizeof(link);
    int program_fd;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (readlink(path, is, sizeof(is) - 1) < 0 || strcmp(is, "anon_inode:bpf_link") ||
        bpf_obj_get_info_by_fd(fd, &link, &size))
        return false;
    program_fd = bpf_prog_get_fd_by_id(link.prog_id);
    size = sizeof(program);
    if (program_fd < 0 || bpf_obj_get_info_by_fd(program_fd, &program, &size))
        return false;
    close(program_fd);
    return !strcmp(program.name, name);
}

static bool detach(const char *name)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    for (int fd = 0; fd < 1024; fd++) {
        if (attaches(fd, name))
            return dup3(nothing, fd, O_CLOEXEC) == fd && !close(nothing);
    }
    return false;
}

static int print_thread(const struct prcb_account *a, void *name)
{
    if (strcmp(a->comm, name))
        return 0;
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", a->ready_ns,
           a->waits[PRCB_CAUSE_SLEEP].ns, a->wait_ns, a->unclear_wakes);
    return 0;
}

int main(int argc, char **argv)
{
    struct prcb_options options = {.size = sizeof(options), .tier = PRCB_TIER_BPF};
    struct prcb_error err = {0};
    struct prcb *p = NULL;
    int go[2], status;
    pid_t child;
    char byte;

    end_if(argc < 3 || pipe2(go, O_CLOEXEC), "usage: moves_unseen THREAD PROGRAM ARGUMENTS...");
    child = fork();
    if (!child) {
        close(go[1]);
        if (read(go[0], &byte, 1) == 1)
            execvp(argv[2], argv + 2);
        _exit(127);
    }
    prcb_open(&options, &p, &err);
    end_if(!p, err.text);
    detach("prcb_move"); /* a kernel that moves no sleepers has none */
    end_if(prcb_profile_process(p, child, PRCB_FOLLOW_ALL, &err), err.text);
    end_if(write(go[1], "", 1) != 1 || waitpid(child, &status, 0) != child || status, argv[2]);
    end_if(prcb_walk(p, print_thread, argv[1], &err) < 0, err.text);
    prcb_close(p);
    return 0;
}
