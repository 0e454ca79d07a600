/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The inside of struct prcb_dump, for the files of src/windows/dump. dump.c fills it in the order
 * of the members, once; nothing changes after.
 */
#ifndef PRCB_DUMP_INSIDE_H
#define PRCB_DUMP_INSIDE_H

#include <stdarg.h>

#include <prcb/dump.h>
#include <prcb/layout.h>

#include "cursor.h"
#include "memory.h"
#include "sized.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum machine { MACHINE_X86, MACHINE_X64, MACHINE_ARM64, MACHINE_COUNT };

/* Facts of a machine that the search needs. */
struct machine_row {
    const char *name;
    uint16_t image; /* IMAGE_FILE_MACHINE_... */
    uint8_t pointer_size;
    uint16_t kprcb_in_page;                  /* a KPCR starts a page, its KPRCB lies this far in */
    uint64_t kernel_base;                    /* lowest address of the kernel's half */
    uint16_t stack_pointer, program_counter; /* in CONTEXT */
};
extern const struct machine_row machine_rows[MACHINE_COUNT];

/* Holds the dump header, 32- and 64-bit forms in one. */
struct header {
    unsigned int bits; /* 32, 64 */
    uint32_t size;     /* 0x1000, 0x2000 */
    uint32_t type;
    uint32_t major, minor;
    uint64_t directory_base, module_list;
    uint32_t machine, processors;
    uint32_t bugcheck_code;
    uint64_t bugcheck_parameters[4];
    bool has_pae; /* 32-bit: PaeEnabled */
    uint64_t kdbg;
    uint64_t whole_size;                     /* RequiredDumpSpace; 0: not there */
    uint64_t uptime, crash_time;             /* 0: not there */
    uint64_t stack_pointer, program_counter; /* of ContextRecord; 0: not there */
    const uint8_t *context;                  /* ContextRecord, in the file */
    uint32_t product;                        /* 1 workstation, 2 domain controller, 3 server */
    uint32_t exception_code;                 /* with address; 0: not there */
    uint64_t exception_address;
};
/* Recognises the signature and reads the header. -EINVAL with the true name of what it is. */
int header_read(const struct dump_file *file, struct header *ret, struct prcb_error *err);
/* The fields of a header that is there whole. */
void header_parse(const uint8_t *bytes, unsigned int bits, struct header *ret);

/* What a triage dump says besides memory. Offsets in the file; 0: not there. */
struct triage {
    uint32_t size, prcb, process, thread, kdbg, kdbg_size, blocks, block_count;
    uint32_t unloaded, stack, stack_size, drivers, driver_count;
    uint64_t stack_top; /* the address that the copy at `stack` is of */
    size_t outside;     /* blocks that reach past the end of the file */
    size_t missing;     /* entries of the block table past the end of a file that is cut */
    bool is_cut;        /* the file is shorter than SizeOfDump */
};

/* Holds debugger data (KDDEBUGGER_DATA64). 0xffff and 0: the dump does not say. */
struct kdbg {
    bool is_known;
    uint32_t size;
    uint64_t kernel_base, time_increment, processor_block, unloaded;
    uint16_t thread_state, thread_process, process_size, prcb_size, prcb_dpc_routine,
        prcb_current_thread, prcb_mhz, prcb_cpu_type, prcb_vendor, prcb_context, prcb_number,
        thread_size, prcb_special, prcb_context_pointer;
    uint32_t thread_stack_base, thread_irp_list;
};

struct prcb_dump;

/* A container is a row of functions, and is tried by probe. */
struct container {
    const char *name, *words;
    uint8_t bits; /* 32, 64 */
    bool (*probe)(const struct header *header);
    int (*load)(struct prcb_dump *d, struct prcb_error *err);
};
const struct container *container_find(const struct header *header, struct prcb_error *err);
int load_triage(struct prcb_dump *d, struct prcb_error *err);
int load_runs(struct prcb_dump *d, struct prcb_error *err);
int load_bitmap(struct prcb_dump *d, struct prcb_error *err);
int load_summary(struct prcb_dump *d, struct prcb_error *err);
int load_ranges(struct prcb_dump *d, struct prcb_error *err);
int load_automatic(struct prcb_dump *d, struct prcb_error *err);
/* No memory: the header's facts are all there is. */
/* Drops what was loaded of a file that is cut. */
int load_cut(struct prcb_dump *d, struct prcb_error *err);
int load_header(struct prcb_dump *d, struct prcb_error *err);

