/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Waits whose system call alone does not say what they are for, by the first argument. Prints the
 * number of the thread that waits, and of the process that it waits for (0: nobody).
 *
 *   client      splice from a pipe that is full to the socket of a client that reads seldom
 *   writer      the same from a pipe that is filled seldom; the client reads
 *   linger      close of a socket whose peer does not take what was sent
 *   supervisor  mkdir, of which a supervisor (seccomp) answers each after a tenth of a second
 *   exec        execve, while another thread of the process cannot end: it is traced
 *   fault       memory whose handler (userfaultfd) gives nothing
 *   read        the same in read(2)
 *   memory PATH more of it than the cgroup may have which is entered by this file
 *   NAME USER   as this user, once all is set up
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY (1 << 20)

static char bytes[MANY];
static unsigned user;

static void say(pid_t waiter, pid_t other)
{
    printf("%d %d\n", (int)waiter, (int)other);
    fflush(stdout);
}

/* Names the process, of the user that was asked for. */
static void become(const char *name)
{
    if (user && (setresgid(user, user, user) || setresuid(user, user, user)))
        exit(3);
    prctl(PR_SET_DUMPABLE, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    alarm(60);
}

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

/* ---- a proxy ---- */

static void read_slowly(int from, unsigned us)
{
    while (read(from, bytes, 20000) > 0)
        usleep(us);
    _exit(0);
}

static void write_slowly(int to, unsigned us)
{
    while (write(to, bytes, us ? 1 : 65536) > 0)
        usleep(us);
    _exit(0);
}

static void by_splice(int slow_client)
{
    pid_t client, writer;
    int ends[2], peers[2];

    if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, peers))
        return;
    client = fork();
    if (!client) {
        become("client");
        close(peers[0]);
        close(ends[0]);
        close(ends[1]);
        read_slowly(peers[1], slow_client ? 50000 : 0);
    }
    close(peers[1]);
    writer = fork();
    if (!writer) {
        become("writer");
        close(peers[0]);
        close(ends[0]);
        write_slowly(ends[1], slow_client ? 0 : 50000);
    }
    close(ends[1]);
    become("proxy");
    say(getpid(), slow_client ? client : writer);
    while (splice(ends[0], NULL, peers[0], NULL, 65536, 0) > 0)
        ;
}

static void by_linger(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct linger linger = {1, 60};
    socklen_t length = sizeof(address);
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);

    become("linger");
    if (bind(server, (void *)&address, length) || listen(server, 5) ||
        getsockname(server, (void *)&address, &length) ||
        connect(client, (void *)&address, length) || accept(server, NULL, NULL) < 0)
        return;
    while (send(client, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
    setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    say(getpid(), 0);
    close(client);
}

/* ---- a supervisor ---- */

static int make_supervised(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdirat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

static void supervise(int fd)
{
    for (;;) {
        struct seccomp_notif question = {0};
        struct seccomp_notif_resp answer = {.error = -EPERM};

        if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &question))
            return;
        usleep(100000);
        answer.id = question.id;
        ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

static void by_supervisor(void)
{
    int fd = make_supervised();
    pid_t child = fork();

    if (fd < 0)
        return;
    if (!child) {
        become("sandboxed");
        close(fd);
        for (;;)
            mkdirat(AT_FDCWD, "/none/none", 0700);
    }
    become("supervisor");
    say(child, getpid());
    supervise(fd);
}

/* ---- execve ---- */

static void *sleep_on(void *file)
{
    pid_t tid = gettid();

    if (write(*(int *)file, &tid, sizeof(tid)) == sizeof(tid))
        wait_for_ever();
    return NULL;
}

static void by_exec(void)
{
    int tids[2], go[2], status;
    pthread_t thread;
    pid_t child, tid;
    char byte;

    if (pipe(tids) || pipe(go))
        return;
    child = fork();
    if (!child) {
        become("execs");
        if (pthread_create(&thread, NULL, sleep_on, &tids[1]) || read(go[0], &byte, 1) != 1)
            _exit(1);
        execl("/bin/sleep", "sleep", "60", NULL);
        _exit(1);
    }
    become("tracer");
    if (read(tids[0], &tid, sizeof(tid)) != sizeof(tid) ||
        ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXIT) || write(go[1], "", 1) != 1)
        return;
    waitpid(tid, &status, __WALL | WNOHANG);
    say(child, getpid());
    wait_for_ever();
}

/* ---- memory that others give ---- */

static int file;

static void *touch(void *memory)
{
    prctl(PR_SET_NAME, "toucher");
    if (file)
        return (void *)(intptr_t)read(file, memory, 10);
    return (void *)(intptr_t) * (volatile char *)memory;
}

static void by_fault(int in_call)
{
    char *memory = mmap(NULL, MANY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {(uintptr_t)memory, MANY},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    pid_t handler;

    file = in_call ? open("/dev/zero", O_RDONLY) : 0;
    if (memory == MAP_FAILED || fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
        ioctl(fd, UFFDIO_REGISTER, &range))
        return;
    handler = fork();
    if (!handler) {
        become("handler");
        wait_for_ever();
    }
    close(fd);
    become("toucher");
    say(getpid(), handler);
    touch(memory);
}

static void by_memory(const char *processes)
{
    char *memory =
        mmap(NULL, 64 * MANY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FILE *out = processes ? fopen(processes, "we") : NULL;

    if (memory == MAP_FAILED || !out || fprintf(out, "%d\n", getpid()) < 0 || fclose(out))
        return;
    become("big");
    say(getpid(), 0);
    for (int i = 0; i < 64 * (MANY / 4096); i++)
        memory[i * 4096L] = 1;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";

    user = argc > 2 && *argv[2] != '/' ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (!strcmp(how, "client") || !strcmp(how, "writer"))
        by_splice(*how == 'c');
    else if (!strcmp(how, "linger"))
        by_linger();
    else if (!strcmp(how, "supervisor"))
        by_supervisor();
    else if (!strcmp(how, "exec"))
        by_exec();
    else if (!strcmp(how, "fault") || !strcmp(how, "read"))
        by_fault(*how == 'r');
    else if (!strcmp(how, "memory"))
        by_memory(argc > 2 ? argv[2] : NULL);
    printf("\n");
    return 1;
}
