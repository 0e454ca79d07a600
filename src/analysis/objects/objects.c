/* SPDX-License-Identifier: BSD-2-Clause */
#include "objects.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "cause.h"
#include "comm.h"
#include "descriptors.h"
#include "ends.h"
#include "futex.h"
#include "held_up.h"
#include "holders.h"
#include "kernel_lock.h"
#include "mapped_file.h"
#include "now.h"
#include "reach.h"
#include "servers.h"
#include "sockets.h"
#include "table.h"

#define OBJECTS_MOST 65536
#define FILES_MOST   64   /* kept open */
#define KEY_MOST     4300 /* a path and more */
#define TEXT_MOST    600
#define KERNEL_TEXT  4096 /* of a stack in the kernel */

/* A file that futexes lie in. */
struct file {
    uint64_t dev, ino;
    pid_t pid; /* 0: every process's; else of this one, which told its path */
    int fd;    /* -1: it could not be opened */
};

/* What was found out for a chosen wait; it serves the others of that moment, each of which would
 * ask procfs for the same. */
#define KNOWN    512
#define KNOWN_NS 100000000u
#define HOLDER   (-2)
struct known {
    pid_t pid;
    int32_t call; /* number of the system call; HOLDER: its argument is the number of one */
    uint64_t argument, inode, until;
    uint32_t device, number;
    char name[64];
};

struct objects {
    struct prcb *session;
    struct sockets *sockets;
    struct servers servers;
    bool glibc;
    struct object *rows; /* number 1 is the first */
    uint32_t count, room;
    struct table numbers; /* by kind and key */
    struct file files[FILES_MOST];
    int file_count;
    struct known known[KNOWN];
};

const char *object_kind_name(enum object_kind kind)
{
    static const char *const names[] = {
        [OBJECT_FILE] = "file",           [OBJECT_FIFO] = "FIFO",
        [OBJECT_DEVICE] = "device",       [OBJECT_PIPE] = "pipe",
        [OBJECT_SOCKET] = "socket",       [OBJECT_EVENTFD] = "eventfd",
        [OBJECT_DESCRIPTOR] = "fd",       [OBJECT_EPOLL] = "epoll",
        [OBJECT_POLL] = "poll",           [OBJECT_FUTEX] = "futex",
        [OBJECT_LOCK] = "kernel lock",    [OBJECT_SEMAPHORE] = "semaphore",
        [OBJECT_QUEUE] = "message queue", [OBJECT_THREAD] = "thread",
        [OBJECT_PROCESS] = "process",
    };

    return names[kind];
}

int objects_open(struct prcb *session, struct objects **ret)
{
    struct objects *o = calloc(1, sizeof(*o));

    if (!o || sockets_open(&o->sockets)) {
        free(o);
        return -ENOMEM;
    }
    reach_hold();
    o->session = session;
    o->glibc = futex_mutex_names_its_owner();
    *ret = o;
    return 0;
}

static void free_object(struct object *object)
{
    free(object->key);
    free(object->name);
    free(object->detail);
    free(object->symbol);
    free(object->doing);
}

void objects_close(struct objects *o)
{
    if (!o)
        return;
    for (uint32_t i = 0; i < o->count; i++)
        free_object(&o->rows[i]);
    for (int i = 0; i < o->file_count; i++) {
        if (o->files[i].fd >= 0)
            close(o->files[i].fd);
    }
    reach_release();
    sockets_close(o->sockets);
    table_free(&o->numbers);
    free(o->rows);
    free(o);
}

const struct object *objects_at(const struct objects *o, uint32_t number)
{
    return &o->rows[number - 1];
}

uint32_t objects_count(const struct objects *o)
{
    return o->count;
}

/* ---- what is kept ------------------------------------------------------------------------- */

static void replace(char **text, const char *by)
{
    char *copy;

    if (!by || !*by || (*text && !strcmp(*text, by)))
        return;
    copy = strdup(by);
    if (!copy)
        return;
    free(*text);
    *text = copy;
}

/* Returns the number of the object of this kind and key; a name or detail that is known now
 * becomes its new one. 0: no room. The texts of *like are copied: key, name and detail, of which
 * the last may be NULL. */
static uint32_t keep(struct objects *o, const struct object *like)
{
    uint64_t hash = table_hash_text(like->key);
    const struct table_slot *slot = NULL;
    struct object *fresh;

    while ((slot = table_next(&o->numbers, hash, slot))) {
        fresh = &o->rows[slot->number - 1];
        if (fresh->kind != like->kind || strcmp(fresh->key, like->key) != 0)
            continue;
        replace(&fresh->detail, like->detail);
        /* What a socket is connected to may have been known before and not be known now. */
        if (like->kind != OBJECT_SOCKET || like->netns) {
            replace(&fresh->name, like->name);
            fresh->netns = like->netns;
            fresh->peer = like->peer ? like->peer : fresh->peer;
        }
        return (uint32_t)slot->number;
    }
    if (o->count == OBJECTS_MOST || array_reserve(o->rows, o->count, o->room, 1))
        return 0;
    fresh = &o->rows[o->count];
    *fresh = *like;
    fresh->key = strdup(like->key);
    fresh->name = strdup(like->name);
    fresh->detail = like->detail && *like->detail ? strdup(like->detail) : NULL;
    fresh->symbol = fresh->doing = NULL;
    if (!fresh->key || !fresh->name || table_put_number(&o->numbers, hash, o->count + 1)) {
        free_object(fresh);
        return 0;
    }
    return ++o->count;
}

/* ---- calls -------------------------------------------------------------------------------- */