/* Holds a guest's memory (ELF), guest.c. Pointers lead into the file. */
struct guest {
    bool is_qemu;
    unsigned int notes;     /* read so far */
    const uint8_t **states; /* a processor's registers each */
    size_t count;
    struct page_run *runs; /* until memory has them */
    size_t run_count;
    const uint8_t *vmcoreinfo; /* NULL: there is none */
    uint64_t vmcoreinfo_size;
    bool has_root;   /* page tables are chosen */
    uint64_t kernel; /* where its image is, and its exports; 0: not found */
    uint64_t exports;
};
bool guest_is(const struct dump_file *file);
/* Is called in place of reading a header and loading its container. */
int guest_open(struct prcb_dump *d, struct prcb_error *err);
void guest_free(struct guest *g);
/* The KPRCB that a processor's GS base leads to; 0: none, or past the last. */
uint64_t guest_kprcb(const struct prcb_dump *d, size_t index);
/* Reads registers of the processor with this KPRCB, in the order of x64's table. */
bool guest_registers(const struct prcb_dump *d, uint64_t kprcb, uint64_t *values);

/* Where a member is. */
struct slot {
    uint32_t offset, size;
    uint8_t bit_first, bit_width;
    uint8_t found_by; /* enum prcb_dump_found */
    bool is_pointer;
};

/* One structure as the dump's kernel has it: by symbols, else by the catalog's versions that were
 * not refuted. A member on which those disagree has no slot. */
#define VIEW_LAYOUTS 64
struct view {
    const char *name;
    const struct prcb_dump *dump;
    struct prcb_layout *layouts[VIEW_LAYOUTS]; /* distinct ones */
    size_t layout_count;
    char version[96];   /* "10.0.19041.329 .. 10.0.19041.3570"; "" for none */
    uint32_t known_end; /* members from here on are not known; 0: no such limit */
    uint8_t found_by;   /* how slots are said to be found, when the catalog has them */
    bool is_inferred;   /* nobody read it in one of these versions */
};
/* Finds a member: 0 or -ENOENT. */
int view_find(const struct view *view, const char *path, struct slot *ret);
/* Returns the size of the structure, 0 if it is not known. */
uint32_t view_size(const struct view *view);
/* Takes in the structure in each of the versions that have it. */
int view_init(struct view *view, const struct prcb_dump *d, const char *name,
              const unsigned int *versions, size_t count);
void view_deinit(struct view *view);
/* The dump is of the one arm64 kernel whose structures are known (arm64.def). */
bool arm64_is_known(const struct prcb_dump *d);
bool symbols_have(const struct prcb_dump *d, const char *structure);
uint32_t symbols_size(const struct prcb_dump *d, const char *structure);

/* Describes a KPRCB that was found: its address, or a place in the file with a made-up one. */
struct source {
    uint64_t address;
    bool is_made_up; /* the address */
    bool is_held;    /* some of it is in the dump */
    bool is_crashing;
    bool has_number;
    uint32_t number;
};

/* Describes a module of the kernel: loaded ones come first, each kind in order of address. */
struct module {
    char name[64]; /* printable ASCII */
    uint64_t base, length;
    uint32_t timestamp, checksum; /* 0: not in the dump */
    bool is_unloaded;
    uint8_t found_by;
};
struct modules {
    struct module *rows;
    size_t count, loaded;
};

#define REGISTERS_MOST 40
struct context {
    uint8_t found_by; /* 0: absent says why */
    uint8_t irql_found_by, irql;
    const char *absent;
    uint64_t values[REGISTERS_MOST];
};

/* Describes a processor's current thread and its process. */
struct thread {
    uint64_t address, process; /* 0: not known */
    uint8_t ids_found_by, name_found_by;
    uint32_t id, process_id;
    char process_name[16];
};

struct notes {
    char **texts;
    size_t count;
};

/* Names the module that most likely caused the bug check. */
struct culprit {
    const struct module *module; /* NULL: none is known */
    const char *by;              /* what speaks against it */
    uint32_t frames, of_frames;  /* addresses on the stack: its own, and all; 0: no stack */
};

/* The symbol file that the kernel's image names. */
#define GUID_TEXT 48
struct codeview {
    bool is_known;
    uint8_t guid[16];
    uint32_t age;
    char name[64]; /* printable ASCII; "" if it has none */
};

