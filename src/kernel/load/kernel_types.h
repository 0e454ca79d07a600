/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finds the few of the kernel's types that programs are relocated by, and what user space asks
 * of them before it loads the programs. libbpf would go through all of /sys/kernel/btf/vmlinux,
 * some hundred thousand types, once for each type that a program reads; here one pass picks out
 * those of the names that are wanted, with what they hold by value, and libbpf is given these.
 *
 * An instance belongs to one caller and is good for one object that is opened and loaded.
 */
#ifndef PRCB_LOAD_KERNEL_TYPES_H
#define PRCB_LOAD_KERNEL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/error.h>

#define KERNEL_TARGETS 32 /* twice as many as the largest object has */

struct bpf_object;
struct btf;

/* What the kernel reports of switches and locks. */
struct kernel_reports {
    bool prev_state; /* sched_switch passes the state (5.18) */
    bool locks;      /* the tracepoints of lock contention (5.19) */
    bool delays;     /* tasks that sleep may still be queued, and are moved (6.12) */
    bool preempts;   /* programs may miss an event, or get no memory (6.19) */
};

/* What a program of the object is attached to. */
struct kernel_target {
    const char *name; /* of a tracepoint or an iterator; the object's */
    bool iterator;
    uint32_t id; /* of its type in all of the kernel's; 0: there is none */
};

struct kernel_types {
    int file;        /* in memory, what was picked out */
    char path[32];   /* of that file: btf_custom_path of the options to open the object with */
    struct btf *btf; /* the same, after kernel_types_find */
    struct kernel_target targets[KERNEL_TARGETS];
    unsigned target_count;
    uint32_t cast, task; /* the same of bpf_rdonly_cast (6.2) and of task_struct */
};

/* This is called before the object is opened. */
int kernel_types_init(struct kernel_types *t, struct prcb_error *err);
/* This is called before the object is loaded. Finds all types of the names that the object's own
 * types have, tracepoints as "btf_trace_NAME" and per-processor variables by `names`, which ends
 * with NULL, and the numbers of what its programs are attached to. */
int kernel_types_find(struct kernel_types *t, const struct bpf_object *object,
                      const char *const *names, struct prcb_error *err);
/* Returns the kernel's number of what a program in section "prcb_tp/NAME" or "prcb_iter/NAME" of
 * that object is attached to; 0: there is none. */
uint32_t kernel_types_target(const struct kernel_types *t, const char *name, bool iterator);
/* Does the same for an object that is loaded by itself, in a pass for each. */
uint32_t kernel_type_number(const char *name, bool iterator);
/* The file that they are read from; tests make kernels up. */
extern const char *kernel_types_source;
/* Accepts one that is zeroed, or failed to open. */
void kernel_types_free(struct kernel_types *t);

/* These serve programs of switches and locks: their names for kernel_types_find, and what was
 * found. */
extern const char *const kernel_report_names[];
struct kernel_reports kernel_reports(const struct btf *btf);

enum kernel_for {
    KERNEL_FOR_ACCOUNTS = 1,
    KERNEL_FOR_CLIENTS = 2,
    KERNEL_FOR_PROCESSORS = 4,
    KERNEL_FOR_SAMPLES = 8,
};
/* What programs use of the kernel, by the rows of features.def: constants of its enumerations of
 * helpers, maps and programs, and members of its structures. Ends with a row without a type. */
struct kernel_feature {
    const char *type, *name;
    const char *words;   /* what it is called in a message */
    const char *release; /* that brought it; "": it has been there for long */
    unsigned programs;   /* KERNEL_FOR_ bits: those that cannot do without */
};
extern const struct kernel_feature kernel_features[];

/* Returns -EOPNOTSUPP if the kernel lacks what these programs cannot do without; the text names
 * it. What else they read is a feature each: they look for it by themselves
 * (src/kernel/bpf/kernel.bpf.h). */
int kernel_check(const struct btf *btf, enum kernel_for programs, struct prcb_error *err);

/* Tells whether loops are by bpf_loop; else they take their turns from a map (turns.bpf.h). */
bool kernel_has_loop(const struct btf *btf);

/* Returns the number of arguments of a raw tracepoint, its leading context pointer not counted;
 * -1: the kernel has no such tracepoint. */
int kernel_tracepoint_arguments(const struct btf *btf, const char *name);

/* Tells whether the kernel's struct of this name has such a member, in unnamed parts of it too. */
bool kernel_has_member(const struct btf *btf, const char *type_name, const char *member);

/* Tells whether the kernel's enumeration of this name has such a constant. True where the kernel
 * has no such enumeration, or it was not asked for: either tells nothing. */
bool kernel_has_constant(const struct btf *btf, const char *type_name, const char *constant);

#endif
