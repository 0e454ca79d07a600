/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The sums of all queries, in PostgreSQL's shared memory: by database, user, query and whether it
 * was sent by a client or called by another. When there is no room the least used go. They are
 * written to a file when the server stops, and read from there when it starts.
 */
#ifndef PG_STAT_PRCB_STORE_H
#define PG_STAT_PRCB_STORE_H

#include <datatype/timestamp.h>
#include "backend.h"

struct store_key {
    Oid userid, dbid;
    uint64 queryid;
    bool toplevel;
};

struct store_sums {
    int64 calls;    /* that ended well */
    int64 errors;   /* and not */
    int64 workers;  /* parallel workers that took part */
    int64 measured; /* of all these, those whose figures are known, */
    int64 split;    /* and of additions, those with the causes of waits */
    int64 commit;   /* ns: what of all parts was at the ends of transactions */
    struct figures figures;
};

/* What a backend runs in parallel, for its workers, at each depth: a worker of the query around may
 * start while the inner one runs, and knows its own by the text, of which this has the hash. */
#define STORE_DEPTHS 8
struct store_leader {
    uint64 text; /* 0: none; changed last */
    struct store_key key;
};

extern int store_max;   /* queries there is room for */
extern bool store_save; /* write the file */

Size store_size(void);
void store_request(void); /* while shared_preload_libraries are loaded */
void store_startup(void); /* from shmem_startup_hook */

bool store_there(void);
/* Adds to the sums of a query. Nothing is added where there is no room even so. */
void store_add(const struct store_key *key, const struct store_sums *add);
/* Calls fn for each query. */
void store_walk(void (*fn)(const struct store_key *, const struct store_sums *, TimestampTz since,
                           void *),
                void *ctx);
/* Removes those that match; 0 matches all. */
int64 store_reset(Oid userid, Oid dbid, uint64 queryid);

/* Whether prcbd may be asked. Where it was late for some backend, all leave it alone for twice as
 * long as that one waited; then one of them tries. Each time that it is late again the pause is
 * twice the one before, up to PAUSE_MOST_MS. */
bool store_may_ask(TimestampTz now);
bool store_pauses(TimestampTz now);
/* How that went; late: it was given up. */
void store_asked(TimestampTz now, bool late);

/* What the calling backend runs at a depth, for its workers; text 0: nothing. */
void store_lead(int depth, uint64 text, const struct store_key *key);
/* The row of the query of this text that the calling worker's leader runs. False: none. */
bool store_led(uint64 text, struct store_key *ret);

#endif