/* A wait that is looked at. */
struct looking {
    struct objects *o;
    const struct prcb_account *account;
    const struct prcb_stack *stack;
    const struct prcb_chosen *chosen; /* it may have ended; NULL: it goes on */
    struct object_call call;
    uint32_t fd; /* of it */
    bool alone;  /* nobody but the thread can have changed its descriptors */
    bool over;   /* the call is not procfs' but the account's, with no more than a descriptor */
    struct object_wait found;
};

enum way {
    BY_DESCRIPTOR,
    BY_SPLICE,
    BY_EPOLL,
    BY_POLL,
    BY_SELECT,
    BY_FUTEX,
    BY_SEMAPHORE,
    BY_QUEUE,
    BY_CHILD
};

/* Calls that wait for what their first argument names, and in which way it names that. Calls
 * with two descriptors are left out, for it cannot be known which of the two they wait for, but for
 * those where the account has it. */
static const struct {
    long number;
    enum way way;
} calls[] = {
    {SYS_read, BY_DESCRIPTOR},
    {SYS_write, BY_DESCRIPTOR},
    {SYS_readv, BY_DESCRIPTOR},
    {SYS_writev, BY_DESCRIPTOR},
    {SYS_pread64, BY_DESCRIPTOR},
    {SYS_pwrite64, BY_DESCRIPTOR},
    {SYS_preadv, BY_DESCRIPTOR},
    {SYS_pwritev, BY_DESCRIPTOR},
    {SYS_preadv2, BY_DESCRIPTOR},
    {SYS_pwritev2, BY_DESCRIPTOR},
    {SYS_getdents64, BY_DESCRIPTOR},
    {SYS_fstat, BY_DESCRIPTOR},
    {SYS_ftruncate, BY_DESCRIPTOR},
    {SYS_fallocate, BY_DESCRIPTOR},
    {SYS_fsync, BY_DESCRIPTOR},
    {SYS_fdatasync, BY_DESCRIPTOR},
    {SYS_syncfs, BY_DESCRIPTOR},
    {SYS_sync_file_range, BY_DESCRIPTOR},
    {SYS_flock, BY_DESCRIPTOR},
    {SYS_fcntl, BY_DESCRIPTOR},
    {SYS_ioctl, BY_DESCRIPTOR},
    {SYS_connect, BY_DESCRIPTOR},
    {SYS_accept, BY_DESCRIPTOR},
    {SYS_accept4, BY_DESCRIPTOR},
    {SYS_sendto, BY_DESCRIPTOR},
    {SYS_sendmsg, BY_DESCRIPTOR},
    {SYS_sendmmsg, BY_DESCRIPTOR},
    {SYS_recvfrom, BY_DESCRIPTOR},
    {SYS_recvmsg, BY_DESCRIPTOR},
    {SYS_recvmmsg, BY_DESCRIPTOR},
    {SYS_mq_timedsend, BY_DESCRIPTOR},
    {SYS_mq_timedreceive, BY_DESCRIPTOR},
    {SYS_io_uring_enter, BY_DESCRIPTOR},
    {SYS_splice, BY_SPLICE},
    {SYS_tee, BY_SPLICE},
    {SYS_epoll_pwait, BY_EPOLL},
    {SYS_epoll_pwait2, BY_EPOLL},
    {SYS_ppoll, BY_POLL},
    {SYS_pselect6, BY_SELECT},
#ifdef SYS_epoll_wait /* not on arm64, as those below */
    {SYS_epoll_wait, BY_EPOLL},
    {SYS_poll, BY_POLL},
    {SYS_select, BY_SELECT},
    {SYS_getdents, BY_DESCRIPTOR},
#endif
    {SYS_futex, BY_FUTEX},
    {SYS_semop, BY_SEMAPHORE},
    {SYS_semtimedop, BY_SEMAPHORE},
    {SYS_msgsnd, BY_QUEUE},
    {SYS_msgrcv, BY_QUEUE},
    {SYS_wait4, BY_CHILD},
    {SYS_waitid, BY_CHILD},
};

static uint32_t cause_of(const struct prcb_account *a)
{
    return a->present & PRCB_HAS_OPEN ? a->open.cause : PRCB_CAUSE_NONE;
}

/* Keeps a holder of another process, or one that has ended. */
static uint32_t keep_other(struct objects *o, const struct holder *holder, enum object_kind kind)
{
    struct object like = {.kind = kind, .pid = holder->pid, .tid = holder->tid, .file = -1};
    char key[64], name[40];

    snprintf(key, sizeof(key), "%d:%d", (int)holder->pid, (int)holder->tid);
    snprintf(name, sizeof(name), "%s", *holder->comm ? holder->comm : "thread");
    like.key = key;
    like.name = name;
    like.detail = (char *)(uintptr_t)holder->detail;
    return keep(o, &like);
}

/* ---- descriptors -------------------------------------------------------------------------- */

static enum object_kind kind_of(const char *link, uint32_t cause)
{
    enum cause_object object = cause_traits(cause)->object;
    uint64_t number;

    if (descriptor_number(link, "pipe", &number))
        return OBJECT_PIPE;
    if (descriptor_number(link, "socket", &number))
        return OBJECT_SOCKET;
    if (*link == '/')
        return object == CAUSE_OBJECT_PIPE     ? OBJECT_FIFO
               : object == CAUSE_OBJECT_DEVICE ? OBJECT_DEVICE
                                               : OBJECT_FILE;
    return strstr(link, "[eventfd]") ? OBJECT_EVENTFD : OBJECT_DESCRIPTOR;
}

