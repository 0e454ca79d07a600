/* SPDX-License-Identifier: BSD-2-Clause */
#include "reach.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "first_line.h"
#include "now.h"
#include "reach_child.h"
#include "read_file.h"
#include "sandbox.h"

#define WAIT_MS      1000  /* for an answer: microseconds where nothing hangs */
#define WAIT_BUSY_MS 10000 /* ... while the child waits for a processor and nothing else */
#define WAIT_LESS_MS 100   /* ... after HANGS_MANY within HUNG_MS */
#define ROOM_MS      5000  /* for a sandbox to take what it was sent before */
#define HUNG_MS      60000
#define HUNG_MOST    64 /* hangs that are remembered */
#define HANGS_MANY   8
#define USER_HANGS   3 /* of a user's processes: then none of his is asked about */
#define SCOPE        "/proc/sys/kernel/yama/ptrace_scope"

struct hang {
    pid_t pid;
    int64_t user; /* -1: not known, or root, who does this to himself alone */
    uint64_t until_ms;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    pid_t owner; /* the process whose child it is */
    struct sandbox child;
    unsigned char *area; /* both sides'; the child's answers. A child that is left keeps its own */
    unsigned held, hangs;
    struct hang hung[HUNG_MOST];
    uint64_t cpu_ns; /* of children before */
} the;

/* ---- what hung ---- */

int64_t reach_user(pid_t pid)
{
    char path[64], text[4096], *line;
    long user = -1;
    ssize_t got;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    got = pid ? read_start(path, text, sizeof(text) - 1) : -1;
    text[got > 0 ? got : 0] = '\0';
    line = strstr(text, "\nUid:");
    if (line)
        user = strtol(line + 5, NULL, 10);
    return user > 0 ? user : -1;
}

static void note_hang(pid_t pid)
{
    the.hung[the.hangs++ % HUNG_MOST] = (struct hang){pid, reach_user(pid), now_ms() + HUNG_MS};
}

/* Whether this process, or enough of its user's, have hung. *ret_many: many of everybody's have. */
static bool has_hung(pid_t pid, bool *ret_many)
{
    unsigned kept = the.hangs < HUNG_MOST ? the.hangs : HUNG_MOST, of_user = 0, all = 0;
    uint64_t now = kept ? now_ms() : 0;
    int64_t user = -1;
    bool found = false;

    for (unsigned i = 0; i < kept; i++) {
        const struct hang *hang = &the.hung[i];

        if (hang->until_ms <= now)
            continue;
        if (!all++)
            user = reach_user(pid);
        found |= pid && hang->pid == pid;
        of_user += user >= 0 && hang->user == user;
    }
    *ret_many = all >= HANGS_MANY;
    return found || of_user >= USER_HANGS;
}

/* ---- the child ---- */

static void forget_child(void)
{
    if (the.child.pid)
        close(the.child.socket);
    if (the.area)
        munmap(the.area, REACH_MOST);
    the.area = NULL;
    the.child = (struct sandbox){0};
}

/* A child that is killed may write to its area for as long as it lives: the next child has
 * another area. */
static void end_child(void)
{
    struct sandbox child = the.child;

    the.cpu_ns += sandbox_cpu_ns(&child);
    the.child = (struct sandbox){0};
    forget_child();
    sandbox_stop(&child);
}

static int start_child(void)
{
    const struct sandbox_limits limits = {.trusted = true};
    int result;

    the.area = mmap(NULL, REACH_MOST, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (the.area == MAP_FAILED) {
        the.area = NULL;
        return -ENOMEM;
    }
    result = sandbox_start(&limits, reach_serve, the.area, &the.child, NULL);
    if (!result)
        return 0;
    forget_child();
    return result == -ENOMEM ? result : -EBUSY;
}

/* Whether the child waits for a processor: then the machine is busy, and nothing hangs. */
static bool waits_for_processor(void)
{
    char path[32], text[512];
    const char *state;
    ssize_t got;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)the.child.pid);
    got = read_start(path, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = '\0';
    state = strrchr(text, ')');
    return state && state[1] == ' ' && state[2] == 'R';
}

