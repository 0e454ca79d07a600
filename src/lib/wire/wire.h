/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What libprcb and prcbd say to each other over a unix stream socket: docs/protocol.md has
 * it in words. Messages and their codec; no I/O, no state, no allocation. Numbers are in the
 * machine's own byte order: both ends are on one machine.
 *
 * A message is a header and a payload. The client asks, the daemon answers each request once
 * and in order, with the request's type and id. An answer whose status is negative is a
 * refusal, -errno, and its payload is a line of text.
 *
 * Ages: payloads only ever grow at their end. Who gets a shorter one than it knows takes
 * what is missing as zero, but for the members of the first version, which must be there;
 * who gets a longer one ignores what it does not know in an answer, and refuses a request
 * that is not zero there.
 */
#ifndef PRCB_WIRE_H
#define PRCB_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_DEFAULT_PATH "/run/prcb/socket"
#define WIRE_MAGIC        0x44425250u /* "PRBD" */
#define WIRE_MAJOR        1           /* both ends must have the same */
#define WIRE_MINOR        11          /* how far payloads have grown and types been added */
#define WIRE_MAX          1024        /* bytes of a message; a longer one ends the connection */
#define WIRE_MAX_FDS      3
#define WIRE_TOKEN        16

enum wire_type {
    WIRE_HELLO = 1,   /* first of all; once */
    WIRE_OPEN = 2,    /* a session, one a connection; the answer brings descriptors: its map, the
                         head page with the clock's offset, and with edges their map */
    WIRE_PROFILE = 3, /* threads that exist, and what they pass on */
    WIRE_SCOPE = 4,   /* new threads of a cgroup, or of the system */
    WIRE_RELEASE = 5, /* one account */
    WIRE_RELEASE_EXITED = 6,
    WIRE_REFRESH = 7,       /* how many processes were moved into the cgroup */
    WIRE_PROCESSORS = 8,    /* the answer brings the map of processor blocks; to who may profile all
                               threads also that of the threads on them */
    WIRE_KERNEL_STACK = 9,  /* of a thread that waits; since minor 3 */
    WIRE_PROGRAMS = 10,     /* those that the kernel runs for events; since minor 4 */
    WIRE_RELEASE_SOME = 11, /* accounts of a shared session; since minor 5 */
};

struct wire_header {
    uint32_t length; /* bytes, this header included */
    uint16_t type;   /* enum wire_type */
    uint16_t pad;    /* 0 */
    uint32_t id;     /* the client's choice; the answer repeats it */
    int32_t status;  /* of an answer: 0 or -errno; of a request: 0 */
};

struct wire_hello {
    uint32_t magic;
    uint16_t major, minor;
    char name[16]; /* version of the library or the daemon, for the log */
};

/* wire_hello_answer.may */
#define WIRE_MAY_PROFILE_ALL 1u
#define WIRE_MAY_PROCESSORS  2u

struct wire_hello_answer {
    struct wire_hello hello;
    uint16_t abi_major, abi_minor; /* of the blocks */
    uint32_t may;
    uint32_t accounts_default, accounts_most; /* of a session */
};

/* In wire_open.flags, this asks to keep registers of threads that are the client's own. Since minor
 * 1: an earlier daemon refuses it. */
#define WIRE_OPEN_REGISTERS 1u
/* This asks to keep edges: by whom threads were woken and preempted. Since minor 2. Where they
 * cannot be had the answer brings no third descriptor. */
#define WIRE_OPEN_EDGES 2u
/* The session of all threads that several clients share, and nothing of one's own but, since minor
 * 10, edges, which an answer of -EOPNOTSUPP says it does not keep; `accounts` means nothing. Since
 * minor 5. */
#define WIRE_OPEN_SHARED 4u
/* This asks to keep tails: how long waits and ready time took. The head says whether they are kept.
 * Since minor 6. */
#define WIRE_OPEN_TAILS 8u
/* This asks to keep switch records, with edges those of wakers too: rings in the session's map, of
 * which the head tells. Since minor 7. */
#define WIRE_OPEN_SWITCHES 16u
/* Keep what waits of threads that are the client's own are for. The head says whether. Since
 * minor 8. */
#define WIRE_OPEN_OBJECTS 32u
/* With edges, this asks who held the kernel's locks. The head says whether that is kept. Since
 * minor 9. */