/* Whether the kind fits the cause: the thread cannot wait for a file of another kind. */
static bool fits_cause(enum object_kind kind, uint32_t cause)
{
    switch (cause_traits(cause)->object) {
    case CAUSE_OBJECT_ANY:
        return true;
    case CAUSE_OBJECT_NONE:
        return false;
    case CAUSE_OBJECT_PIPE:
        return kind == OBJECT_PIPE || kind == OBJECT_FIFO;
    case CAUSE_OBJECT_SOCKET:
        return kind == OBJECT_SOCKET;
    case CAUSE_OBJECT_EVENTFD:
        return kind == OBJECT_EVENTFD;
    case CAUSE_OBJECT_DESCRIPTOR:
        return kind == OBJECT_DESCRIPTOR || kind == OBJECT_FILE;
    case CAUSE_OBJECT_DEVICE:
        return kind == OBJECT_DEVICE;
    case CAUSE_OBJECT_FILE:
        return kind == OBJECT_FILE;
    }
    return true;
}

/* Whether it is the file that the number meant when the wait began. device: 0: not known, as for
 * a file that is mounted nowhere, or on a chroot's root. Most anonymous files have one inode:
 * then it is only proved that the number is one of these. */
static bool is_proved(const struct looking *l, const struct descriptor *is, uint32_t device)
{
    const struct prcb_account *a = l->account;

    if (!(a->present & PRCB_HAS_OBJECT) || !a->object.inode || !is->ino)
        return l->alone;
    return a->object.inode == is->ino && (!device || a->object.device == device);
}

static void look_at_descriptor(struct looking *l)
{
    const struct prcb_account *a = l->account;
    struct object like = {.pid = a->pid, .file = -1};
    char what[KEY_MOST], before[40], name[KEY_MOST + 40], key[KEY_MOST + 64],
        detail[TEXT_MOST] = "";
    uint32_t device = 0, fd = l->fd;
    struct descriptor is, again;
    struct holder owner;
    uint64_t number = 0;
    struct holder master;
    int result = -ENOENT, terminal;

    if (!descriptor_read(a->pid, a->tid, fd, &is))
        return;
    like.kind = kind_of(is.link, cause_of(a));
    if (!fits_cause(like.kind, cause_of(a)))
        return;
    if (*is.link == '/')
        descriptor_mount(a->pid, is.mount, detail, sizeof(detail), &device);
    if (like.kind == OBJECT_DEVICE)
        *detail = '\0'; /* where its name lies does not matter */
    if (like.kind == OBJECT_DEVICE && sscanf(is.link, "/dev/pts/%d", &terminal) == 1 &&
        servers_find(&l->o->servers, SERVER_PTY, terminal, a->pid, &master))
        snprintf(detail, sizeof(detail), "its master: %s (%d)", master.comm, (int)master.pid);
    like.now = !is_proved(l, &is, device);
    if (like.now && l->over)
        return;
    if (descriptor_number(is.link, "socket", &number))
        result = sockets_name(l->o->sockets, a->pid, number, what, sizeof(what), &like.netns,
                              &like.peer);
    if (result)
        snprintf(what, sizeof(what), "%s", is.link);
    if (l->call.number == SYS_connect && !l->over)
        descriptor_address(a->tid, l->call.args[1], l->call.args[2], detail, sizeof(detail));
    if (!descriptor_read(a->pid, a->tid, fd, &again) || !descriptor_same(&is, &again))
        return;
    snprintf(before, sizeof(before), "descriptor %u, now ", fd);
    snprintf(name, sizeof(name), "%s%s", like.now ? before : "", what);
    if (like.kind == OBJECT_PIPE || like.kind == OBJECT_FIFO)
        like.end = descriptor_other_end(a->pid, a->tid, fd);
    snprintf(key, sizeof(key), "%d:%u:%u:%" PRIu64 ":%" PRIu64 ":%s", like.now ? (int)a->pid : 0,
             like.now ? fd : 0, like.end, *is.link == '/' ? is.mount : 0, is.ino, is.link);
    like.inode = is.ino;
    like.key = key;
    like.name = name;
    like.detail = detail;
    l->found.object = keep(l->o, &like);
    l->found.later = result == -EAGAIN;
    if (cause_of(a) == PRCB_CAUSE_FILE_LOCK && !l->over &&
        holder_of_file_lock(a->pid, is.ino, &owner))
        l->found.holder = keep_other(l->o, &owner, OBJECT_THREAD);
}

/* Chooses one of two descriptors: the account's, or that of the only file that the wait can be
 * for. */
static void look_at_either(struct looking *l)
{
    const struct prcb_account *a = l->account;
    const uint32_t fds[] = {(uint32_t)l->call.args[0], (uint32_t)l->call.args[2]};
    unsigned fit = 0;

    if (a->present & PRCB_HAS_OBJECT && a->object.inode) {
        l->fd = (uint32_t)a->object.descriptor;
        fit = 1;
    }
    for (size_t i = 0; i < 2 && !(a->present & PRCB_HAS_OBJECT && a->object.inode); i++) {
        struct descriptor is;

        if (!descriptor_read(a->pid, a->tid, fds[i], &is) ||
            !fits_cause(kind_of(is.link, cause_of(a)), cause_of(a)))
            continue;
        l->fd = fds[i];
        fit++;
    }
    if (fit == 1 && !l->chosen)
        look_at_descriptor(l);
}

/* ---- descriptors of chosen waits ---- */

/* Whether the last part of a path is this name, of which the kernel's record has room for so much.
 */