static ssize_t receive(struct reach_answer *ret, int *ret_fd, int wait_ms)
{
    uint64_t end = now_ms() + WAIT_BUSY_MS;
    size_t count = 0;
    ssize_t got;

    do
        got = sandbox_receive(the.child.socket, ret, sizeof(*ret), ret_fd, 1, &count, wait_ms);
    while (got == -ETIMEDOUT && waits_for_processor() && now_ms() < end);
    if (!count)
        *ret_fd = -1;
    return got;
}

/* Asks the present child one question. -EPIPE: it has ended. */
static int ask_child(const struct reach_ask *ask, size_t length, const int fds[2], size_t fd_count,
                     int wait_ms, struct reach_answer *ret, int *ret_fd)
{
    int result = sandbox_send(the.child.socket, ask, length, fds, fd_count);
    ssize_t got;

    if (result)
        return result;
    got = receive(ret, ret_fd, wait_ms);
    return got == sizeof(*ret) ? 0 : got < 0 ? (int)got : -EPIPE;
}

/* Called with the lock held. */
static int ask_in_turn(const struct reach_ask *ask, size_t length, const int fds[2],
                       size_t fd_count, struct reach_answer *ret, int *ret_fd)
{
    int result = -EPIPE;
    bool many;

    if (the.owner != getpid()) {
        forget_child(); /* the parent's */
        the.hangs = 0;
        the.owner = getpid();
    }
    if (has_hung(ask->pid, &many))
        return -ETIMEDOUT;
    /* It is tried once more: a child that ended by itself did so as the thread that started it
     * ended. */
    for (int i = 0; i < 2 && result == -EPIPE; i++) {
        if (!the.child.pid) {
            result = start_child();
            if (result)
                return result;
        }
        result = ask_child(ask, length, fds, fd_count, many ? WAIT_LESS_MS : WAIT_MS, ret, ret_fd);
        if (result)
            end_child();
    }
    if (result == -ETIMEDOUT)
        note_hang(ask->pid);
    return result == -EPIPE ? -EBUSY : result;
}

static bool is_yamas(const struct reach_ask *ask, int64_t result)
{
    uint64_t scope;

    return (result == -EPERM || result == -EACCES) && ask->what <= REACH_HAND_MEMORY && geteuid() &&
           first_number(SCOPE, &scope) && scope == 1;
}

/* Asks a question. The lock is held on return if the answer is in the area: *ret_area. */
static int64_t question(struct reach_ask *ask, size_t text, const int fds[2], size_t fd_count,
                        struct reach_answer *ret, int *ret_fd)
{
    int result = ask_in_turn(ask, REACH_ASK_HEAD + text, fds, fd_count, ret, ret_fd);

    if (result)
        return result;
    if (is_yamas(ask, ret->result))
        reach_perform(ask, fds, the.area, ret, ret_fd);
    return ret->result;
}

/* ---- questions ---- */

static int set_text(struct reach_ask *ask, const char *path)
{
    size_t length = strlen(path) + 1;

    if (length > sizeof(ask->text))
        return -ENAMETOOLONG;
    memcpy(ask->text, path, length);
    return (int)length;
}

/* Gives back the memory that a large answer took. */
static void trim_area(int64_t used)
{
    if (used > 1 << 20 && the.area)
        madvise(the.area, REACH_MOST, MADV_REMOVE);
}

/* Takes the bytes, of a place where that is not -1, into `to` or, if that is NULL, into *ret_bytes,
 * with a NUL behind them. */
