/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb dumps: what each processor of a crashed Windows was doing, read from its kernel crash dump.
 *
 * A dump is opened once; everything is found, read and cross-checked then: the container, the
 * debugger data, the KPRCB of each processor, the layout of that kernel's structures, notes a
 * person would want. What the getters return is plain memory. This is no debugger: it knows no
 * names of functions (an address is module+offset), unwinds no stacks (it scans one), and reads no
 * structure but those of src/windows/layout's catalog.
 *
 *     struct prcb_dump *d;
 *     if (prcb_dump_open("MEMORY.DMP", NULL, &d, &err))
 *         ... err.text says what is wrong, err.offset where in the file
 *     for (size_t i = 0; i < prcb_dump_processor_count(d); i++)
 *         ... prcb_dump_processor(d, i)->items[PRCB_DUMP_KernelTime].value
 *     prcb_dump_close(d);
 *
 * Absent   A value that the dump does not hold has found_by PRCB_DUMP_NOT_FOUND and an `absent`
 *          text that says why; its number means nothing. Never 0 for unknown.
 * Bounds   The file is not trusted: every offset, count and size in it is checked. The file must
 *          not be cut by others while it is open (it is mapped).
 * Errors   0 or -errno; results unchanged on failure; err may be NULL.
 * Threads  An open dump never changes: any number of threads may use it.
 * Owner    prcb_dump_open gives a dump to the caller, prcb_dump_close takes it back; all that is
 *          reached through it is borrowed until then.
 */
#ifndef PRCB_DUMP_H
#define PRCB_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- values ------------------------------------------------------------- */

/* How the place of a value in the dump was found. */
enum prcb_dump_found {
    PRCB_DUMP_NOT_FOUND = 0,
    PRCB_DUMP_BY_CATALOG,  /* a row of the layout catalog, for this build */
    PRCB_DUMP_BY_KDBG,     /* the dump's own debugger data name the offset */
    PRCB_DUMP_BY_LANDMARK, /* a pattern in the bytes themselves */
    PRCB_DUMP_BY_SYMBOLS,  /* prcb_dump_options.symbols */
    PRCB_DUMP_BY_HEADER,   /* the dump's header or triage header, or a list that it names */
};
/* "catalog", "kdbg", "landmark", "symbols", "header"; NULL for not found. Static. */
PRCB_API const char *prcb_dump_found_name(enum prcb_dump_found found);

struct prcb_dump_value {
    uint64_t value;     /* as stored: ticks, counts, an address */
    uint8_t found_by;   /* enum prcb_dump_found; 0: absent */
    const char *absent; /* why, one short static text; NULL when present */
    uint64_t reserved[2];
};

/* What is read of each processor, row by row: X(name, structure, member path,
 * path in other versions or NULL). The names are NT's
 * where NT has one. Times are clock ticks (prcb_dump_info.time_increment), except IdleTimeTotal
 * (ticks of the performance counter) and the cycle times. */
