/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwinder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demangle.h"
#include "error.h"
#include "made_code.h"
#include "now.h"
#include "reach.h"
#include "sandbox.h"

/* The limit has room for a large program's symbols and call frame information, mapped and
 * sorted. */
#define MEMORY        (4ull << 30)
#define FILES         4096
#define ANSWER_MS     5000 /* for one answer; the first of a large program is the longest */
#define ANSWER_S      10   /* ... after which the child ends by itself */
#define BUILD_ID_MOST 64
#define DEBUG_FOLDER  "/usr/lib/debug/.build-id/"

enum what {
    ASK_IMAGE,  /* begin a new image */
    ASK_FILE,   /* with a descriptor */
    ASK_LIST,   /* with the descriptor of a compiler's list */
    ASK_READY,  /* answered */
    ASK_UNWIND, /* answered; the stack and its frames are in shared memory */
    ASK_NAME,   /* answered */
};

struct ask {
    uint32_t what, image;
    uint64_t address; /* FILE: where it is mapped; NAME */
    struct frozen_registers at;
    uint64_t low, length;
};

struct answer {
    int32_t result;
    uint32_t wants_debug; /* not an answer yet: a file by its build id, or nothing, is to be sent */
    uint32_t count, end;
    uint32_t id_length;
    unsigned char id[BUILD_ID_MOST];
    char name[UNWINDER_NAME];
};

/* Both see it: the parent copies stacks here, the child puts frames here. The parent believes
 * nothing in it. */
struct shared {
    uint64_t frames[UNWINDER_FRAMES];
    unsigned char bytes[UNWINDER_BYTES_MOST];
};

struct unwinder {
    struct sandbox child;
    struct shared *shared;
    struct frozen frozen;
    bool known[UNWINDER_IMAGES];
    uint64_t cpu_ns; /* of children that were replaced */
};

/* ---- the child ------------------------------------------------------------------------ */

struct child {
    int socket;
    struct shared *shared;
    struct image *images[UNWINDER_IMAGES];
    struct made_code made[UNWINDER_IMAGES];
};

/* Separate debug information has the names of functions that a library does not export. The child
 * opens no file: it says which. */
static int ask_for_debug(void *ctx, const unsigned char *id, size_t length)
{
    struct child *child = ctx;
    struct answer want = {.wants_debug = 1, .id_length = (uint32_t)length};
    size_t count = 0;
    uint32_t got;
    int fd = -1;

    if (length > BUILD_ID_MOST)
        return -1;
    memcpy(want.id, id, length);
    if (sandbox_send(child->socket, &want, sizeof(want), NULL, 0) ||
        sandbox_receive(child->socket, &got, sizeof(got), &fd, 1, &count, -1) != sizeof(got))
        return -1;
    return count ? fd : -1;
}

static void begin_image(struct child *child, unsigned image)
{
    const struct image_debug debug = {ask_for_debug, child};

    image_close(child->images[image]);
    child->images[image] = NULL;
    made_code_free(&child->made[image]);
    image_open(&debug, &child->images[image]);
}

static void answer_unwind(struct child *child, const struct ask *ask, struct answer *answer)
{
    struct frozen frozen = {.at = ask->at, .low = ask->low, .bytes = child->shared->bytes};
    enum stack_end end;

    frozen.length = frozen.room = ask->length;
    answer->count = (uint32_t)image_unwind(child->images[ask->image], &frozen,
                                           child->shared->frames, UNWINDER_FRAMES, &end);
    answer->end = end;
}

static void answer_name(const struct child *child, const struct ask *ask, char ret[UNWINDER_NAME])
{
    const char *made = made_code_find(&child->made[ask->image], ask->address);
    char symbol[UNWINDER_NAME], plain[DEMANGLED_MAX];

    image_name(child->images[ask->image], ask->address, symbol, sizeof(symbol));
    if (!*symbol && made) {
        snprintf(ret, UNWINDER_NAME, "%s", made);
        return;
    }
    symbol[strcspn(symbol, "@")] = '\0'; /* a version: "@@GLIBC_2.34" */
    snprintf(ret, UNWINDER_NAME, "%s", demangle(symbol, plain));
}