static ssize_t take_bytes_of(struct reach_ask *ask, size_t text, int place, void *to,
                             char **ret_bytes)
{
    const int fds[2] = {place, -1};
    struct reach_answer answer = {0};
    int64_t result;
    int fd = -1;

    pthread_mutex_lock(&lock);
    result = question(ask, text, fds, place >= 0, &answer, &fd);
    if (fd >= 0)
        close(fd);
    if (result > (int64_t)ask->size)
        result = -EIO;
    if (result >= 0 && !to) {
        to = *ret_bytes = malloc((size_t)result + 1);
        if (to)
            (*ret_bytes)[result] = '\0';
        else
            result = -ENOMEM;
    }
    if (result > 0) {
        memcpy(to, the.area, (size_t)result);
        trim_area(result);
    }
    pthread_mutex_unlock(&lock);
    return (ssize_t)result;
}

static ssize_t take_bytes(struct reach_ask *ask, size_t text, void *to, char **ret_bytes)
{
    return take_bytes_of(ask, text, -1, to, ret_bytes);
}

ssize_t reach_memory(pid_t pid, uint64_t address, void *to, size_t size)
{
    struct reach_ask ask = {.what = REACH_MEMORY,
                            .pid = pid,
                            .address = address,
                            .size = size < REACH_MOST ? size : REACH_MOST};

    return take_bytes(&ask, 0, to, NULL);
}

int reach_robust(pid_t tid, uint64_t *ret)
{
    struct reach_ask ask = {.what = REACH_ROBUST, .pid = tid, .size = sizeof(*ret)};
    ssize_t got = take_bytes(&ask, 0, ret, NULL);

    return got < 0 ? (int)got : 0;
}

ssize_t reach_memory_after(pid_t pid, const char *path, void *start, size_t start_size,
                           ssize_t *ret_start, uint64_t address, void *to, size_t size)
{
    struct reach_ask ask = {.what = REACH_MEMORY,
                            .pid = pid,
                            .address = address,
                            .size = size < REACH_MOST / 2 ? size : REACH_MOST / 2,
                            .start = start_size < REACH_MOST / 2 ? start_size : REACH_MOST / 2};
    int text = set_text(&ask, path), fd = -1;
    struct reach_answer answer = {0};
    int64_t result;

    if (text < 0)
        return text;
    pthread_mutex_lock(&lock);
    result = question(&ask, (size_t)text, NULL, 0, &answer, &fd);
    if (fd >= 0)
        close(fd);
    if (result > (int64_t)ask.size || answer.start > (int64_t)ask.start)
        result = -EIO;
    if (result >= 0) {
        memcpy(to, the.area, (size_t)result);
        *ret_start = (ssize_t)answer.start;
        if (answer.start > 0)
            memcpy(start, the.area + ask.size, (size_t)answer.start);
    }
    pthread_mutex_unlock(&lock);
    return (ssize_t)result;
}

ssize_t reach_read(pid_t pid, const char *path, void *to, size_t size)
{
    struct reach_ask ask = {
        .what = REACH_READ, .pid = pid, .size = size < REACH_MOST ? size : REACH_MOST};
    int text = set_text(&ask, path);

    return text < 0 ? text : take_bytes(&ask, (size_t)text, to, NULL);
}

ssize_t reach_maps(pid_t pid, const char *path, uint64_t address, char **ret)
{
    struct reach_ask ask = {
        .what = REACH_READ, .pid = pid, .address = address, .size = REACH_MOST - 1};
    int text = set_text(&ask, path);

    *ret = NULL;
    return text < 0 ? text : take_bytes(&ask, (size_t)text, NULL, ret);
}

ssize_t reach_link(pid_t pid, const char *path, char *ret, size_t size)
{
    struct reach_ask ask = {.what = REACH_LINK, .pid = pid, .size = size - 1};
    int text = set_text(&ask, path);
    ssize_t length = text < 0 ? text : take_bytes(&ask, (size_t)text, ret, NULL);

    ret[length > 0 ? length : 0] = '\0';
    return length;
}

ssize_t reach_links(pid_t pid, const char *folder, char **ret)
{
    struct reach_ask ask = {.what = REACH_LINKS, .pid = pid, .size = REACH_MOST - 1};
    int text = set_text(&ask, folder);

    *ret = NULL;
    return text < 0 ? text : take_bytes(&ask, (size_t)text, NULL, ret);
}

