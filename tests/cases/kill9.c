// SPDX-License-Identifier: BSD-2-Clause
/* A process that SIGKILL does not end: in its exit it closes a file whose file system, a FUSE
 * server, says nothing to FLUSH.
 *
 *   kill9 FOLDER   Mounts the file system there, for itself alone. Prints the number of the killed
 * process once it waits in its exit, which it does until this program ends; 0: the kernel refuses.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int device;

static void give_up(void)
{
    puts("0");
    exit(0);
}

/* Its last call is for an event, and so would be its cause. */
static void be_killed(const char *folder)
{
    struct epoll_event event;
    char path[4096];
    int events = epoll_create1(0);

    prctl(PR_SET_NAME, "killed-job");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(device);
    snprintf(path, sizeof(path), "%s/f", folder);
    if (open(path, O_RDONLY) < 0)
        exit(1);
    for (;;)
        epoll_wait(events, &event, 1, -1);
}

static void answer(const struct fuse_in_header *in, const void *out, size_t length)
{
    char reply[sizeof(struct fuse_out_header) + sizeof(struct fuse_entry_out)];
    const struct fuse_out_header head = {(uint32_t)(sizeof(head) + length), 0, in->unique};

    memcpy(reply, &head, sizeof(head));
    memcpy(reply + sizeof(head), out, length);
    if (write(device, reply, head.len) < 0 && in->opcode != FUSE_INTERRUPT)
        give_up();
}

/* Returns true once FLUSH is asked for. */
static bool serve(const struct fuse_in_header *in, pid_t child)
{
    const struct fuse_init_out init = {.major = 7, .minor = 31, .max_write = 4096};
    const struct fuse_attr_out attr = {.attr = {.mode = S_IFDIR | 0755}};
    const struct fuse_open_out opened = {0};
    const struct fuse_entry_out entry = {.nodeid = 2,
                                         .attr_valid = 100,
                                         .entry_valid = 100,
                                         .attr = {.mode = S_IFREG | 0644, .nlink = 1, .ino = 2}};

    switch (in->opcode) {
    case FUSE_INIT:
        answer(in, &init, sizeof(init));
        break;
    case FUSE_LOOKUP:
        answer(in, &entry, sizeof(entry));
        break;
    case FUSE_GETATTR:
        answer(in, &attr, sizeof(attr));
        break;
    case FUSE_OPEN:
        answer(in, &opened, sizeof(opened));
        kill(child, SIGKILL);
        break;
    case FUSE_FLUSH:
        return true;
    default:
        break;
    }
    return false;
}

int main(int argc, char **argv)
{
    static char request[1 << 17];
    char options[128];
    pid_t child;

    device = argc > 1 ? open("/dev/fuse", O_RDWR | O_CLOEXEC) : -1;
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
    if (device < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("kill9", argv[1], "fuse", 0, options))
        give_up();
    child = fork();
    if (!child)
        be_killed(argv[1]);
    while (read(device, request, sizeof(request)) > 0) {
        if (serve((const void *)request, child))
            break;
    }
    printf("%d\n", child);
    fflush(stdout);
    for (;;)
        pause();
}