struct prcb_dump {
    struct dump_file file;
    char *name;
    struct prcb_dump_options options;
    struct header header;
    enum machine machine;
    const struct container *container;
    struct memory memory;
    struct guest guest;
    struct triage triage;
    struct kdbg kdbg;
    struct codeview codeview;
    char kernel_pdb[192];              /* info.kernel_pdb */
    char computer[144], firmware[208]; /* info's */
    struct source *sources;
    size_t source_count;
    /* versions of the catalog in play: ids */
    unsigned int versions[VIEW_LAYOUTS];
    size_t version_count;
    bool is_nearest; /* the build is not in the catalog: versions are the last before it */
    struct view kprcb, power, thread;
    bool has_power;
    bool distrust;            /* the catalog's KPRCB does not fit: only what else is confirmed */
    uint32_t times_offset;    /* landmark: InterruptCount; 0: not found */
    uint32_t watchdog_offset; /* landmark: DpcWatchdogPeriod; 0: not found */
    uint32_t power_offset, power_kdpc;
    uint8_t power_found;
    struct prcb_dump_info info;
    char release[96]; /* info.release */
    struct prcb_dump_processor *processors;
    struct prcb_dump_value *items; /* of all of them */
    size_t processor_count;
    struct context *contexts; /* of each processor */
    struct thread *threads;
    struct modules modules;
    struct notes notes;
    struct notes findings; /* of the bug check, in words */
    struct culprit culprit;
};

/* kdbg.c */
int kdbg_find(struct prcb_dump *d, struct prcb_error *err);
/* Finds the symbol file of the image at an address (codeview.c); leaves ret alone if there is
 * none. */
void codeview_find(const struct prcb_dump *d, uint64_t base, struct codeview *ret);
/* Fills computer and firmware (smbios.c). */
void smbios_find(struct prcb_dump *d);
/* GUID and age as one word, as servers of symbols have it. */
void codeview_guid_text(const uint8_t guid[16], uint32_t age, char *ret, size_t size);
/* Fills sources (sources.c). */
int sources_find(struct prcb_dump *d, struct prcb_error *err);
/* versions.c: fills versions, the views and the place of the power state. */
/* Leaves out symbols of another kernel, which are worse than none, with a note. Called before
 * anything asks for a size: -ENOMEM. */
int versions_check_symbols(struct prcb_dump *d);
int versions_choose(struct prcb_dump *d, struct prcb_error *err);
/* landmark.c */
/* Bytes of a KPRCB that are looked at: as many as are known to be its, or may be. */
#define KPRCB_MOST 0x20000u /* bytes; 0xcf00 is the longest known */
uint32_t kprcb_length(const struct prcb_dump *d);
/* A KDPC at kprcb + offset whose DeferredContext is the KPRCB's own address. */
bool landmark_holds(const struct prcb_dump *d, const struct source *source, uint32_t offset);
/* The only offset at which it holds in each KPRCB that is held. */
bool landmark_find(const struct prcb_dump *d, uint32_t *ret);
/* The address that a KPRCB's bytes say is their own: 0 if none does. */
uint64_t landmark_owner(const struct prcb_dump *d, const uint8_t *bytes, uint64_t length);
/* Finds InterruptCount, KernelTime, UserTime, ... by kernel + user ticks being the uptime. */
bool landmark_times(const struct prcb_dump *d, uint32_t *ret);
/* Finds DpcWatchdogPeriod (120 s) and DpcWatchdogCount, somewhere before the times. */
bool landmark_watchdog(const struct prcb_dump *d, uint32_t times, uint32_t *ret);
/* Finds the start of PROCESSOR_POWER_STATE before its KDPC: two kernel pointers at a multiple of
 * 64. */
bool landmark_power(const struct prcb_dump *d, uint32_t kdpc, uint32_t *ret);
/* Fills modules (modules.c). */
int modules_find(struct prcb_dump *d, struct prcb_error *err);
/* Returns NULL if it is in none. */
const struct module *module_of(const struct prcb_dump *d, uint64_t address);
/* threads.c: fills contexts and threads. */
int threads_read(struct prcb_dump *d, struct prcb_error *err);
/* Fills processors (read.c). */
int processors_read(struct prcb_dump *d, struct prcb_error *err);
/* notes.c */
int notes_put(struct notes *notes, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
int dump_note(struct prcb_dump *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
int notes_make(struct prcb_dump *d);
void notes_free(struct notes *notes);
/* Fills findings and culprit (verdict.c). */
int dump_verdict_make(struct prcb_dump *d);
/* tables.c */
const char *bugcheck_name(uint32_t code);
/* What a parameter (0 to 3) of a bug check is; NULL: not known. */
const char *bugcheck_parameter(uint32_t code, unsigned int index);
bool release_name(const struct header *header, char *ret, size_t size);
const char *implementer_name(uint32_t code);

/* Returns a row of the caller's symbols, whose rows may be of another size than the library's
 * (view.c). */
struct prcb_dump_symbol symbol_at(const struct prcb_dump *d, size_t i);

#endif