#define PRCB_DUMP_ITEMS(X)                                                                         \
    X(InterruptCount, KPRCB, "InterruptCount", NULL)                                               \
    X(KernelTime, KPRCB, "KernelTime", NULL)                                                       \
    X(UserTime, KPRCB, "UserTime", NULL)                                                           \
    X(DpcTime, KPRCB, "DpcTime", NULL)                                                             \
    X(InterruptTime, KPRCB, "InterruptTime", NULL)                                                 \
    X(MHz, KPRCB, "MHz", NULL)                                                                     \
    X(KeContextSwitches, KPRCB, "KeContextSwitches", NULL)                                         \
    X(KeSystemCalls, KPRCB, "KeSystemCalls", NULL)                                                 \
    X(DpcCount, KPRCB, "DpcCount", "DpcData[0].DpcCount")                                          \
    X(DpcQueueDepth, KPRCB, "DpcQueueDepth", "DpcData[0].DpcQueueDepth")                           \
    X(DpcTimeCount, KPRCB, "DpcTimeCount", NULL)                                                   \
    X(DpcTimeLimit, KPRCB, "DpcTimeLimit", "DpcTimeLimitTicks")                                    \
    X(DpcWatchdogPeriod, KPRCB, "DpcWatchdogPeriod", "DpcWatchdogPeriodTicks")                     \
    X(DpcWatchdogCount, KPRCB, "DpcWatchdogCount", NULL)                                           \
    X(CurrentThread, KPRCB, "CurrentThread", NULL)                                                 \
    X(NextThread, KPRCB, "NextThread", NULL)                                                       \
    X(IdleThread, KPRCB, "IdleThread", NULL)                                                       \
    X(ProcessorProfileControlArea, KPRCB, "ProcessorProfileControlArea", NULL)                     \
    X(IdleStates, POWER, "IdleStates", NULL)                                                       \
    X(IdleAccounting, POWER, "IdleAccounting", NULL)                                               \
    X(IdleTimeTotal, POWER, "IdleTimeTotal", NULL)                                                 \
    X(TargetIdleState, POWER, "TargetIdleState", NULL)                                             \
    X(LatestPerformancePercent, POWER, "LatestPerformancePercent", NULL)                           \
    X(AveragePerformancePercent, POWER, "AveragePerformancePercent",                               \
      "CheckContext.AveragePerformancePercent")                                                    \
    X(Parked, POWER, "Parked", NULL)                                                               \
    X(IdleTime, IDLE, "KernelTime", NULL)                                                          \
    X(ThreadState, THREAD, "State", NULL)                                                          \
    X(ThreadWaitReason, THREAD, "WaitReason", NULL)                                                \
    X(ThreadContextSwitches, THREAD, "ContextSwitches", NULL)                                      \
    X(ThreadCycleTime, THREAD, "CycleTime", NULL)                                                  \
    X(ThreadKernelTime, THREAD, "KernelTime", NULL)                                                \
    X(ThreadUserTime, THREAD, "UserTime", NULL)                                                    \
    X(ThreadWaitTime, THREAD, "WaitTime", NULL)                                                    \
    X(ThreadCounters, THREAD, "ThreadCounters", NULL)                                              \
    X(DpcRoutineActive, KPRCB, "DpcRoutineActive", NULL)                                           \
    X(ActiveDpc, KPRCB, "DpcData[0].ActiveDpc", NULL)                                              \
    X(ThreadedDpcCount, KPRCB, "DpcData[1].DpcCount", NULL)                                        \
    X(ThreadedDpcQueueDepth, KPRCB, "DpcData[1].DpcQueueDepth", NULL)

enum prcb_dump_item {
#define PRCB_DUMP_ITEM_ENUM_ROW(name, structure, path, other) PRCB_DUMP_##name,
    PRCB_DUMP_ITEMS(PRCB_DUMP_ITEM_ENUM_ROW)
#undef PRCB_DUMP_ITEM_ENUM_ROW
        PRCB_DUMP_ITEM_COUNT,
};

/* ---- opening ------------------------------------------------------------ */

/* One member out of a symbol file. Structures are named without leading underscore; an empty
 * member name gives the structure's size in `size`. */
struct prcb_dump_symbol {
    const char *structure;        /* "KPRCB" */
    const char *member;           /* dotted path: "PerfActionDpc.DeferredContext" */
    const char *type;             /* for printing: "ULONG"; may be NULL */
    uint32_t offset;              /* from the start of the structure */
    uint32_t size;                /* bytes */
    uint8_t bit_first, bit_width; /* width 0: no bit field */
    bool is_pointer, is_signed;
};

struct prcb_dump_options {
    size_t size;             /* sizeof(struct prcb_dump_options) */
    uint32_t time_increment; /* length of a clock tick in 100 ns; 0: the dump's, or 156250 */
    uint32_t pad;
    uint64_t qpc_frequency; /* performance counter ticks per second; 0: assumed where known */
    /* Layouts from the kernel's symbol file, used before the catalog's; borrowed until close. */
    const struct prcb_dump_symbol *symbols;
    size_t symbol_count;
    size_t symbol_size; /* sizeof(struct prcb_dump_symbol), where there are symbols */
    /* The GUID of the symbol file, as an image has it (16 bytes), and its age; NULL: not known.
     * Symbols of another GUID than the kernel's, where the dump has that, are not used. */
    const uint8_t *symbol_guid;
    uint32_t symbol_age, pad2;
    const char *symbol_name; /* for prcb_dump_info.symbols; NULL: none */
};

struct prcb_dump; /* opaque */

/* Opens a dump. options may be NULL.
 * -ENOENT, -EACCES, ...  the file itself
 * -EINVAL      not a crash dump (err->text says what it is, if known), or one that is damaged
 * -ENODATA     the file ends too early
 * -EOPNOTSUPP  a crash dump of a kind that is recognised and not read
 * -ENOMEM, -E2BIG */
PRCB_API int prcb_dump_open(const char *path, const struct prcb_dump_options *options,
                            struct prcb_dump **ret, struct prcb_error *err);
