/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb-push is started by `prcb push`, and of no use alone. It sends what comes on its standard
 * input, and has no right but to use the network: what is measured with rights is sent without.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "confine.h"
#include "error.h"
#include "now.h"
#include "read_file.h"
#include "send.h"
#include "text.h"

#define HEADERS_MOST 16384
#define LAST_MS      5000 /* for what is there when the input has ended */
#define POLL_MS      1000

struct push {
    struct sender *sender;
    struct queue queue;
    struct parcel *coming; /* NULL: its head comes */
    struct parcel_head head;
    size_t head_got;
    unsigned tries;  /* of the first parcel */
    uint64_t try_at; /* not before */
    uint64_t end_by; /* 0: the input goes on */
    uint64_t sent, bytes, given_up;
    bool failing; /* and that was said */
};

static void say(const char *what, const char *why)
{
    fprintf(stderr, "prcb push: %s", what);
    if (*why) {
        fputs(": ", stderr);
        text_print(stderr, TEXT_ESCAPES, why);
    }
    fputc('\n', stderr);
}

static void on_given_up(void *ctx, const struct parcel *parcel)
{
    struct push *p = ctx;

    p->given_up++;
    printf(PARCEL_GAP, parcel->head.from_ns, parcel->head.until_ns);
    fflush(stdout);
}

/* ---- input ----------------------------------------------------------------------- */

static void end_input(struct push *p)
{
    parcel_free(p->coming);
    p->coming = NULL;
    p->end_by = now_ms() + LAST_MS;
}

static int begin_parcel(struct push *p)
{
    struct parcel *parcel;

    p->head_got = 0;
    if (p->head.magic != PARCEL_MAGIC || p->head.size > PARCEL_MOST)
        return -EINVAL;
    parcel = calloc(1, sizeof(*parcel));
    if (!parcel || !(parcel->body = malloc(p->head.size + 1))) {
        free(parcel);
        return -ENOMEM;
    }
    parcel->head = p->head;
    p->coming = parcel;
    return 0;
}

/* Reads what is there. 0 or -errno, which ends the input. */
static int read_some(struct push *p)
{
    struct parcel *coming = p->coming;
    uint8_t *to = coming ? coming->body + coming->got : (uint8_t *)&p->head + p->head_got;
    size_t most = coming ? coming->head.size - coming->got : sizeof(p->head) - p->head_got;
    ssize_t got = read(STDIN_FILENO, to, most);

    if (got < 0)
        return errno == EINTR ? 0 : -errno;
    if (!got)
        return -EPIPE;
    if (!coming) {
        p->head_got += (size_t)got;
        return p->head_got == sizeof(p->head) ? begin_parcel(p) : 0;
    }
    coming->got += (size_t)got;
    if (coming->got == coming->head.size) {
        p->coming = NULL;
        queue_put(&p->queue, coming);
    }
    return 0;
}

static void read_input(struct push *p)
{
    int result = 0;

    while (!result && !p->end_by) {
        result = read_some(p);
        if (result && result != -EAGAIN)
            end_input(p);
    }
}

/* ---- answers --------------------------------------------------------------------- */

static void try_later(struct push *p, const struct sender_answer *answer)
{
    char what[96];
    uint32_t chance = 0;

    if (getrandom(&chance, sizeof(chance), 0) < 0)
        chance = 0;
    p->tries++;
    p->try_at = now_ms() + answer_pause(p->tries, answer->asked_ms, chance);
    if (p->failing)
        return;
    p->failing = true;
    if (answer->code)
        snprintf(what, sizeof(what), "the receiver answers %ld; it is tried again", answer->code);
    else
        snprintf(what, sizeof(what), "the receiver does not answer; it is tried again");
    say(what, answer->text);
}

static void end_first(struct push *p)
{
    p->tries = 0;
    p->try_at = 0;
    p->queue.sending = false;
    queue_drop_first(&p->queue);
}