static bool ends_with_name(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    size_t length = strlen(name), room = sizeof(((struct prcb_chosen *)0)->name) - 1;

    return !strncmp(last, name, length) &&
           (length == room || !last[length] || !strcmp(last + length, " (deleted)"));
}

/* Finds the path of the file that the record tells of, and its mount, if the descriptor still is
 * that file. */
static bool find_path(const struct looking *l, struct descriptor *ret, char *detail, size_t size)
{
    const struct prcb_chosen *chosen = l->chosen;
    uint32_t fd = (uint32_t)chosen->args[0], device;
    struct descriptor again;

    if (!descriptor_read(chosen->pid, chosen->tid, fd, ret) || *ret->link != '/' ||
        ret->ino != chosen->object.inode || !ends_with_name(ret->link, chosen->name))
        return false;
    descriptor_mount(chosen->pid, ret->mount, detail, size, &device);
    return device == chosen->object.device &&
           descriptor_read(chosen->pid, chosen->tid, fd, &again) && descriptor_same(ret, &again);
}

static enum object_kind kind_of_mode(const struct prcb_chosen *chosen)
{
    switch (chosen->mode & S_IFMT) {
    case S_IFSOCK:
        return OBJECT_SOCKET;
    case S_IFIFO:
        return *chosen->name ? OBJECT_FIFO : OBJECT_PIPE;
    case S_IFCHR:
        return OBJECT_DEVICE;
    case 0:
        return !strcmp(chosen->name, "[eventfd]") ? OBJECT_EVENTFD : OBJECT_DESCRIPTOR;
    default:
        return OBJECT_FILE;
    }
}

/* Returns which end of a pipe a call waits for: who reads waits for who writes. */
static mode_t end_of_call(long number)
{
    switch (number) {
    case SYS_read:
    case SYS_readv:
        return S_IWUSR;
    case SYS_write:
    case SYS_writev:
        return S_IRUSR;
    default:
        return 0;
    }
}

/* Pipes and sockets are named by their inodes, anonymous files by what they are, and others by
 * their path, or the part of it that the kernel's record has. */
static void look_at_chosen(struct looking *l)
{
    const struct prcb_chosen *chosen = l->chosen;
    struct object like = {.kind = kind_of_mode(chosen), .pid = chosen->pid, .file = -1};
    char name[KEY_MOST], key[KEY_MOST + 64], detail[TEXT_MOST] = "", device[80];
    struct descriptor is = {.ino = chosen->object.inode};

    if (!chosen->object.inode || !fits_cause(like.kind, chosen->cause))
        return;
    if (like.kind == OBJECT_PIPE || like.kind == OBJECT_SOCKET) {
        snprintf(is.link, sizeof(is.link), "%s:[%" PRIu64 "]",
                 like.kind == OBJECT_PIPE ? "pipe" : "socket", is.ino);
    } else if (!*chosen->name) {
        return;
    } else if (!(chosen->mode & S_IFMT)) {
        snprintf(is.link, sizeof(is.link), "anon_inode:%s", chosen->name);
    } else if (!find_path(l, &is, detail, sizeof(detail))) {
        descriptor_device(chosen->object.device, device, sizeof(device));
        is = (struct descriptor){.ino = chosen->object.inode};
        snprintf(is.link, sizeof(is.link), "%s", chosen->name);
        snprintf(detail, sizeof(detail), "inode %" PRIu64 " on %s", is.ino, device);
    }
    if (like.kind != OBJECT_SOCKET || sockets_name(l->o->sockets, chosen->pid, is.ino, name,
                                                   sizeof(name), &like.netns, &like.peer))
        snprintf(name, sizeof(name), "%s", is.link);
    if (like.kind == OBJECT_PIPE || like.kind == OBJECT_FIFO)
        like.end = end_of_call(l->call.number);
    snprintf(key, sizeof(key), "0:0:%u:%" PRIu64 ":%" PRIu64 ":%s", like.end, is.mount, is.ino,
             is.link);
    like.inode = is.ino;
    like.key = key;
    like.name = name;
    like.detail = detail;
    l->found.object = keep(l->o, &like);
}

/* Copies a list of descriptors; sockets get their names. */
static void name_sockets(struct looking *l, const char *list, char *ret, size_t size)
{
    const char *at;
    size_t used = 0;

    *ret = '\0';
    while ((at = strstr(list, "socket:[")) && used < size) {
        uint64_t number = strtoull(at + 8, NULL, 10), netns, peer;
        const char *end = strchr(at, ']');
        char name[TEXT_MOST / 4];

        if (!end ||
            sockets_name(l->o->sockets, l->account->pid, number, name, sizeof(name), &netns, &peer))
            snprintf(name, sizeof(name), "%.*s", end ? (int)(end + 1 - at) : 0, at);
        used += (size_t)snprintf(ret + used, size - used, "%.*s%s", (int)(at - list), list, name);
        list = end ? end + 1 : at + 8;
    }
    if (used < size)
        snprintf(ret + used, size - used, "%s", list);
}