/* The same for an open file, which stays the caller's and may be closed at once; name is for
 * messages. */
PRCB_API int prcb_dump_open_fd(int fd, const char *name, const struct prcb_dump_options *options,
                               struct prcb_dump **ret, struct prcb_error *err);
/* The same for bytes in memory, which must stay until prcb_dump_close. */
PRCB_API int prcb_dump_open_memory(const void *bytes, size_t length, const char *name,
                                   const struct prcb_dump_options *options, struct prcb_dump **ret,
                                   struct prcb_error *err);
/* NULL is allowed. */
PRCB_API void prcb_dump_close(struct prcb_dump *d);

/* ---- what was found ----------------------------------------------------- */

enum prcb_dump_assumed {
    PRCB_DUMP_FROM_DUMP = 1, /* the dump holds it */
    PRCB_DUMP_FROM_OPTION,   /* the caller said it */
    PRCB_DUMP_ASSUMED,       /* neither: a usual value is assumed */
};

/* The machine as a whole. Strings are static or borrowed; NULL: not known. */
struct prcb_dump_info {
    const char *container;       /* "triage64" */
    const char *container_words; /* "triage dump (minidump), 64-bit" */
    const char *machine;         /* "x86", "x64", "arm64" */
    uint32_t major, build;       /* as in the header: 15 (free) or 12 (checked); 19041 */
    const char *release;         /* "Windows 10 2004 to 22H2" */
    const char *layout;          /* name of the catalog's version in use; NULL: none fits */
    uint8_t layout_found;        /* enum prcb_dump_found: catalog or symbols */
    uint32_t layout_candidates;  /* catalog versions that were not refuted */
    uint32_t bugcheck_code;
    const char *bugcheck_name;
    uint64_t bugcheck_parameters[4];
    uint64_t uptime_100ns;         /* 0: not in this dump */
    uint64_t crash_time;           /* FILETIME: 100 ns since 1601; 0: not in this dump */
    uint32_t header_processors;    /* how many the header says */
    uint32_t time_increment;       /* 100 ns per clock tick */
    uint8_t time_increment_source; /* enum prcb_dump_assumed */
    uint8_t qpc_source;            /* enum prcb_dump_assumed; 0: nothing can be assumed */
    uint64_t qpc_frequency;        /* Hz; 0: not known */
    bool kdbg_encoded;             /* the debugger data are there, encoded */
    const char *bugcheck_words[4]; /* what the parameters are; NULL: not known */
    uint32_t exception_code;       /* of the header's exception record; 0: not in this dump */
    uint32_t product_type;         /* 1 workstation, 2 domain controller, 3 server; else not said */
    uint64_t exception_address;
    const char *kernel_pdb; /* the kernel's symbol file as a symbol server has it:
                               "ntkrnlmp.pdb/3844...2/ntkrnlmp.pdb"; NULL: not in this dump */
    const char *symbols;    /* symbol_name of the options, if those symbols are used; NULL */
    const char *computer;   /* by SMBIOS: "QEMU Standard PC (Q35 + ICH9, 2009)" */
    const char *firmware;   /* by SMBIOS: "SeaBIOS 1.16.2, 04/01/2014" */
};
PRCB_API const struct prcb_dump_info *prcb_dump_info(const struct prcb_dump *d);

struct prcb_dump_processor {
    uint32_t number;
    bool crashing;   /* the one that called KeBugCheckEx, as far as the dump says */
    bool held;       /* some of its KPRCB is in the dump */
    bool has_kprcb;  /* kprcb is known */
    uint64_t kprcb;  /* address */
    char vendor[16]; /* "GenuineIntel", "Qualcomm"; "" if absent */
    const struct prcb_dump_value *items; /* by enum prcb_dump_item; as many as the library knows:
                                            prcb_dump_item_name ends with them */
    bool has_power_state;
    uint32_t power_offset;     /* of PROCESSOR_POWER_STATE in its KPRCB */
    uint8_t power_found;       /* enum prcb_dump_found */
    bool power_confirmed;      /* its KDPC carries this KPRCB's address: the landmark holds */
    const char *power_version; /* of the layout its members are read by; "symbols" */
};
PRCB_API size_t prcb_dump_processor_count(const struct prcb_dump *d);
/* NULL past the last. In order of number. */
PRCB_API const struct prcb_dump_processor *prcb_dump_processor(const struct prcb_dump *d,
                                                               size_t index);
/* NT's name of an item: "InterruptCount"; NULL past the last. */
PRCB_API const char *prcb_dump_item_name(unsigned int item);