static int take_place(struct reach_ask *ask, size_t text, struct stat *ret)
{
    struct reach_answer answer = {0};
    int fd = -1;
    int64_t result;

    pthread_mutex_lock(&lock);
    result = question(ask, text, NULL, 0, &answer, &fd);
    pthread_mutex_unlock(&lock);
    if (result || fd < 0) {
        if (fd >= 0)
            close(fd);
        return result < 0 ? (int)result : -EIO;
    }
    *ret = answer.about;
    return fd;
}

int reach_open(pid_t pid, const char *path, struct stat *ret)
{
    struct reach_ask ask = {.what = REACH_OPEN, .pid = pid};
    int text = set_text(&ask, path);

    return text < 0 ? text : take_place(&ask, (size_t)text, ret);
}

int reach_open_list(pid_t pid, uid_t owner, off_t most, struct stat *ret)
{
    struct reach_ask ask = {.what = REACH_LIST, .pid = pid, .owner = owner, .size = (uint64_t)most};

    return take_place(&ask, 0, ret);
}

int reach_mapped_as(int place, uint64_t *ret_device, uint64_t *ret_inode)
{
    uint64_t numbers[2];
    struct reach_ask ask = {.what = REACH_MAPPED, .size = sizeof(numbers)};
    ssize_t got = take_bytes_of(&ask, 0, place, numbers, NULL);

    if (got != sizeof(numbers))
        return got < 0 ? (int)got : -EIO;
    *ret_device = numbers[0];
    *ret_inode = numbers[1];
    return 0;
}

/* socket: the last of fds */
static int hand(struct reach_ask *ask, const int fds[2], size_t fd_count, const void *message,
                size_t length)
{
    struct pollfd room = {.fd = fds[fd_count - 1], .events = POLLOUT};
    struct reach_answer answer = {0};
    int64_t result;
    int fd = -1;

    if (length > sizeof(ask->text))
        return -EINVAL;
    ask->size = length;
    /* This makes sure that there is room for it, so that the child waits for nothing but the
     * file. */
    while ((result = poll(&room, 1, ROOM_MS)) < 0 && errno == EINTR)
        ;
    if (result <= 0)
        return result < 0 ? -errno : -EPIPE;
    memcpy(ask->text, message, length);
    pthread_mutex_lock(&lock);
    result = question(ask, length, fds, fd_count, &answer, &fd);
    pthread_mutex_unlock(&lock);
    if (fd >= 0)
        close(fd);
    return (int)result;
}

int reach_hand(pid_t pid, int place, int socket, const void *message, size_t length)
{
    struct reach_ask ask = {.what = REACH_HAND, .pid = pid};
    const int fds[2] = {place, socket};

    return hand(&ask, fds, 2, message, length);
}

int reach_hand_memory(pid_t pid, int socket, const void *message, size_t length)
{
    struct reach_ask ask = {.what = REACH_HAND_MEMORY, .pid = pid};
    const int fds[2] = {socket, -1};

    return hand(&ask, fds, 1, message, length);
}

ssize_t reach_text(pid_t pid, const char *path, char **ret)
{
    return reach_maps(pid, path, 0, ret);
}

/* ---- its life ---- */

void reach_hold(void)
{
    pthread_mutex_lock(&lock);
    the.held++;
    pthread_mutex_unlock(&lock);
}

void reach_release(void)
{
    pthread_mutex_lock(&lock);
    if (!--the.held && the.child.pid) {
        if (the.owner == getpid())
            end_child();
        else
            forget_child();
    }
    pthread_mutex_unlock(&lock);
}

uint64_t reach_cpu_ns(void)
{
    uint64_t result;

    pthread_mutex_lock(&lock);
    result = the.cpu_ns + sandbox_cpu_ns(&the.child);
    pthread_mutex_unlock(&lock);
    return result;
}

unsigned reach_hangs(void)
{
    unsigned result;

    pthread_mutex_lock(&lock);
    result = the.hangs;
    pthread_mutex_unlock(&lock);
    return result;
}