/* Who waits for one socket alone waits for that, by whatever call. */
static bool look_at_single(struct looking *l, const char *list)
{
    struct object like = {
        .kind = OBJECT_SOCKET, .pid = l->account->pid, .now = !l->alone, .file = -1};
    char what[TEXT_MOST], name[TEXT_MOST + 40], key[TEXT_MOST], before[40] = "";
    int end = 0, result;
    unsigned fd;

    if (sscanf(list, "%u: socket:[%" SCNu64 "]%n", &fd, &like.inode, &end) != 2 || !end ||
        list[end])
        return false;
    result = sockets_name(l->o->sockets, like.pid, like.inode, what, sizeof(what), &like.netns,
                          &like.peer);
    if (result)
        snprintf(what, sizeof(what), "socket:[%" PRIu64 "]", like.inode);
    if (like.now)
        snprintf(before, sizeof(before), "descriptor %u, now ", fd);
    snprintf(name, sizeof(name), "%s%s", before, what);
    snprintf(key, sizeof(key), "%d:%u:0:%" PRIu64 ":socket:[%" PRIu64 "]",
             like.now ? (int)like.pid : 0, like.now ? fd : 0, like.inode, like.inode);
    like.key = key;
    like.name = name;
    l->found.object = keep(l->o, &like);
    l->found.later = result == -EAGAIN;
    return true;
}

/* The list shows what is watched now, whoever added it. */
static void look_at_list(struct looking *l, enum way way)
{
    const struct prcb_account *a = l->account;
    const uint64_t *args = l->call.args;
    struct object like = {.kind = OBJECT_POLL, .pid = a->pid, .file = -1};
    char name[64], key[160], detail[TEXT_MOST], list[TEXT_MOST - 16], named[TEXT_MOST - 16];
    struct descriptor is;
    unsigned count = 0;
    bool known;

    if (way == BY_EPOLL) {
        like.kind = OBJECT_EPOLL;
        known =
            descriptor_read(a->pid, a->tid, (uint32_t)args[0], &is) &&
            strstr(is.link, "[eventpoll]") &&
            descriptor_list_epoll(a->pid, a->tid, (uint32_t)args[0], list, sizeof(list), &count);
        snprintf(name, sizeof(name), "descriptor %u", (uint32_t)args[0]);
    } else {
        known =
            way == BY_POLL
                ? descriptor_list_poll(a->pid, a->tid, args[0], args[1], list, sizeof(list), &count)
                : descriptor_list_select(a->pid, a->tid, args, list, sizeof(list), &count);
        snprintf(name, sizeof(name), "%u descriptor%s", count, count == 1 ? "" : "s");
    }
    if (!known || (way != BY_EPOLL && !count) || look_at_single(l, list))
        return;
    name_sockets(l, list, named, sizeof(named));
    /* Waits in poll with different lists are different objects. */
    snprintf(key, sizeof(key), "%d:%s:%.60s", (int)a->pid, name, way == BY_EPOLL ? "" : list);
    snprintf(detail, sizeof(detail), "%s%s", l->alone ? "" : "now ", named);
    like.key = key;
    like.name = name;
    like.detail = count ? detail : NULL;
    l->found.object = keep(l->o, &like);
}

/* ---- futexes ------------------------------------------------------------------------------ */

/* Opens the file once: its symbols are looked for when the process may have ended. */
static int file_of(struct objects *o, pid_t pid, const struct futex_place *place)
{
    const struct mapped_file file = {place->start, place->end, place->dev, place->ino, place->path};
    struct mapped_served served = {0};
    struct stat about = {0};
    int fd;

    for (int i = 0; i < o->file_count; i++) {
        if (o->files[i].dev == place->dev && o->files[i].ino == place->ino &&
            (!o->files[i].pid || o->files[i].pid == pid))
            return i;
    }
    if (!*place->path || *place->path != '/' || o->file_count == FILES_MOST)
        return -1;
    mapped_find_served(pid, &served);
    fd = mapped_file_place(pid, &served, &file, &about);
    o->files[o->file_count] = (struct file){.dev = place->dev,
                                            .ino = place->ino,
                                            .pid = about.st_dev == place->dev ? 0 : pid,
                                            .fd = fd < 0 ? -1 : fd};
    mapped_free_served(&served);
    return o->file_count++;
}

/* Finds the thread of a process that has this number for itself. If both are in one pid
 * namespace, its number there is its number here. */
static pid_t thread_by_own(pid_t pid, pid_t tid, pid_t own)
{
    char comm[32];

    return futex_own_number(pid, tid) == tid && comm_read(pid, own, comm, sizeof(comm)) ? own : 0;
}

static uint32_t keep_holder(struct looking *l, pid_t tid)
{
    const struct prcb_account *a = l->account;
    struct object like = {.kind = OBJECT_THREAD, .pid = a->pid, .tid = tid, .file = -1};
    char key[64], comm[32];

    if (!comm_read(a->pid, tid, comm, sizeof(comm)))
        return 0;
    snprintf(key, sizeof(key), "%d:%d", (int)a->pid, (int)tid);
    like.key = key;
    like.name = comm;
    return keep(l->o, &like);
}

/* futex: NULL: only threads of the process are looked for. */
static void look_at_holder(struct looking *l, pid_t own, const struct futex *futex,
                           const struct futex_place *place)
{
    const struct prcb_account *a = l->account;
    pid_t holder = own > 0 ? thread_by_own(a->pid, a->tid, own) : 0;
    struct holder other;

    if (holder && holder != a->tid)
        l->found.holder = keep_holder(l, holder);
    /* The number means the same thread here only if both are in one pid namespace. */
    else if (!holder && own > 0 && futex && futex_own_number(a->pid, a->tid) == a->tid &&
             holder_elsewhere(a->pid, own, !futex_is_private(futex), place->dev, place->ino,
                              &other))
        l->found.holder = keep_other(l->o, &other, OBJECT_THREAD);
}

