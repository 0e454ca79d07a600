/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb: the records that processors of Intel leave in a Debug Store buffer: PEBS formats 0 to 6
 * and BTS, from bytes to members and back, byte for byte. Formats 0 to 3 have a fixed layout;
 * in 4, 5 and 6 (adaptive) each record says which groups it has and how long it is. Format 6 adds
 * the values of counters. Of records that are written here see prcb/sample.h.
 *
 * No state, any thread. Input is not trusted: what does not hold together is refused. Errors as
 * in prcb.h; err->offset is where in the input.
 */
#ifndef PRCB_PEBS_H
#define PRCB_PEBS_H

#include <prcb/prcb.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRCB_PEBS_FORMATS      7 /* 0 to 6 */
#define PRCB_PEBS_LBR_MAX      256
#define PRCB_PEBS_COUNTERS_MAX 32
#define PRCB_BTS_RECORD_SIZE   24

/* The registers of a record. */
enum prcb_pebs_register {
    PRCB_PEBS_AX,
    PRCB_PEBS_BX,
    PRCB_PEBS_CX,
    PRCB_PEBS_DX,
    PRCB_PEBS_SI,
    PRCB_PEBS_DI,
    PRCB_PEBS_BP,
    PRCB_PEBS_SP,
    PRCB_PEBS_R8, /* and so on to R15 */
    PRCB_PEBS_REGISTERS = 16,
};

/* Groups of formats 4 and up: bits of prcb_pebs_record.groups, as of PEBS_DATA_CFG. */
enum prcb_pebs_group {
    PRCB_PEBS_GROUP_MEMORY = 1 << 0,
    PRCB_PEBS_GROUP_GPR = 1 << 1,
    PRCB_PEBS_GROUP_XMM = 1 << 2,
    PRCB_PEBS_GROUP_LBR = 1 << 3,      /* (groups >> 24) + 1 entries */
    PRCB_PEBS_GROUP_COUNTERS = 1 << 4, /* format 6 */
    PRCB_PEBS_GROUP_METRICS = 1 << 5,  /* format 6 */
};

/* Which members of a record hold a value. */
enum prcb_pebs_member {
    PRCB_PEBS_HAS_REGISTERS = 1 << 0, /* flags, ip, registers */
    PRCB_PEBS_HAS_STATUS = 1 << 1,    /* status */
    PRCB_PEBS_HAS_MEMORY = 1 << 2,    /* data_address, data_source, latency */
    PRCB_PEBS_HAS_EVENTING = 1 << 3,  /* eventing_ip */
    PRCB_PEBS_HAS_TSX = 1 << 4,       /* tsx */
    PRCB_PEBS_HAS_TSC = 1 << 5,       /* tsc */
    PRCB_PEBS_HAS_RETIRE = 1 << 6,    /* retire_latency: 0 on processors that do not tell it */
    PRCB_PEBS_HAS_XMM = 1 << 7,       /* xmm */
    PRCB_PEBS_HAS_LBR = 1 << 8,       /* lbr */
    PRCB_PEBS_HAS_COUNTERS = 1 << 9,  /* the masks and values of counters */
    PRCB_PEBS_HAS_METRICS = 1 << 10,  /* metrics_base, metrics_data */
};

struct prcb_pebs_branch {
    uint64_t from, to, info;
};

/* One record. */
struct prcb_pebs_record {
    size_t size;     /* sizeof(struct prcb_pebs_record), set by the caller */
    uint32_t format; /* 0 to 6 */
    uint32_t has;    /* enum prcb_pebs_member; of formats 4 and up the groups decide */
    uint32_t groups; /* formats 4 and up: enum prcb_pebs_group, and above bit 23 the LBR entries
                        less one; as the record has them */
    uint32_t length; /* bytes that it takes */
    uint64_t flags;  /* RFLAGS */
    uint64_t ip;     /* the instruction after the one that is meant, on most processors */
    uint64_t registers[PRCB_PEBS_REGISTERS]; /* in the order of enum prcb_pebs_register */
    uint64_t status;       /* counters that this is a record of: bit n, fixed ones 32 + n */
    uint64_t data_address; /* linear */
    uint64_t data_source;  /* the processor's own code */
    uint64_t latency;      /* clocks; from Alder Lake on 15:0 instruction, 47:32 cache */
    uint64_t eventing_ip;  /* the instruction that is meant */
    uint64_t tsx;          /* 31:0 clocks of the last transaction, 39:32 why it was aborted */
    uint64_t tsc;
    uint16_t retire_latency; /* clocks between this and the retirement before */
    uint16_t pad[3];
    uint8_t xmm[16][16];
    struct prcb_pebs_branch lbr[PRCB_PEBS_LBR_MAX]; /* the last branch first */
    uint32_t counter_mask;                          /* general counters that have a value */
    uint32_t fixed_mask;                            /* fixed ones */
    uint32_t metrics_word;                          /* 3: there are metrics */
    uint32_t counters_reserved;
    uint64_t counters[PRCB_PEBS_COUNTERS_MAX]; /* by number */
    uint64_t fixed[PRCB_PEBS_COUNTERS_MAX];
    uint64_t metrics_base, metrics_data;
};

/* Bytes of a record of formats 0 to 3; 0 for the others. */
PRCB_API size_t prcb_pebs_record_size(uint32_t format);

/* The record at the beginning of length bytes.
 * -EINVAL  no such format; the record's length is not that of its groups; a group that the format
 *          has not
 * -ENODATA length is too short for the record */
PRCB_API int prcb_pebs_decode(uint32_t format, const void *bytes, size_t length,
                              struct prcb_pebs_record *ret, struct prcb_error *err);

/* The bytes of a record. *ret_length is how many they are, and told also when they do not fit.
 * What its groups, or its format, have no place for is left out.
 * -EINVAL as above. -ENOSPC: more than room. */
PRCB_API int prcb_pebs_encode(const struct prcb_pebs_record *record, void *bytes, size_t room,
                              size_t *ret_length, struct prcb_error *err);

typedef int (*prcb_pebs_fn)(const struct prcb_pebs_record *record, void *ctx);
/* Calls fn for each record of a buffer that is full to its end; stops at its first non-zero
 * return and returns it. A record that is cut or damaged ends it with the error of
 * prcb_pebs_decode, after those before it. */
PRCB_API int prcb_pebs_walk(uint32_t format, const void *bytes, size_t length, prcb_pebs_fn fn,
                            void *ctx, struct prcb_error *err);

/* ---- branch trace store ---- */

struct prcb_bts_record {
    uint64_t from, to;
    uint64_t flags; /* bit 4: it was predicted */
};

/* PRCB_BTS_RECORD_SIZE bytes each. */
PRCB_API void prcb_bts_decode(const void *bytes, struct prcb_bts_record *ret);
PRCB_API void prcb_bts_encode(const struct prcb_bts_record *record, void *bytes);

#ifdef __cplusplus
}
#endif
#endif
