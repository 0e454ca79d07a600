/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Profiles as OTLP has them: an ExportProfilesServiceRequest, made of profiles for pprof, and what
 * a receiver answers. Rows of the dictionary are there once. Sums are those of the profiles.
 *
 * Threads  Any, for no state is kept.
 */
#ifndef PRCB_RECORD_OTLP_H
#define PRCB_RECORD_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OTLP_PROFILES "OTLP profiles v1development, opentelemetry-proto 1.10.0"

/* A profile for pprof, not in gzip, of one type of value. */
struct otlp_profile {
    const void *bytes;
    size_t size;
};

struct otlp_request {
    const struct otlp_profile *profiles;
    size_t count;
    const char *host, *service; /* host.name, service.name */
};

/* *ret is the caller's. 0, -ENOMEM, or -EINVAL: it is no profile. */
int otlp_make(const struct otlp_request *request, char **ret, size_t *ret_size);

struct otlp_answer {
    uint64_t rejected; /* profiles */
    char text[256];    /* the receiver's words, not fit to be shown; "": none */
};
/* Reads the body of an answer. 0, or -EINVAL: it is none. */
int otlp_read_answer(const void *bytes, size_t size, struct otlp_answer *ret);

#endif