/* False: it takes no answer. */
static bool answer_ask(struct child *child, const struct ask *ask, int fd, struct answer *answer)
{
    struct image *image = child->images[ask->image];

    switch (ask->what) {
    case ASK_IMAGE:
        begin_image(child, ask->image);
        return false;
    case ASK_FILE:
        if (image && fd >= 0)
            image_add(image, &(struct image_file){ask->address, fd, "file"});
        else if (fd >= 0)
            close(fd);
        return false;
    case ASK_LIST:
        if (fd >= 0) {
            made_code_free(&child->made[ask->image]);
            made_code_read(fd, &child->made[ask->image]);
        }
        return false;
    case ASK_READY:
        answer->result = image ? image_ready(image) : -ENOMEM;
        return true;
    case ASK_UNWIND:
        answer->result = image ? 0 : -ENOENT;
        if (image)
            answer_unwind(child, ask, answer);
        return true;
    case ASK_NAME:
        answer->result = image ? 0 : -ENOENT;
        if (image)
            answer_name(child, ask, answer->name);
        return true;
    default:
        return false;
    }
}

static int serve(int socket, void *ctx)
{
    struct child child = {.socket = socket, .shared = ctx};
    struct ask ask;
    size_t count;
    int fd;

    for (;;) {
        struct answer answer = {0};

        sandbox_alarm(0);
        fd = -1;
        if (sandbox_receive(socket, &ask, sizeof(ask), &fd, 1, &count, -1) != sizeof(ask))
            return 0;
        sandbox_alarm(ANSWER_S);
        if (answer_ask(&child, &ask, count ? fd : -1, &answer) &&
            sandbox_send(socket, &answer, sizeof(answer), NULL, 0))
            return 0;
    }
}

/* ---- the parent ----------------------------------------------------------------------- */

static int start(struct unwinder *u, struct prcb_error *err)
{
    const struct sandbox_limits limits = {.memory = MEMORY, .files = FILES};

    return sandbox_start(&limits, serve, u->shared, &u->child, err);
}