static void look_at_futex(struct looking *l)
{
    const struct prcb_account *a = l->account;
    struct object like = {.kind = OBJECT_FUTEX, .pid = a->pid};
    struct futex_place place;
    char key[128], name[160];
    struct futex futex;

    if (!futex_of_call(&l->call, &futex))
        return;
    futex_find_place(a->pid, a->tid, futex.address, &place);
    if (!*place.name)
        return;
    like.address = futex.address;
    like.place = futex.address - place.base;
    like.file = *place.path ? file_of(l->o, a->pid, &place) : -1;
    snprintf(key, sizeof(key), "%d:%" PRIx64 ":%s", (int)a->pid, futex.address, place.name);
    snprintf(name, sizeof(name), "0x%" PRIx64 " (%s)", futex.address, place.name);
    like.key = key;
    like.name = name;
    l->found.object = keep(l->o, &like);
    if (!l->chosen)
        look_at_holder(l, futex_holder(a->tid, &futex, l->stack, l->o->glibc), &futex, &place);
}

/* ---- others ------------------------------------------------------------------------------- */

/* Finds who holds the lock of the kernel's that the thread sleeps for. */
static void look_at_owner(struct looking *l)
{
    char text[KERNEL_TEXT];
    const char *line;
    struct holder holder;

    if (prcb_kernel_stack(l->o->session, l->account->key, l->account->tid, text, sizeof(text),
                          NULL))
        return;
    line = strstr(text, "held by ");
    if (line && holder_thread((pid_t)strtol(line + strlen("held by "), NULL, 10), &holder))
        l->found.holder = keep_other(l->o, &holder, OBJECT_THREAD);
}

static void look_at_lock(struct looking *l)
{
    uint64_t address = l->account->object.lock;
    struct object like = {.kind = OBJECT_LOCK, .address = address, .file = -1};
    char name[32];
    uint32_t before = l->o->count;

    if (!l->chosen && !l->over)
        look_at_owner(l);
    if (!(l->account->present & PRCB_HAS_OBJECT) || !address)
        return;
    snprintf(name, sizeof(name), "0x%" PRIx64, address);
    like.key = like.name = name;
    l->found.object = keep(l->o, &like);
    if (l->o->count > before) {
        char symbol[160];

        kernel_lock_name(KERNEL_SYMBOLS, address, symbol, sizeof(symbol));
        objects_set_symbol(l->o, l->found.object, symbol);
    }
}

static void look_at_number(struct looking *l, enum object_kind kind)
{
    struct object like = {.kind = kind, .pid = l->account->pid, .file = -1};
    char name[32];

    snprintf(name, sizeof(name), "%d", (int)l->call.args[0]);
    like.key = like.name = name;
    l->found.object = keep(l->o, &like);
}

/* wait4(pid, ...), waitid(type, id, ...): one, or any of them, of which the first is told. */
static void keep_child(struct looking *l, struct holder *child, unsigned count)
{
    char detail[200];

    if (count > 1) {
        snprintf(detail, sizeof(detail), "%.120s; or one of %u more", child->detail, count - 1);
        snprintf(child->detail, sizeof(child->detail), "%.159s", detail);
    }
    l->found.object = keep_other(l->o, child, OBJECT_PROCESS);
}

static void look_at_any_child(struct looking *l)
{
    struct holder child;
    unsigned count;

    if (holder_children(l->account->pid, &child, &count))
        keep_child(l, &child, count);
}

static void look_at_child(struct looking *l)
{
    bool by_type = l->call.number == SYS_waitid;
    int32_t one = (int32_t)(by_type ? l->call.args[1] : l->call.args[0]);
    struct holder child = {.pid = one, .tid = one};

    if (by_type ? l->call.args[0] != P_PID : one <= 0) {
        look_at_any_child(l);
        return;
    }
    if (!comm_read(one, one, child.comm, sizeof(child.comm)))
        return;
    holder_activity(one, child.detail, sizeof(child.detail));
    keep_child(l, &child, 1);
}

static void look_at_call(struct looking *l)
{
    size_t i = 0, count = sizeof(calls) / sizeof(*calls);

    while (i < count && calls[i].number != l->call.number)
        i++;
    if (i == count || (l->over && calls[i].way != BY_DESCRIPTOR))
        return;
    l->fd = (uint32_t)l->call.args[0];
    switch (calls[i].way) {
    case BY_SPLICE:
        look_at_either(l);
        return;
    case BY_DESCRIPTOR:
        if (l->chosen)
            look_at_chosen(l);
        else
            look_at_descriptor(l);
        return;
    case BY_POLL:
    case BY_SELECT:
        if (l->chosen)
            return;
        /* fall through */
    case BY_EPOLL:
        look_at_list(l, calls[i].way);
        return;
    case BY_FUTEX:
        look_at_futex(l);
        return;
    case BY_SEMAPHORE:
        look_at_number(l, OBJECT_SEMAPHORE);
        return;
    case BY_QUEUE:
        look_at_number(l, OBJECT_QUEUE);
        return;
    case BY_CHILD:
        if (!l->chosen)
            look_at_child(l);
    }
}

bool objects_by_stack(const struct prcb_stack *stack)
{
    return stack && stack->word && !strcmp(stack->word, "child process (sync)");
}

/* Whether memory may be waited for that somebody else gives: the kernel's stack says so. */
static bool waits_for_memory(const struct looking *l)
{
    char text[KERNEL_TEXT];

    return cause_has(cause_of(l->account), CAUSE_MAY_FAULT) &&
           !prcb_kernel_stack(l->o->session, l->account->key, l->account->tid, text, sizeof(text),
                              NULL) &&
           strstr(text, "handle_userfault\n");
}

