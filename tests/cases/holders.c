/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Waits for somebody of another process, by the first argument: of which the number is printed
 * behind that of the one that waits.
 *
 *   fork      a child locks a mutex that a thread of its parent had locked at fork
 *   live      a mutex in shared memory, locked by another process
 *   dead      the same, and that process has ended
 *   flock, posix, ofd FILE   file locks
 *   pipe      one end of a pipe: a writer that waits, an idle writer, and the reader (that number)
 *   connect FILE   a socket whose server accepts nothing: the number is the server's
 *   child     wait4
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *mutex = &own;
static pid_t locker;

static void say(pid_t waiter, pid_t other)
{
    printf("%d %d\n", (int)waiter, (int)other);
    fflush(stdout);
}

static void become(const char *name)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    alarm(60);
}

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

static void *lock_and_stay(void *arg)
{
    pthread_mutex_lock(mutex);
    locker = gettid();
    if (write(*(int *)arg, "", 1) == 1)
        wait_for_ever();
    return NULL;
}

static void by_fork(int ends[2])
{
    pthread_t thread;
    pid_t child;
    char byte;

    if (pthread_create(&thread, NULL, lock_and_stay, &ends[1]) || read(ends[0], &byte, 1) != 1)
        return;
    child = fork();
    if (!child) {
        become("forked");
        pthread_mutex_lock(mutex);
        _exit(0);
    }
    say(child, locker);
    wait_for_ever();
}

static void by_shared(int ends[2], bool dead)
{
    pthread_mutexattr_t attributes;
    pid_t holder;
    char byte;

    mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &attributes);
    holder = fork();
    if (!holder) {
        become("holder");
        pthread_mutex_lock(mutex);
        if (write(ends[1], "", 1) == 1 && !dead)
            wait_for_ever();
        _exit(0);
    }
    if (read(ends[0], &byte, 1) != 1)
        return;
    if (dead)
        waitpid(holder, NULL, 0);
    say(getpid(), holder);
    pthread_mutex_lock(mutex);
}

static void lock_file(int fd, char how)
{
    struct flock all = {.l_type = F_WRLCK};

    if (how == 'f')
        flock(fd, LOCK_EX);
    else
        fcntl(fd, how == 'p' ? F_SETLKW : F_OFD_SETLKW, &all);
}

static void by_file(int ends[2], const char *path, char how)
{
    pid_t holder = fork();
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    char byte;

    if (!holder) {
        become("holder");
        lock_file(fd, how);
        if (write(ends[1], "", 1) == 1)
            wait_for_ever();
    }
    if (read(ends[0], &byte, 1) != 1)
        return;
    say(getpid(), holder);
    lock_file(fd, how);
}

static void by_pipe(int ends[2])
{
    static char bytes[65536];
    pid_t reader = fork(), idle;

    if (!reader) {
        become("reader");
        close(ends[1]);
        wait_for_ever();
    }
    idle = fork();
    if (!idle) {
        become("idle-writer");
        close(ends[0]);
        wait_for_ever();
    }
    close(ends[0]);
    say(getpid(), reader);
    while (write(ends[1], bytes, sizeof(bytes)) > 0)
        ;
}

static void by_connect(int ends[2], const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    pid_t server;
    char byte;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    server = fork();
    if (!server) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        become("server");
        if (!bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 1) &&
            write(ends[1], "", 1) == 1)
            wait_for_ever();
        _exit(1);
    }
    if (read(ends[0], &byte, 1) != 1)
        return;
    say(getpid(), server);
    for (;;)
        connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof(address));
}

static void by_child(void)
{
    pid_t child = fork();

    if (!child) {
        become("sleeper");
        wait_for_ever();
    }
    say(getpid(), child);
    waitpid(-1, NULL, 0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : "";
    int ends[2];

    become("waiter");
    if (pipe(ends))
        return 1;
    if (!strcmp(how, "fork"))
        by_fork(ends);
    else if (!strcmp(how, "live") || !strcmp(how, "dead"))
        by_shared(ends, *how == 'd');
    else if (!strcmp(how, "pipe"))
        by_pipe(ends);
    else if (!strcmp(how, "connect"))
        by_connect(ends, path);
    else if (!strcmp(how, "child"))
        by_child();
    else
        by_file(ends, path, *how);
    return 1;
}
