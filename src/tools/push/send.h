/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One request at a time to a receiver of profiles, by libcurl: HTTP and HTTPS, no redirection is
 * followed, and of an answer a bounded part is kept. It does not wait.
 *
 * One thread.
 */
#ifndef PRCB_PUSH_SEND_H
#define PRCB_PUSH_SEND_H

#include <prcb/error.h>

#include "queue.h"

struct sender_options {
    const char *url, *name, *host;
    enum push_form form;
    const char *headers; /* lines of a file; "": none */
    const char *ca;      /* a file of certificates; "": the system's */
};

struct sender;

int sender_open(const struct sender_options *options, struct sender **ret, struct prcb_error *err);
void sender_close(struct sender *s); /* NULL is allowed */
/* Whether it has the certificates, asked once it has given up its rights. */
bool sender_may_read(struct sender *s);

/* Begins to send; the parcel stays until sender_answer. 0 or -ENOMEM. */
int sender_begin(struct sender *s, const struct parcel *parcel);
/* Waits until something happens, also on `fd` (-1: none). */
void sender_wait(struct sender *s, int fd, int timeout_ms);

struct sender_answer {
    long code;         /* 0: none came */
    uint64_t asked_ms; /* for how long it asks not to be asked; 0: it does not */
    uint64_t rejected; /* OTLP: profiles of it that are not taken */
    char text[256];    /* why, or what it said; not fit to be shown */
};
/* Returns whether the request has come to its end. */
bool sender_answered(struct sender *s, struct sender_answer *ret);

#endif