/* Finds the process whose answer is waited for. True: it is none of what the call names. */
static bool look_at_server(struct looking *l)
{
    bool supervised = cause_of(l->account) == PRCB_CAUSE_SUPERVISOR;
    struct holder server;

    if (l->chosen || l->over || (!supervised && !waits_for_memory(l)))
        return false;
    if (servers_find(&l->o->servers, supervised ? SERVER_SECCOMP : SERVER_USERFAULT, 0,
                     l->account->pid, &server))
        l->found.object = keep_other(l->o, &server, OBJECT_PROCESS);
    return true;
}

/* Finds who traces a thread that is stopped by that. */
static bool look_at_tracer(struct looking *l)
{
    const struct prcb_account *a = l->account;
    struct holder tracer;
    struct held held;

    if (cause_traits(cause_of(a))->class != CAUSE_CLASS_STOPPED || l->chosen || l->over)
        return false;
    if (!held_read(a->pid, a->tid, &held) && held.state == 't' && held.tracer &&
        holder_thread(held.tracer, &tracer))
        l->found.holder = keep_other(l->o, &tracer, OBJECT_THREAD);
    return true;
}

static void look_at_wait(struct looking *l)
{
    if (look_at_tracer(l) || look_at_server(l))
        return;
    if (objects_by_stack(l->stack) && !l->over)
        look_at_any_child(l);
    else if (cause_has(cause_of(l->account), CAUSE_IS_KERNEL_LOCK))
        look_at_lock(l);
    else
        look_at_call(l);
}

/* ---- one wait ----------------------------------------------------------------------------- */

static bool still_waits(struct prcb_thread *t, uint64_t switches)
{
    struct prcb_times times = {.size = sizeof(times)};

    return !prcb_thread_times(t, &times) && times.switches == switches &&
           !(times.flags & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED));
}

#define PF_IO_WORKER_   0x10   /* from Linux 5.12 on */
#define PF_USER_WORKER_ 0x4000 /* from 6.2 on */

/* Whether the kernel made a thread within the process to work for it (io_uring, vhost). It has the
 * registers of the call that made it, and is in none. Only those have such names, or who likes. */
static bool is_worker(const struct prcb_account *a)
{
    char path[64], text[512];
    const char *at;
    unsigned flags;
    ssize_t length;

    if (strncmp(a->comm, "iou-", 4) != 0 && strncmp(a->comm, "vhost-", 6) != 0)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)a->pid, (int)a->tid);
    length = reach_read(a->pid, path, text, sizeof(text) - 1);
    text[length > 0 ? length : 0] = '\0';
    at = strrchr(text, ')');
    return at && sscanf(at, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
           flags & (PF_IO_WORKER_ | PF_USER_WORKER_);
}

/* The kernel reads what procfs shows of a call while the thread is off its processor, as in
 * stacks.c: where it shows the same again, counts read after it have every switch that the
 * thread began. */
static bool look(struct looking *l, struct prcb_thread *t)
{
    const struct prcb_account *a = l->account;
    struct object_call again;

    if (!still_waits(t, a->switches) || is_worker(a))
        return false;
    if (!object_call_read(a->pid, a->tid, &l->call)) /* it may wait outside of calls */
        return (look_at_tracer(l) || look_at_server(l)) && still_waits(t, a->switches);
    l->alone = descriptor_is_alone(a->pid);
    look_at_wait(l);
    return object_call_read(a->pid, a->tid, &again) && again.number == l->call.number &&
           again.sp == l->call.sp && again.pc == l->call.pc &&
           !memcmp(again.args, l->call.args, sizeof(again.args)) && still_waits(t, a->switches);
}

/* Looks at a wait that may be over by now, and whose call procfs does not tell any more: the
 * account has the kernel's lock, or which file was open by which number as the wait began. The
 * number may mean another file since. */
static void look_at_recorded(struct looking *l)
{
    const struct prcb_account *a = l->account;
    bool file = a->present & PRCB_HAS_OBJECT && a->present & PRCB_HAS_SYSCALL && a->object.inode;

    l->found = (struct object_wait){.object = 0};
    l->call =
        (struct object_call){.number = file ? a->last_syscall : -1, .args = {a->object.descriptor}};
    l->alone = false;
    l->over = true;
    look_at_wait(l);
}

struct object_wait objects_read(struct objects *o, const struct prcb_account *a,
                                const struct prcb_stack *stack)
{
    struct looking l = {.o = o, .account = a, .stack = stack};
    const struct object_wait none = {.object = 0};
    struct prcb_thread *t;
    bool same;

    if (a->flags & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED | PRCB_ACCOUNT_KTHREAD) ||
        prcb_thread_open_key(o->session, a->key, &t, NULL))
        return none;
    same = look(&l, t);
    prcb_thread_close(t);
    if (!same)
        look_at_recorded(&l);
    return l.found;
}

/* ---- chosen waits ---- */

/* Returns where it is kept. *ret_known: it is known; else the caller has to store its number. */
static struct known *known_of(struct objects *o, const struct prcb_chosen *chosen, int32_t call,
                              uint64_t argument, bool *ret_known)
{
    struct known wanted = {.pid = chosen->pid, .call = call, .argument = argument};
    uint64_t hash = (uint64_t)(uint32_t)wanted.pid << 32 ^ argument, now = now_ns();
    struct known *at;

    if (call != HOLDER) {
        wanted.inode = chosen->object.inode;
        wanted.device = chosen->object.device;
        memcpy(wanted.name, chosen->name, sizeof(wanted.name));
    }
    hash = (hash ^ wanted.inode ^ (uint32_t)call) * 0x9e3779b97f4a7c15u;
    at = &o->known[hash >> 32 & (KNOWN - 1)];
    *ret_known = at->until > now && at->pid == wanted.pid && at->call == call &&
                 at->argument == argument && at->inode == wanted.inode &&
                 at->device == wanted.device && !memcmp(at->name, wanted.name, sizeof(at->name));
    if (*ret_known)
        return at;
    *at = wanted;
    at->until = now + KNOWN_NS;
    return at;
}