static void take_answer(struct push *p, enum push_form form, const struct sender_answer *answer)
{
    char what[96];

    p->queue.sending = false;
    switch (answer_means(form, answer->code)) {
    case ANSWER_LATER:
        try_later(p, answer);
        return;
    case ANSWER_NEVER:
        snprintf(what, sizeof(what), "a profile is refused, the receiver answers %ld",
                 answer->code);
        say(what, answer->text);
        on_given_up(p, p->queue.first);
        break;
    case ANSWER_TAKEN:
        p->sent++;
        p->bytes += p->queue.first->head.size;
        if (answer->rejected || *answer->text) {
            snprintf(what, sizeof(what), "the receiver rejects %" PRIu64 " profiles of a request",
                     answer->rejected);
            say(what, answer->text);
        }
        if (answer->rejected)
            printf(PARCEL_GAP, p->queue.first->head.from_ns, p->queue.first->head.until_ns);
        fflush(stdout);
        if (p->failing)
            say("the receiver takes profiles again", "");
        p->failing = false;
        break;
    }
    end_first(p);
}

/* ---- the loop -------------------------------------------------------------------- */

static void begin_next(struct push *p)
{
    if (p->queue.sending || !p->queue.first || now_ms() < p->try_at)
        return;
    if (sender_begin(p->sender, p->queue.first))
        try_later(p, &(struct sender_answer){.text = "out of memory"});
    else
        p->queue.sending = true;
}

static int timeout(const struct push *p)
{
    uint64_t now = now_ms(), until = now + POLL_MS;

    if (p->queue.first && !p->queue.sending && p->try_at < until)
        until = p->try_at;
    if (p->end_by && p->end_by < until)
        until = p->end_by;
    return until > now ? (int)(until - now) : 0;
}

static void run(struct push *p, enum push_form form)
{
    struct sender_answer answer;

    while (!p->end_by || (p->queue.first && now_ms() < p->end_by)) {
        begin_next(p);
        sender_wait(p->sender, p->end_by ? -1 : STDIN_FILENO, timeout(p));
        read_input(p);
        if (sender_answered(p->sender, &answer))
            take_answer(p, form, &answer);
    }
    while (p->queue.first) {
        on_given_up(p, p->queue.first);
        end_first(p);
    }
}

static void sum_up(const struct push *p)
{
    char what[160];

    snprintf(what, sizeof(what), "%" PRIu64 " requests were taken, %" PRIu64 " bytes", p->sent,
             p->bytes);
    if (p->given_up)
        snprintf(what + strlen(what), sizeof(what) - strlen(what),
                 "; %" PRIu64 " were given up: that is a gap", p->given_up);
    say(what, "");
}

static int open_all(struct push *p, char **argv, enum push_form form)
{
    struct prcb_error err = {0};
    char *headers = NULL;
    size_t length = 0;
    struct sender_options options = {
        .url = argv[PUSH_URL],
        .name = argv[PUSH_NAME],
        .host = argv[PUSH_HOST],
        .form = form,
        .ca = argv[PUSH_CA],
    };
    int result =
        *argv[PUSH_HEADERS] ? read_file(argv[PUSH_HEADERS], HEADERS_MOST, &headers, &length) : 0;

    options.headers = headers ? headers : "";
    if (result)
        prcb_fail(&err, result, "--headers %s: %s", argv[PUSH_HEADERS], strerror(-result));
    else
        result = sender_open(&options, &p->sender, &err);
    if (headers)
        explicit_bzero(headers, length);
    free(headers);
    if (!result) {
        result = confine_identity();
        if (result)
            prcb_fail(&err, result, "cannot give up rights: %s", strerror(-result));
        else if (!sender_may_read(p->sender))
            result = prcb_fail(&err, -EACCES, "--ca %s: every user must be able to read it",
                               argv[PUSH_CA]);
    }
    if (result)
        say("cannot send", err.text);
    return result;
}

int main(int argc, char **argv)
{
    struct push p = {.queue = {.given_up = on_given_up}};
    enum push_form form;

    /* A signal to the whole group is prcb push's: it closes the pipe when it ends. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    if (argc != PUSH_ARGUMENTS) {
        fputs("prcb-push is started by prcb push\n", stderr);
        return 2;
    }
    form = (enum push_form)atoi(argv[PUSH_FORM]);
    p.queue.ctx = &p;
    p.queue.room = strtoull(argv[PUSH_ROOM], NULL, 10);
    if (open_all(&p, argv, form))
        return 1;
    fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    run(&p, form);
    sum_up(&p);
    sender_close(p.sender);
    return 0;
}