#define WIRE_OPEN_OWNERS 64u
/* With edges, this asks whose threads ran while others were ready. The head says whether that is
 * kept; the session that is shared has them wherever it has edges. Since minor 11. */
#define WIRE_OPEN_MEANWHILE 128u

struct wire_open {
    uint32_t accounts; /* 0: the daemon's default */
    uint32_t flags;    /* WIRE_OPEN_* */
    /* Zero, or that of a session of the same process which the daemon's end cut off. */
    uint8_t token[WIRE_TOKEN];
};

struct wire_open_answer {
    uint32_t accounts;
    uint32_t resumed; /* 1: the session of the token goes on; no descriptors are sent */
    uint8_t token[WIRE_TOKEN];
};

enum wire_what { WIRE_THREAD = 1, WIRE_PROCESS = 2, WIRE_ALL = 3 };

struct wire_profile {
    uint32_t what;   /* enum wire_what */
    uint32_t number; /* in the client's pid namespace */
    uint32_t follow; /* enum prcb_follow bits */
};

struct wire_profile_answer {
    uint32_t seen;  /* threads with this number */
    uint32_t added; /* of these, new */
    uint32_t full;  /* of these, without an account: there was none free */
    uint32_t refused;
    uint32_t crowded; /* of these, which as many others profile already as can */
};

struct wire_scope {
    uint32_t all;       /* 1: every thread */
    uint32_t cgroup_v2; /* else: the cgroup is one of version 2 */
    uint64_t cgroup;    /* inode of its directory; 0 with all 0: no scope any more */
    /* Since minor 6: */
    uint32_t add; /* 1: beside the cgroups before, not instead of them */
    uint32_t pad; /* 0 */
};

struct wire_release {
    uint64_t key; /* generation << 32 | number of the account, from 0 */
};

#define WIRE_KEYS 120 /* fit into a message */
struct wire_release_some {
    uint32_t count;
    uint32_t pad;             /* 0 */
    uint64_t keys[WIRE_KEYS]; /* the first `count`; the rest need not be sent */
};

struct wire_count { /* answer to WIRE_RELEASE_EXITED and WIRE_REFRESH */
    uint64_t count;
};

/* Names the account, and its thread's number in the client's pid namespace. */
struct wire_kernel_stack {
    uint64_t key;
    uint32_t tid;
    uint32_t pad; /* 0 */
};

/* Names of functions, innermost first, each with a newline; as many as there is room for. */
struct wire_kernel_stack_answer {
    char text[WIRE_MAX - sizeof(struct wire_header)];
};

enum wire_programs_of { WIRE_OF_ACCOUNTS = 1, WIRE_OF_PROCESSORS = 2 };

struct wire_programs {
    uint32_t of; /* enum wire_programs_of */
};

#define WIRE_PROGRAM_NAME  28
#define WIRE_PROGRAMS_MOST 24

struct wire_program {
    uint64_t misses; /* since it was loaded; UINT64_MAX: the kernel does not say */
    uint32_t id;     /* the kernel's: another program has another */
    char name[WIRE_PROGRAM_NAME];
};

struct wire_programs_answer {
    uint32_t count;
    uint32_t pad;                                  /* 0 */
    struct wire_program items[WIRE_PROGRAMS_MOST]; /* no more than count are sent */
};

/* ---- taking messages apart ---- */

struct wire_message {
    struct wire_header header;
    const uint8_t *payload; /* in the caller's buffer, not aligned */
    size_t size;
};

/* Looks at the first message of a stream. Returns the bytes that it takes up; 0: it is not complete
 * yet; -EBADMSG: it is no message at all, -EMSGSIZE: it is longer than WIRE_MAX. */
int wire_take(const uint8_t *bytes, size_t have, struct wire_message *ret);

/* Reads a request's payload as a structure: at least `least` bytes of it must be there. -EBADMSG:
 * it is too short; -E2BIG: a member that is not known here is not zero. */
int wire_request(const struct wire_message *message, size_t least, void *ret, size_t size);

/* An answer's, the same, but what is not known is ignored. */
int wire_answer(const struct wire_message *message, size_t least, void *ret, size_t size);

/* Makes a message in a buffer of WIRE_MAX bytes. Returns its length; a payload that does not
 * fit is cut. */
size_t wire_make(uint8_t *buffer, uint16_t type, uint32_t id, int status, const void *payload,
                 size_t size);

/* Returns "profile"; NULL: there is no such type. */
const char *wire_type_name(uint16_t type);

#endif