/* Finds the holder that the lock named when the wait began. */
static void look_at_chosen_holder(struct looking *l)
{
    const struct prcb_chosen *chosen = l->chosen;
    struct known *known;
    struct futex futex;
    bool found;
    pid_t own;

    if (l->call.number != SYS_futex || !futex_of_call(&l->call, &futex))
        return;
    own =
        futex_says_interpreter(l->stack)
            ? chosen->lock_holder
            : futex_holder_in(chosen->word, chosen->words, futex.operation, l->stack, l->o->glibc);
    if (own <= 0)
        return;
    known = known_of(l->o, chosen, HOLDER, (uint64_t)own, &found);
    if (!found) {
        look_at_holder(l, own, NULL, NULL);
        known->number = l->found.holder;
    }
    l->found.holder = known->number;
}

struct object_wait objects_read_chosen(struct objects *o, const struct prcb_chosen *chosen,
                                       const struct prcb_stack *stack)
{
    struct prcb_account a = {
        .size = sizeof(a),
        .present = PRCB_HAS_OPEN | PRCB_HAS_OBJECT,
        .tid = chosen->tid,
        .pid = chosen->pid,
        .open = {.cause = chosen->cause},
        .object = chosen->object,
    };
    struct looking l = {
        .o = o,
        .account = &a,
        .stack = stack,
        .chosen = chosen,
        .call = {.number = chosen->syscall, .args = {chosen->args[0], chosen->args[1]}},
    };
    struct known *known;
    bool found;

    if (cause_has(chosen->cause, CAUSE_IS_KERNEL_LOCK)) {
        look_at_lock(&l);
        return l.found;
    }
    known = known_of(o, chosen, chosen->syscall, chosen->args[0], &found);
    if (!found) {
        look_at_call(&l);
        known->number = l.found.object;
    }
    l.found.object = known->number;
    look_at_chosen_holder(&l);
    return l.found;
}

/* ---- at the end --------------------------------------------------------------------------- */

static void note_end(struct objects *o, const struct end_wanted *end)
{
    struct object *object = &o->rows[end->object - 1];
    bool peer = object->kind == OBJECT_SOCKET;
    char text[TEXT_MOST], more[32] = "", doing[160];

    if (!end->pid)
        return;
    if (!end->more && end->pid != end->not_by && (peer || end->mode))
        object->other = end->pid;
    if (object->other && !peer) {
        holder_activity(end->pid, doing, sizeof(doing));
        replace(&object->doing, doing);
    }
    if (end->more)
        snprintf(more, sizeof(more), ", %u more", end->more);
    if (end->pid == end->not_by)
        snprintf(text, sizeof(text), peer ? "peer: the process itself" : "open in it alone");
    else
        snprintf(text, sizeof(text), "%s%s (%d)%s",
                 peer                   ? "peer: "
                 : end->mode == S_IRUSR ? "read by "
                 : end->mode == S_IWUSR ? "written by "
                                        : "also open in ",
                 end->comm, (int)end->pid, more);
    replace(&object->detail, text);
}

/* A connection may lead from one container into another. */
static void find_ends_elsewhere(struct objects *o)
{
    struct sockets_wanted *rows = calloc(o->count ? o->count : 1, sizeof(*rows));
    size_t count = 0;

    for (uint32_t i = 0; rows && i < o->count; i++) {
        const struct object *object = &o->rows[i];

        rows[count] = (struct sockets_wanted){.netns = object->netns, .number = i};
        count += object->kind == OBJECT_SOCKET && object->netns && !object->peer &&
                 sockets_take_name(object->name, &rows[count]);
    }
    sockets_find_elsewhere(rows, count);
    for (size_t i = 0; i < count; i++)
        o->rows[rows[i].number].peer = rows[i].peer;
    free(rows);
}

void objects_find_ends(struct objects *o)
{
    struct end_wanted *wanted = calloc(o->count ? o->count : 1, sizeof(*wanted));
    size_t count = 0;

    find_ends_elsewhere(o);
    for (uint32_t i = 0; wanted && i < o->count; i++) {
        const struct object *object = &o->rows[i];
        struct end_wanted *end = &wanted[count];

        *end = (struct end_wanted){.object = i + 1,
                                   .not_by = object->pid,
                                   .mode = object->kind == OBJECT_PIPE ? object->end : 0};
        if (object->kind == OBJECT_PIPE && object->inode)
            snprintf(end->link, sizeof(end->link), "pipe:[%" PRIu64 "]", object->inode);
        else if (object->kind == OBJECT_SOCKET && object->peer)
            snprintf(end->link, sizeof(end->link), "socket:[%" PRIu64 "]", object->peer);
        count += end->link[0] != '\0';
    }
    if (count)
        ends_find(wanted, count);
    for (size_t i = 0; i < count; i++)
        note_end(o, &wanted[i]);
    free(wanted);
}

int objects_file(const struct objects *o, int number)
{
    return number < o->file_count ? o->files[number].fd : OBJECTS_NO_FILE;
}

void objects_set_symbol(struct objects *o, uint32_t number, const char *symbol)
{
    if (number)
        replace(&o->rows[number - 1].symbol, symbol);
}