/* What a person should know, each with the numbers it rests on; NULL past the last. */
PRCB_API const char *prcb_dump_note(const struct prcb_dump *d, size_t index);

/* ---- the cause ---------------------------------------------------------- */

/* What the bug check says, a sentence each: "driver.sys+0x12 tried to read 0x10 at DISPATCH_LEVEL,
 * where a page fault is not allowed". NULL past the last. */
PRCB_API const char *prcb_dump_finding(const struct prcb_dump *d, size_t index);
/* "STATUS_ACCESS_VIOLATION"; NULL: no name is known. Static. */
PRCB_API const char *prcb_dump_exception_name(uint32_t code);

/* The module that most likely caused the bug check, which is no proof. */
struct prcb_dump_culprit {
    size_t size;          /* sizeof(struct prcb_dump_culprit), set by the caller */
    const char *module;   /* "driver.sys"; borrowed */
    const char *found_by; /* what speaks against it: "the bug check names its code"; static */
    uint32_t frames;      /* addresses on the crashing thread's stack that lie in it */
    uint32_t of_frames;   /* and in any module; 0: the stack is not in this dump */
    bool is_unloaded;     /* it was unloaded before the crash */
    bool is_inbox;        /* it comes with Windows */
};
/* -ENODATA: nothing points at a module but the kernel; -EINVAL: size is not set. */
PRCB_API int prcb_dump_culprit(const struct prcb_dump *d, struct prcb_dump_culprit *ret);
/* Whether a driver of this file name comes with Windows, by a list of names. */
PRCB_API bool prcb_dump_is_inbox(const char *name);

/* ---- modules ------------------------------------------------------------ */

/* A module of the kernel. */
struct prcb_dump_module {
    size_t size;        /* sizeof(struct prcb_dump_module), set by the caller */
    const char *name;   /* "dxgkrnl.sys": printable ASCII, '?' for what is not; borrowed */
    uint64_t base;      /* address */
    uint64_t length;    /* bytes */
    uint32_t timestamp; /* TimeDateStamp of its image: seconds since 1970, or a hash of the
                           image; 0: not in this dump */
    uint32_t checksum;  /* 0: not in this dump, or none */
    bool is_unloaded;   /* it was there, and was unloaded before the crash */
    uint8_t found_by;   /* enum prcb_dump_found */
};
/* Loaded ones first, then unloaded ones, each in order of address. 0 if there is no list. */
PRCB_API size_t prcb_dump_module_count(const struct prcb_dump *d);
/* -ENOENT past the last; -EINVAL: size is not set. */
PRCB_API int prcb_dump_module(const struct prcb_dump *d, size_t index,
                              struct prcb_dump_module *ret);
/* "dxgkrnl.sys+0x1a2b" of an address, with " (unloaded)" where that is so; cut to size bytes.
 * -ENOENT: it lies in no module. */
PRCB_API int prcb_dump_address_text(const struct prcb_dump *d, uint64_t address, char *ret,
                                    size_t size);

/* ---- where processors were ---------------------------------------------- */

/* The registers of a processor as it left them when it was stopped; the crashing one's are those
 * of the header. */
struct prcb_dump_context {
    size_t size;        /* sizeof(struct prcb_dump_context), set by the caller */
    const char *absent; /* why there is none; NULL when present. Static */
    uint64_t program_counter, stack_pointer;
    uint32_t register_count; /* prcb_dump_register */
    uint8_t found_by;        /* enum prcb_dump_found; 0: absent */
    uint8_t irql_found_by;   /* 0: not in this dump */
    uint8_t irql;            /* x64: CR8 as saved; a processor that the bug check stopped has 15 */
};
/* processor: an index, as of prcb_dump_processor. -EINVAL: no such, or size is not set. */
PRCB_API int prcb_dump_context(const struct prcb_dump *d, size_t processor,
                               struct prcb_dump_context *ret);
/* A register by its place, the program counter first; the name is static. -ENOENT past the last. */
PRCB_API int prcb_dump_register(const struct prcb_dump *d, size_t processor, size_t index,
                                const char **ret_name, uint64_t *ret);
/* "DISPATCH_LEVEL"; NULL: a device's, or none. Static. */
PRCB_API const char *prcb_dump_irql_name(const struct prcb_dump *d, unsigned int irql);