int unwinder_open(struct unwinder **ret, struct prcb_error *err)
{
    struct unwinder *u = calloc(1, sizeof(*u));
    int result;

    if (!u)
        return prcb_fail(err, -ENOMEM, "out of memory");
    u->shared =
        mmap(NULL, sizeof(*u->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (u->shared == MAP_FAILED) {
        free(u);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    u->frozen = (struct frozen){.bytes = u->shared->bytes, .room = sizeof(u->shared->bytes)};
    result = start(u, err);
    if (result)
        unwinder_close(u);
    else
        *ret = u;
    return result;
}

void unwinder_close(struct unwinder *u)
{
    if (!u)
        return;
    sandbox_stop(&u->child);
    munmap(u->shared, sizeof(*u->shared));
    free(u);
}

/* The child did not do as it should: it is replaced. Always returns -EIO. */
static int replace(struct unwinder *u)
{
    u->cpu_ns += sandbox_cpu_ns(&u->child);
    sandbox_stop(&u->child);
    memset(u->known, 0, sizeof(u->known));
    start(u, NULL);
    return -EIO;
}

/* Opens what Debian and others install by build id, and only root can write. -1: there is none. */
static int open_debug(const struct answer *want)
{
    char path[sizeof(DEBUG_FOLDER) + 2 * (size_t)BUILD_ID_MOST + 8] = DEBUG_FOLDER;
    size_t length = strlen(path);
    struct stat about;

    if (want->id_length < 2 || want->id_length > BUILD_ID_MOST)
        return -1;
    for (uint32_t i = 0; i < want->id_length; i++)
        length += (size_t)snprintf(path + length, sizeof(path) - length, i ? "%02x" : "%02x/",
                                   want->id[i]);
    snprintf(path + length, sizeof(path) - length, ".debug");
    return reach_open(0, path, &about);
}

static int hand_debug(struct unwinder *u, const struct answer *want)
{
    int fd = open_debug(want), result;
    uint32_t here = fd >= 0;

    result = here ? reach_hand(0, fd, u->child.socket, &here, sizeof(here)) : -ENOENT;
    if (result) {
        here = 0;
        result = sandbox_send(u->child.socket, &here, sizeof(here), NULL, 0);
    }
    if (fd >= 0)
        close(fd);
    return result;
}

static int send_ask(struct unwinder *u, const struct ask *ask)
{
    return u->child.pid ? sandbox_send(u->child.socket, ask, sizeof(*ask), NULL, 0) : -EIO;
}

/* A file that cannot be opened, or whose file system does not answer in time, is left out:
 * -errno then, and the child never learns of it. -EIO: the child does not take it. */
static int send_file(struct unwinder *u, pid_t pid, const struct ask *ask, int place)
{
    int result = u->child.pid ? reach_hand(pid, place, u->child.socket, ask, sizeof(*ask)) : -EIO;

    return result == -EPIPE || result == -ECONNRESET ? -EIO : result;
}

/* Waits for the answer. Sends the child the files that it wants on the way, at most one for each
 * file of its own, while there is time. */
static int await_answer(struct unwinder *u, struct answer *ret)
{
    uint64_t deadline = now_ms() + ANSWER_MS;

    for (unsigned i = 0; i < PROCESS_FILES; i++) {
        uint64_t now = now_ms();

        if (now >= deadline || sandbox_receive(u->child.socket, ret, sizeof(*ret), NULL, 0, NULL,
                                               (int)(deadline - now)) != sizeof(*ret))
            return -EIO;
        if (!ret->wants_debug)
            return 0;
        if (hand_debug(u, ret))
            return -EIO;
    }
    return -EIO;
}

static int ask_child(struct unwinder *u, const struct ask *ask, struct answer *ret)
{
    if (ask->image >= UNWINDER_IMAGES || !u->known[ask->image])
        return -ESTALE;
    if (send_ask(u, ask) || await_answer(u, ret))
        return replace(u);
    return ret->result;
}

int unwinder_image(struct unwinder *u, unsigned image, pid_t pid, const struct process_files *files)
{
    struct ask ask = {.what = ASK_IMAGE, .image = image};
    struct answer answer;

    if (image >= UNWINDER_IMAGES)
        return -EINVAL;
    if (!u->child.pid)
        start(u, NULL);
    if (send_ask(u, &ask))
        return replace(u);
    ask.what = ASK_FILE;
    for (size_t i = 0; i < files->count; i++) {
        const struct process_file *file = &files->rows[i];

        /* A file has one row for each part of it that has code. */
        if (file->fd < 0 || (i && files->rows[i - 1].base == file->base))
            continue;
        ask.address = file->base;
        if (send_file(u, pid, &ask, file->fd) == -EIO)
            return replace(u);
    }
    ask.what = ASK_LIST;
    if (files->list >= 0 && send_file(u, pid, &ask, files->list) == -EIO)
        return replace(u);
    ask.what = ASK_READY;
    u->known[image] = true;
    return ask_child(u, &ask, &answer);
}

struct frozen *unwinder_frozen(struct unwinder *u)
{
    return &u->frozen;
}

int unwinder_unwind(struct unwinder *u, unsigned image, uint64_t *ret, size_t *ret_count,
                    enum stack_end *ret_end)
{
    struct ask ask = {.what = ASK_UNWIND,
                      .image = image,
                      .at = u->frozen.at,
                      .low = u->frozen.low,
                      .length = u->frozen.length};
    struct answer answer;
    int result = ask_child(u, &ask, &answer);

    if (result)
        return result;
    if (!answer.count || answer.count > UNWINDER_FRAMES || answer.end > STACK_DEEP)
        return replace(u);
    memcpy(ret, u->shared->frames, answer.count * sizeof(*ret));
    *ret_count = answer.count;
    *ret_end = (enum stack_end)answer.end;
    return 0;
}

int unwinder_name(struct unwinder *u, unsigned image, uint64_t address, char ret[UNWINDER_NAME])
{
    struct ask ask = {.what = ASK_NAME, .image = image, .address = address};
    struct answer answer;
    int result = ask_child(u, &ask, &answer);

    if (result)
        return result;
    memcpy(ret, answer.name, UNWINDER_NAME);
    ret[UNWINDER_NAME - 1] = '\0';
    return 0;
}

uint64_t unwinder_cpu_ns(const struct unwinder *u)
{
    return u->cpu_ns + sandbox_cpu_ns(&u->child);
}
