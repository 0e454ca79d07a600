// SPDX-License-Identifier: BSD-2-Clause
/* hangs WAY FOLDER: a process of an ordinary user whose memory or files never answer: the first
 * process serves a file system (FUSE) at FOLDER that says nothing about what matters, the second
 * waits as WAY says. Prints the second's number. When the first ends, all that waits for it does.
 * As root, for /dev/fuse and the mount, which the user's fusermount3 would make as well. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY 65534
#define PAGE   65536 /* of any machine, or a multiple of it */
#define SIZE   (16 * PAGE)

static int device, file, epoll;
static char *memory;

static void check(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

/* ---- the server ---- */

static void reply(uint64_t id, int error, const void *bytes, size_t length)
{
    char out[4096];
    struct fuse_out_header head = {(uint32_t)(sizeof(head) + length), error, id};

    memcpy(out, &head, sizeof(head));
    if (length)
        memcpy(out + sizeof(head), bytes, length);
    if (write(device, out, head.len) < 0 && errno != ENOENT)
        exit(0);
}

static void describe(struct fuse_attr *attr, uint64_t node)
{
    *attr = (struct fuse_attr){.ino = node,
                               .mode = node == 1 ? 040777 : 0100777,
                               .nlink = 1,
                               .size = node == 1 ? 0 : SIZE,
                               .blksize = 4096};
}

static void answer(const struct fuse_in_header *in)
{
    const struct fuse_init_in *init = (const void *)(in + 1);
    struct fuse_init_out out = {.major = 7,
                                .minor = init->minor < 31 ? init->minor : 31,
                                .max_background = 16,
                                .congestion_threshold = 12,
                                .max_write = 4096};
    struct fuse_entry_out entry = {.nodeid = 2, .entry_valid = 9999, .attr_valid = 9999};
    struct fuse_attr_out attr = {.attr_valid = 9999};
    struct fuse_open_out opened = {.fh = 1, .open_flags = FOPEN_KEEP_CACHE};

    describe(&entry.attr, 2);
    describe(&attr.attr, in->nodeid);
    switch (in->opcode) {
    case FUSE_INIT:
        reply(in->unique, 0, &out, sizeof(out));
        return;
    case FUSE_LOOKUP:
        if (!strcmp((const char *)(in + 1), "f"))
            reply(in->unique, 0, &entry, sizeof(entry));
        return;
    case FUSE_GETATTR:
        reply(in->unique, 0, &attr, sizeof(attr));
        return;
    case FUSE_OPEN:
        reply(in->unique, 0, &opened, sizeof(opened));
        return;
    case FUSE_ACCESS:
        reply(in->unique, -ENOSYS, NULL, 0);
        return;
    default: /* READ, POLL, FLUSH, STATFS: nothing, ever */
        return;
    }
}

static void serve(void)
{
    static char bytes[1 << 20];
    ssize_t got;

    while ((got = read(device, bytes, sizeof(bytes))) > 0 || errno == EINTR || errno == ENOENT) {
        if (got > 0)
            answer((const void *)bytes);
    }
}

/* ---- ways to wait ---- */

static void put_file_at(char *place)
{
    check(mmap(place, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) != MAP_FAILED,
          "mmap");
}

static void *pause_on(void *stack)
{
    prctl(PR_SET_NAME, "hanging");
#if defined(__x86_64__)
    __asm__ volatile("mov %0,%%rsp\n1: mov $34,%%eax\nsyscall\njmp 1b" ::"r"(stack) : "memory");
#elif defined(__aarch64__)
    __asm__ volatile(
        "mov sp,%0\n1: mov x8,#73\nmov x0,#0\nmov x1,#0\nmov x2,#0\nmov x3,#0\nsvc 0\nb 1b" ::"r"(
            stack)
        : "memory");
#endif
    return NULL;
}

static void *wait_for_word(void *word)
{
    prctl(PR_SET_NAME, "hanging");
    for (;;)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return word;
}

static void *poll_list(void *list)
{
    prctl(PR_SET_NAME, "hanging");
    for (;;)
        poll(list, 1, -1);
    return list;
}

static void *wait_for_events(void *unused)
{
    struct epoll_event event;

    prctl(PR_SET_NAME, "hanging");
    for (;;)
        epoll_wait(epoll, &event, 1, -1);
    return unused;
}

static void *add_file(void *unused)
{
    struct epoll_event event = {.events = EPOLLIN};

    epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event);
    return unused;
}

static void serve_faults(void)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {(uintptr_t)memory, SIZE},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};

    memory[PAGE / 2 + 12288] = 1; /* there: what lies before it is asked for */
    check(fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &range),
          "userfaultfd");
}

static void begin(void *(*run)(void *), void *with)
{
    pthread_t thread;

    check(!pthread_create(&thread, NULL, run, with), "pthread_create");
    usleep(100000);
}

static void hang(const char *way)
{
    if (!strcmp(way, "stack")) {
        put_file_at(memory);
        begin(pause_on, memory + PAGE / 2);
    } else if (!strcmp(way, "fault")) {
        serve_faults();
        begin(pause_on, memory + PAGE / 2);
    } else if (!strcmp(way, "word")) {
        begin(wait_for_word, memory);
        put_file_at(memory);
    } else if (!strcmp(way, "list")) {
        *(struct pollfd *)memory = (struct pollfd){.fd = -1};
        begin(poll_list, memory);
        put_file_at(memory);
    } else if (!strcmp(way, "epoll")) {
        epoll = epoll_create1(EPOLL_CLOEXEC);
        begin(wait_for_events, NULL);
        begin(add_file, NULL);
    } else if (!strcmp(way, "lock")) {
        /* Its files are closed, which asks the server, with the lock that /proc/PID takes. */
        fcntl(file, F_SETFD, FD_CLOEXEC);
        execl("/bin/sleep", "sleep", "1000", NULL);
    }
}

int main(int argc, char **argv)
{
    char options[128], path[4096];
    pid_t pid;

    if (argc != 3)
        return 2;
    check(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "unshare");
    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    check(device >= 0, "/dev/fuse");
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
             device);
    check(!mount("hangs", argv[2], "fuse", 0, options), "mount");
    pid = fork();
    if (pid) {
        serve();
        return 0;
    }
    close(device);
    snprintf(path, sizeof(path), "%s/f", argv[2]);
    file = open(path, O_RDONLY);
    memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(file >= 0 && memory != MAP_FAILED, path);
    if (!strcmp(argv[1], "fault"))
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    else
        check(!setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY), "setuid");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 1);
    printf("%d\n", getpid());
    fflush(stdout);
    hang(argv[1]);
    for (;;)
        pause();
}