/* A processor's current thread, and the process it belongs to or is attached to. */
struct prcb_dump_thread {
    size_t size;              /* sizeof(struct prcb_dump_thread), set by the caller */
    uint64_t address;         /* of its KTHREAD; 0: not known */
    uint64_t process;         /* of its EPROCESS; 0: not known */
    const char *process_name; /* EPROCESS.ImageFileName; NULL: not known. Borrowed */
    uint32_t id, process_id;  /* 0 of both: an idle thread */
    uint8_t ids_found_by;     /* enum prcb_dump_found; 0: the ids are not in this dump */
    uint8_t name_found_by;
};
/* -EINVAL: no such processor, or size is not set. */
PRCB_API int prcb_dump_thread(const struct prcb_dump *d, size_t processor,
                              struct prcb_dump_thread *ret);

/* Calls fn for each value on the crashing thread's stack that is an address inside a module, from
 * the top of the stack; stops at the first non-zero return and returns it. It is a scan: what a
 * function left there long ago shows as well, and nothing says what called what.
 * -ENODATA: the stack, or the list of modules, is not in this dump. */
typedef int (*prcb_dump_stack_fn)(uint64_t address, uint64_t value, void *ctx);
PRCB_API int prcb_dump_stack_scan(const struct prcb_dump *d, prcb_dump_stack_fn fn, void *ctx,
                                  struct prcb_error *err);

/* A DPC of a processor. */
struct prcb_dump_dpc {
    size_t size;      /* sizeof(struct prcb_dump_dpc), as the library has it */
    uint64_t address; /* of its KDPC */
    uint64_t routine; /* DeferredRoutine, if is_held */
    bool is_held;     /* its KDPC is in the dump */
    bool is_threaded; /* queued for the processor's DPC thread */
    bool is_active;   /* it runs (Windows 8.1 and later); else it waits in the queue */
};
typedef int (*prcb_dump_dpc_fn)(const struct prcb_dump_dpc *dpc, void *ctx);
/* Calls fn for the active and the queued DPCs of a processor, in order of their queue; stops at the
 * first non-zero return and returns it. A queue that leads back into itself ends there.
 * -EINVAL: no such processor; -ENODATA: where the queues are is not known. */
PRCB_API int prcb_dump_dpcs(const struct prcb_dump *d, size_t processor, prcb_dump_dpc_fn fn,
                            void *ctx);

/* ---- structures and bytes ----------------------------------------------- */

/* A member of a structure of a processor. */
struct prcb_dump_member {
    const char *path, *type; /* borrowed for the call */
    uint64_t address;        /* in the dump's address space */
    uint32_t offset, size;   /* in the structure */
    uint8_t bit_first, bit_width;
    bool is_pointer, is_signed, is_opaque;
    bool is_held;           /* its bytes are in the dump */
    uint64_t value;         /* scalars that are held */
    const char *value_name; /* of an enumeration's value, or NULL */
};
typedef int (*prcb_dump_member_fn)(const struct prcb_dump_member *member, void *ctx);

/* What a structure's members are read by. */
struct prcb_dump_structure {
    size_t size; /* sizeof(struct prcb_dump_structure), set by the caller */
    const char *name;
    char version[96]; /* of the layout: "10.0.19041", "first .. last" of several, "symbols" */
    uint64_t address;
    bool has_address; /* false: read from a copy whose address is not known */
    uint32_t length;  /* bytes, by the layout; 0 not known */
    uint8_t found_by; /* enum prcb_dump_found, of the structure's place */
    bool is_inferred; /* nobody read the layout in this version: it is that of those around it */
};

/* Names of the structures that can be asked for, NULL past the last: KPRCB,
 * PROCESSOR_POWER_STATE, KTHREAD (the current thread), and those behind their pointers. */
PRCB_API const char *prcb_dump_structure_at(unsigned int index);
/* Calls fn for each member of a structure of a processor, in order of offset; stops at the first
 * non-zero return and returns it. fn may be NULL: only *ret (may be NULL too) is filled.
 * -EINVAL   no such structure or processor, or ret->size is not set
 * -ENODATA  its address, or all its bytes, are not in this dump
 * -ENOENT   no layout of it is known for this kernel */
PRCB_API int prcb_dump_structure(const struct prcb_dump *d, size_t processor, const char *name,
                                 prcb_dump_member_fn fn, void *ctx, struct prcb_dump_structure *ret,
                                 struct prcb_error *err);

/* Copies bytes at an address of the crashed kernel. -ENODATA: not all in this dump; err->text
 * says why (no block, page out, transition, prototype). */
PRCB_API int prcb_dump_read(const struct prcb_dump *d, uint64_t address, void *buffer,
                            size_t length, struct prcb_error *err);

#ifdef __cplusplus
}
#endif
#endif
