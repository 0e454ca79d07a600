/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "account_programs.h"
#include "array.h"
#include "block_abi.h"
#include "bpf_load.h"
#include "bpf_run.h"
#include "clients.skel.h"
#include "clock.h"
#include "error.h"
#include "pins.h"
#include "present.h"
#include "processor_abi.h"
#include "processor_map.h"

#define PROCESSORS_PIN     "map_processors" /* there: its programs are */
#define THREADS_PIN        "map_processor_threads"
#define PROCESSORS_END_PIN "prcb_processors_end"
/* The map of the processor blocks that the programs of accounts look at, whether anybody writes
 * them or not. */
#define BLOCKS_PIN "map_processor_blocks"
#define WAKING_PIN "link_prcb_waking"
#define SWITCH_PIN "link_prcb_processor_switch"
/* The names of programs that run for events begin with these. */
#define ACCOUNT_EVENT   "accounts_"
#define PROCESSOR_EVENT "processors_"
#define SWITCH_PROGRAM  "prcb_processor_switch"

/* The layout of everything that a daemon finds pinned: what programs and daemon share, and the
 * records. A daemon cannot take over another layout. */
#define LAYOUT 12u

static const char *const map_names[KERNEL_MAPS] = {
    [MAP_CLIENTS] = "map_clients", [MAP_EDGES] = "map_edges", [MAP_TAGS] = "map_tags",
    [MAP_HEAD] = "map_head",       [MAP_BSS] = "map_bss",     [MAP_RECORDS] = "map_records",
};

static const char *const program_names[KERNEL_PROGRAMS] = {
    [RUN_PEER] = "prcb_peer",
    [RUN_LOOK] = "prcb_look",
    [RUN_REGISTER] = "prcb_register",
    [RUN_SWEEP] = "prcb_sweep",
    [RUN_GIVE_UP] = "prcb_give_up",
    [RUN_FREE_SLOT] = "prcb_free_slot",
    [RUN_FREE_EXITED] = "prcb_free_exited",
    [RUN_END_CLIENT] = "prcb_end_client",
    [RUN_MAPS] = "prcb_maps",
    [RUN_WAKING] = "prcb_waking",
    [RUN_KERNEL_STACK] = "prcb_kernel_stack",
};

/* The programs stand in the order in which they are attached: those that follow threads and see
 * their ends come before those that count. */
static const char *const attached[] = {
    "prcb_rename",         "prcb_exec",          "prcb_newborn",
    "prcb_newtask",        "prcb_cgroup_attach", "prcb_contention_begin",
    "prcb_contention_end", "prcb_ended",         "prcb_move",
    "prcb_switch",
};
#define ATTACHED (sizeof(attached) / sizeof(attached[0]))

/* The first record describes the rest. */
struct origin {
    uint32_t layout;
    uint16_t abi_major, abi_minor;
    uint64_t build; /* of the programs */
    uint32_t last_epoch;
    uint32_t interrupted;     /* they were to keep what interrupts took, */
    uint32_t has_interrupted; /* and do */
};
_Static_assert(sizeof(struct origin) <= sizeof(struct kernel_record), "origin");

/* Tests kill a start at each of its steps, in a build of their own. */
static void step(void)
{
#ifdef PRCBD_TEST_HOOKS
    const char *last = getenv("PRCBD_TEST_STEP");
    static int steps;

    if (last && steps++ == atoi(last))
        raise(SIGKILL);
#endif
}

static struct origin *origin_of(struct kernel *k)
{
    return (struct origin *)(void *)k->records;
}

/* FNV-1a */
static uint64_t add_to_hash(uint64_t hash, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211ull;
    return hash;
}

/* Identifies the compiled programs, those of the processors too: all are replaced together. */
static uint64_t build_of_programs(void)
{
    size_t size = 0, processors = 0;
    const unsigned char *bytes = clients_bpf__elf_bytes(&size);
    uint64_t hash = add_to_hash(14695981039346656037ull, bytes, size);

    bytes = processor_programs_elf(&processors);
    return add_to_hash(hash, bytes, processors);
}

/* ---- memory ---- */

static int map_memory(int fd, bool writable, size_t *ret_bytes, void **ret)
{
    struct bpf_map_info info = {0};
    __u32 size = sizeof(info);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes;
    void *at;

    if (bpf_obj_get_info_by_fd(fd, &info, &size))
        return -errno;
    bytes = ((size_t)info.value_size + 7) / 8 * 8 * info.max_entries;
    bytes = (bytes + page - 1) / page * page;
    at = mmap(NULL, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    if (ret_bytes)
        *ret_bytes = bytes;
    *ret = at;
    return 0;
}

static int map_all(struct kernel *k, struct prcb_error *err)
{
    int result = map_memory(k->maps[MAP_BSS], true, &k->bss_bytes, (void **)&k->bss);

    if (!result)
        result = map_memory(k->maps[MAP_RECORDS], true, NULL, (void **)&k->records);
    if (!result)
        result = map_memory(k->maps[MAP_HEAD], false, NULL, (void **)&k->clock);
    return result ? prcb_fail(err, result, "the maps cannot be mapped: %s", strerror(-result)) : 0;
}

static void unmap_all(struct kernel *k)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t records = (sizeof(*k->records) * PRCB_CLIENT_COUNT + page - 1) / page * page;

    if (k->bss)
        munmap(k->bss, k->bss_bytes);
    if (k->records)
        munmap(k->records, records);
    if (k->clock)
        munmap((void *)k->clock, page);
    k->bss = NULL;
    k->records = NULL;
    k->clock = NULL;
}

static void forget(int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

static void forget_events(struct kernel_events *events)
{
    forget(events->fds, (int)events->count);
    events->count = 0;
}

static void let_go(struct kernel *k)
{
    unmap_all(k);
    forget(k->maps, KERNEL_MAPS);
    forget(k->programs, KERNEL_PROGRAMS);
    forget(&k->live, 1);
    forget(&k->processors, 1);
    forget(&k->processor_threads, 1);
    forget_events(&k->account_events);
    forget_events(&k->processor_events);
}

/* ---- loading ---- */

/* processors: their blocks tell who wakes, and with `interrupted` what interrupts take; NULL:
 * there are none. */
static int configure(struct clients_bpf *skeleton, const struct kernel_types *types,
                     const struct processor_programs *processors, bool interrupted,
                     struct prcb_error *err)
{
    struct kernel_reports reports = kernel_reports(types->btf);
    struct clock_base clock;
    struct stat st;
    int result;

    clock_base_init(&clock);
    if (stat("/proc/self/ns/pid", &st))
        return prcb_fail(err, -errno, "/proc/self/ns/pid: %s", strerror(errno));
    skeleton->rodata->config.has_prev_state = reports.prev_state;
    skeleton->rodata->config.newborn = reports.preempts;
    bpf_program__set_autoload(skeleton->progs.prcb_newborn, reports.preempts);
    bpf_program__set_autoload(skeleton->progs.prcb_move, reports.delays);
    skeleton->rodata->config.use_ktime = !clock.kernel_uses;
    skeleton->rodata->config.pid_ns = (__u32)st.st_ino;
    bpf_map__set_max_entries(skeleton->maps.turn_map,
                             present_processors((uint32_t)libbpf_num_possible_cpus()));
    bpf_program__set_autoload(skeleton->progs.prcb_contention_begin, reports.locks);
    bpf_program__set_autoload(skeleton->progs.prcb_contention_end, reports.locks);
    if (!processors)
        return 0;
    skeleton->rodata->config.interrupted = interrupted;
    result = bpf_map__reuse_fd(skeleton->maps.processor_map, processor_programs_map_fd(processors));
    return result ? prcb_fail(err, result, "the processor blocks cannot be shared: %s",
                              strerror(-result))
                  : 0;
}

/* Makes programs of this build use the maps of another: this comes before they are loaded. */
static int reuse_maps(const struct kernel *old, struct clients_bpf *skeleton)
{
    const struct {
        struct bpf_map *map;
        enum kernel_map number;
    } maps[] = {{skeleton->maps.client_maps, MAP_CLIENTS},
                {skeleton->maps.client_edges, MAP_EDGES},
                {skeleton->maps.tags, MAP_TAGS},
                {skeleton->maps.head_map, MAP_HEAD},
                {skeleton->maps.bss, MAP_BSS}};
    int result = 0;

    for (size_t i = 0; !result && i < sizeof(maps) / sizeof(maps[0]); i++)
        result = bpf_map__reuse_fd(maps[i].map, old->maps[maps[i].number]);
    return result;
}

static int pin_maps(struct clients_bpf *skeleton, int records, int dir)
{
    const int fds[KERNEL_MAPS] = {
        [MAP_CLIENTS] = bpf_map__fd(skeleton->maps.client_maps),
        [MAP_EDGES] = bpf_map__fd(skeleton->maps.client_edges),
        [MAP_TAGS] = bpf_map__fd(skeleton->maps.tags),
        [MAP_HEAD] = bpf_map__fd(skeleton->maps.head_map),
        [MAP_BSS] = bpf_map__fd(skeleton->maps.bss),
        [MAP_RECORDS] = records,
    };
    int result = 0;

    for (int i = 0; !result && i < KERNEL_MAPS; i++) {
        result = pins_put(dir, map_names[i], fds[i]);
        if (i == 1)
            step();
    }
    step();
    return result;
}

static int pin_programs(struct clients_bpf *skeleton, int dir)
{
    int result = 0;

    for (int i = 0; !result && i < KERNEL_PROGRAMS; i++) {
        struct bpf_program *program =
            bpf_object__find_program_by_name(skeleton->obj, program_names[i]);

        result = pins_put(dir, program_names[i], bpf_program__fd(program));
    }
    step();
    return result;
}

/* Pins a program that runs for events, so that it can be asked later what it missed. */
static int pin_event(int dir, const char *prefix, const char *program, int fd)
{
    char name[64];

    snprintf(name, sizeof(name), "%s%s", prefix, program);
    unlinkat(dir, name, 0); /* of a start that was cut short */
    return pins_put(dir, name, fd);
}

static int attach_all(struct clients_bpf *skeleton, int dir, struct prcb_error *err)
{
    int result;

    for (size_t i = 0; i < ATTACHED; i++) {
        struct bpf_program *program = bpf_object__find_program_by_name(skeleton->obj, attached[i]);
        struct bpf_link *link;
        char name[64];

        if (!bpf_program__autoload(program))
            continue;
        link = bpf_attach_program(program);
        if (!link)
            return prcb_fail(err, -errno, "%s cannot be attached: %s", attached[i],
                             strerror(errno));
        snprintf(name, sizeof(name), "link_%s", attached[i]);
        result = pins_put(dir, name, bpf_link__fd(link));
        bpf_link__disconnect(link);
        bpf_link__destroy(link); /* closes it: the pin holds it */
        if (!result)
            result = pin_event(dir, ACCOUNT_EVENT, attached[i], bpf_program__fd(program));
        if (result)
            return prcb_fail(err, result, "%s cannot be pinned: %s", name, strerror(-result));
        step();
    }
    result = pin_event(dir, ACCOUNT_EVENT, program_names[RUN_WAKING],
                       bpf_program__fd(skeleton->progs.prcb_waking));
    return result ? prcb_fail(err, result, "prcb_waking cannot be pinned: %s", strerror(-result))
                  : 0;
}

/* Counts the clients that have edges. */
static uint32_t edging_of(const struct kernel_record *records)
{
    uint32_t ret = 0;

    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++)
        ret += records[i].used && records[i].edges;
    return ret;
}

/* Attaches a program that not all need. */
static int attach_program(int program, int dir, const char *pin)
{
    int link = bpf_raw_tracepoint_open(NULL, program), result;

    if (link < 0)
        return -errno;
    result = pins_put(dir, pin, link);
    close(link); /* the pin holds it */
    return result;
}

/* It may be root's, who began as the daemon: then it cannot be opened any more. */
static bool is_pinned(int dir, const char *pin)
{
    struct stat st;

    return !fstatat(dir, pin, &st, AT_SYMLINK_NOFOLLOW);
}

/* The program at wakeups stays attached for as long as somebody has edges. */
static int settle_waking(struct kernel *k, bool wanted)
{
    bool is_there = is_pinned(k->live, WAKING_PIN);

    if (wanted)
        return is_there ? 0 : attach_program(k->programs[RUN_WAKING], k->live, WAKING_PIN);
    return !is_there || !unlinkat(k->live, WAKING_PIN, 0) ? 0 : -errno;
}

static int write_head(struct clients_bpf *skeleton)
{
    struct prcb_head_block head =
        bpf_account_head(skeleton->bss->kernel_features,
                         bpf_program__autoload(skeleton->progs.prcb_contention_begin));
    __u32 zero = 0;
    int fd = bpf_map__fd(skeleton->maps.head_map);

    return bpf_map_update_elem(fd, &zero, &head, BPF_ANY) ? -errno : 0;
}

/* Tells readers of processor blocks that nobody will write them any more. An earlier prcbd may
 * have no such program pinned. */
static void end_processors(int live)
{
    int program = live < 0 ? -1 : pins_get(live, PROCESSORS_END_PIN);

    if (program < 0)
        return;
    bpf_run_program(program, NULL, 0, NULL);
    close(program);
}

/* Describes a load: what is loaded, from where and to where. */
struct loading {
    struct bpf_load l;
    struct clients_bpf *skeleton;
    struct kernel *old; /* whose maps go on; NULL: new ones */
    const struct processor_programs *processors;
    bool interrupted;
    int dir, parent;
};

static int open_programs(struct loading *l, struct prcb_error *err)
{
    int result;

    l->skeleton = clients_bpf__open_opts(&l->l.options);
    if (!l->skeleton)
        return bpf_explain_accounts(-errno, err);
    result =
        bpf_load_find_types(&l->l, l->skeleton->obj, kernel_report_names, KERNEL_FOR_CLIENTS, err);
    if (!result)
        result = configure(l->skeleton, &l->l.types, l->processors, l->interrupted, err);
    if (result || !l->old)
        return result;
    result = reuse_maps(l->old, l->skeleton);
    return result ? prcb_fail(err, result, "the maps of the prcbd before cannot be used: %s",
                              strerror(-result))
                  : 0;
}

static int load_programs(struct loading *l, struct prcb_error *err)
{
    int result = clients_bpf__load(l->skeleton);

    step();
    if (!result && !l->old)
        result =
            bpf_run_program(bpf_program__fd(l->skeleton->progs.prcb_tell_features), NULL, 0, NULL);
    if (result)
        return bpf_explain_accounts(result, err);
    if (!l->old)
        result = write_head(l->skeleton);
    return result ? prcb_fail(err, result, "the head of the accounts cannot be written: %s",
                              strerror(-result))
                  : 0;
}

static int pin_all(const struct loading *l, struct prcb_error *err)
{
    LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
    int records = l->old
                      ? dup(l->old->maps[MAP_RECORDS])
                      : bpf_map_create(BPF_MAP_TYPE_ARRAY, "prcb_records", sizeof(__u32),
                                       sizeof(struct kernel_record), PRCB_CLIENT_COUNT, &options);
    int result = records < 0 ? -errno : pin_maps(l->skeleton, records, l->dir);

    if (records >= 0)
        close(records);
    if (!result)
        result = pin_programs(l->skeleton, l->dir);
    if (!result && l->processors)
        result = pins_put(l->dir, BLOCKS_PIN, processor_programs_map_fd(l->processors));
    return result ? prcb_fail(err, result, "the programs cannot be pinned: %s", strerror(-result))
                  : 0;
}

/* Two sets of programs on the same maps would count each switch twice. A daemon that is cut
 * short from here on leaves maps with which the next one goes on. */
static void end_old(const struct loading *l)
{
    origin_of(l->old)->build = 0;
    step();
    end_processors(l->old->live);
    pins_empty(l->parent, "live", "link_");
    step();
}

static int attach_programs(const struct loading *l, struct prcb_error *err)
{
    int result = attach_all(l->skeleton, l->dir, err);

    if (result || !l->old || !edging_of(l->old->records))
        return result;
    result = attach_program(bpf_program__fd(l->skeleton->progs.prcb_waking), l->dir, WAKING_PIN);
    return result ? prcb_fail(err, result, "prcb_waking cannot be attached: %s", strerror(-result))
                  : 0;
}

/* Loads and pins the programs in a directory. old: its maps go on; NULL: the maps are new. */
static int load_into(int dir, struct kernel *old, int parent,
                     const struct processor_programs *processors, bool interrupted,
                     struct prcb_error *err)
{
    struct loading l = {.old = old,
                        .processors = processors,
                        .interrupted = interrupted,
                        .dir = dir,
                        .parent = parent};
    int result = bpf_load_begin(&l.l, err);

    if (!result)
        result = open_programs(&l, err);
    if (!result)
        result = load_programs(&l, err);
    if (!result)
        result = pin_all(&l, err);
    if (!result && old)
        end_old(&l);
    if (!result)
        result = attach_programs(&l, err);
    clients_bpf__destroy(l.skeleton);
    bpf_load_end(&l.l);
    return result;
}

/* ---- what is pinned ---- */

static int take_event(struct kernel_events *events, const char *name, int fd)
{
    if (fd < 0)
        return fd;
    if (events->count == WIRE_PROGRAMS_MOST) {
        close(fd);
        return -E2BIG;
    }
    snprintf(events->names[events->count], WIRE_PROGRAM_NAME, "%s", name);
    events->fds[events->count++] = fd;
    return 0;
}

static int open_account_event(int dir, const char *name, void *ctx)
{
    return take_event(ctx, name + strlen(ACCOUNT_EVENT), pins_get(dir, name));
}

static int open_processor_event(int dir, const char *name, void *ctx)
{
    return take_event(ctx, name + strlen(PROCESSOR_EVENT), pins_get(dir, name));
}

static int open_pins(struct kernel *k)
{
    int result = pins_below(k->directory, "live", false);

    if (result < 0)
        return result;
    k->live = result;
    for (int i = 0; i < KERNEL_MAPS; i++) {
        k->maps[i] = pins_get(k->live, map_names[i]);
        if (k->maps[i] < 0)
            return k->maps[i];
    }
    for (int i = 0; i < KERNEL_PROGRAMS; i++) {
        k->programs[i] = pins_get(k->live, program_names[i]);
        if (k->programs[i] < 0)
            return k->programs[i];
    }
    k->processors = pins_get(k->live, PROCESSORS_PIN);
    k->processor_threads = pins_get(k->live, THREADS_PIN);
    result = pins_each(k->live, ACCOUNT_EVENT, open_account_event, &k->account_events);
    return result ? result
                  : pins_each(k->live, PROCESSOR_EVENT, open_processor_event, &k->processor_events);
}

/* ---- the processors' programs ---- */

struct pinning {
    int dir, number;
};

static int pin_link(int fd, void *ctx)
{
    struct pinning *pinning = ctx;
    char name[32];

    snprintf(name, sizeof(name), "link_processors_%d", pinning->number++);
    unlinkat(pinning->dir, name, 0); /* of a start that was cut short */
    return pins_put(pinning->dir, name, fd);
}

static int pin_processor_event(int fd, const char *name, void *ctx)
{
    const struct pinning *pinning = ctx;

    return pin_event(pinning->dir, PROCESSOR_EVENT, name, fd);
}

/* The map is pinned last: its pin says that all are there. */
static int pin_processors(int dir, const struct processor_programs *programs)
{
    struct pinning pinning = {.dir = dir};
    int map = processor_programs_map_fd(programs);
    int threads = processor_programs_threads_fd(programs), result;

    if (bpf_map_freeze(map) || bpf_map_freeze(threads))
        return -errno;
    unlinkat(dir, PROCESSORS_END_PIN, 0);
    unlinkat(dir, THREADS_PIN, 0);
    result = pins_put(dir, PROCESSORS_END_PIN, processor_programs_end_fd(programs));
    if (!result)
        result = processor_programs_links(programs, pin_link, &pinning);
    if (!result)
        result = processor_programs_events(programs, pin_processor_event, &pinning);
    if (!result)
        result = pins_put(dir, THREADS_PIN, threads);
    if (!result)
        result = pins_put(dir, PROCESSORS_PIN, map);
    return result;
}

/* The loaded programs cost nothing before they are attached. The caller closes *ret, whatever
 * the result. */
static int load_processors(int map, struct processor_programs **ret, struct prcb_error *err)
{
    int count = libbpf_num_possible_cpus();

    return count > 0
               ? processor_programs_load((uint32_t)count, map, true, ret, err)
               : prcb_fail(err, count, "the processors cannot be counted: %s", strerror(-count));
}

/* The processors' program at switches, which edges do without, stays attached from the first
 * client on that reads processors. */
static int settle_switches(struct kernel *k)
{
    if (is_pinned(k->live, SWITCH_PIN))
        return 0;
    for (unsigned i = 0; i < k->processor_events.count; i++) {
        if (!strcmp(k->processor_events.names[i], SWITCH_PROGRAM))
            return attach_program(k->processor_events.fds[i], k->live, SWITCH_PIN);
    }
    return -ENOENT;
}

/* Attaches the processors' programs, but for that at switches, and pins them in a directory. */
static int add_processors(int dir, struct processor_programs *programs, struct prcb_error *err)
{
    struct processor_map map = {0};
    int result;

    processor_programs_switches_later(programs);
    result = processor_programs_attach(programs, &map, err);
    processor_map_close(&map);
    if (result)
        return result;
    unlinkat(dir, SWITCH_PIN, 0); /* of a start that was cut short */
    result = pin_processors(dir, programs);
    return result ? prcb_fail(err, result, "the processor programs cannot be pinned: %s",
                              strerror(-result))
                  : 0;
}

/* Notes what the pins hold from now on. */
static void note_programs(struct kernel *k)
{
    struct origin *origin = origin_of(k);

    origin->build = build_of_programs();
    origin->interrupted = k->interrupted;
    origin->has_interrupted = k->has_interrupted;
}

/* Loads the programs of accounts with those of the processors, at whose blocks they look. The
 * latter are attached if accounts are to keep what interrupts took, or if edges are kept
 * already. Accounts do without them where they are not available. */
static int load_both(struct kernel *k, int dir, struct kernel *old, kernel_told told,
                     struct prcb_error *err)
{
    bool wanted = k->interrupted || (old && edging_of(old->records)), runs;
    struct processor_programs *processors = NULL;
    int result;

    k->no_processors = (struct prcb_error){0};
    result = load_processors(-1, &processors, &k->no_processors);
    runs = !result && wanted && !add_processors(dir, processors, &k->no_processors);
    k->has_interrupted = k->interrupted && runs;
    if (k->interrupted && !runs) {
        told("interrupted: the time of interrupts within a thread's run time is not available:");
        told(k->no_processors.text);
    }
    if (result || (wanted && !runs)) {
        processor_programs_close(processors);
        processors = NULL;
    }
    result = load_into(dir, old, k->directory, processors, k->has_interrupted, err);
    if (!runs && !result) {
        k->unattached = processors;
        processors = NULL;
    }
    processor_programs_close(processors);
    return result;
}

/* Makes "new" the live directory in one step, and removes the old one. */
static int put_in_place(struct kernel *k, struct prcb_error *err)
{
    if (!renameat2(k->directory, "new", k->directory, "live", RENAME_EXCHANGE)) {
        step();
        pins_remove(k->directory, "new");
        return 0;
    }
    /* There was no live directory, or the kernel cannot exchange two (before 5.16). */
    pins_remove(k->directory, "live");
    return renameat(k->directory, "new", k->directory, "live")
               ? prcb_fail(err, -errno, "pins: %s", strerror(errno))
               : 0;
}

static int load_fresh(struct kernel *k, struct kernel *old, kernel_told told,
                      struct prcb_error *err)
{
    int dir, result;

    pins_remove(k->directory, "new");
    step();
    dir = pins_below(k->directory, "new", true);
    if (dir < 0)
        return prcb_fail(err, dir, "pins: %s", strerror(-dir));
    step();
    result = load_both(k, dir, old, told, err);
    close(dir);
    if (!result)
        result = put_in_place(k, err);
    step();
    if (result) {
        pins_remove(k->directory, "new");
        return result;
    }
    let_go(k);
    result = open_pins(k);
    if (result)
        return prcb_fail(err, result, "an object that was just pinned cannot be opened: %s",
                         strerror(-result));
    result = map_all(k, err);
    if (!result)
        note_programs(k);
    return result;
}

/* Marks every session as ended, by the pinned programs, whose own build knows where the mark is
 * (known: they are of this layout, and the records say which are in use). Also takes its map
 * away from them, for they are detached a while after their pins are gone. */
static void tell_readers(struct kernel *k, bool known)
{
    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++) {
        struct prcb_bpf_give_back asked = {.client = i};
        uint32_t id;

        if ((known && !k->records[i].used) || bpf_map_lookup_elem(k->maps[MAP_CLIENTS], &i, &id))
            continue;
        bpf_run_program(k->programs[RUN_END_CLIENT], &asked, sizeof(asked), NULL);
        bpf_map_delete_elem(k->maps[MAP_CLIENTS], &i);
        bpf_map_delete_elem(k->maps[MAP_EDGES], &i);
    }
}

static void remove_everything(struct kernel *k)
{
    bool known = k->records && origin_of(k)->layout == LAYOUT;

    /* A daemon that is cut short here leaves nothing with which another could go on. */
    if (k->records)
        origin_of(k)->layout = 0;
    if (k->programs[RUN_END_CLIENT] >= 0)
        tell_readers(k, known);
    end_processors(k->live);
    let_go(k);
    pins_remove(k->directory, "live");
    pins_remove(k->directory, "new");
}

static void start_records(struct kernel *k)
{
    struct origin *origin = origin_of(k);

    origin->abi_major = PRCB_ABI_MAJOR;
    origin->abi_minor = PRCB_ABI_MINOR;
    origin->layout = LAYOUT;
}

/* Whether the programs' own variables take as much room as those of this build. */
static bool is_of_this_size(const struct kernel *k)
{
    struct bpf_map_info info = {0};
    __u32 size = sizeof(info);

    return !bpf_obj_get_info_by_fd(k->maps[MAP_BSS], &info, &size) &&
           info.value_size == sizeof(*k->bss);
}

/* Returns 0 if the pins can be taken over as they are, 1 if with other programs, a negative
 * number if not at all. */
static int judge_pins(struct kernel *k, kernel_told told)
{
    const struct origin *origin;
    struct prcb_error err;
    int result = open_pins(k);

    if (!result)
        result = map_all(k, &err);
    if (result) {
        if (result != -ENOENT)
            told("the state of an earlier prcbd cannot be read; starting from scratch");
        return -1;
    }
    origin = origin_of(k);
    if (!origin->layout)
        return -1; /* it was being removed */
    if (origin->layout != LAYOUT || origin->abi_major != PRCB_ABI_MAJOR || !is_of_this_size(k)) {
        told("an earlier prcbd of another block version left sessions: they end, and their readers "
             "keep the last values, marked");
        return -1;
    }
    return origin->build == build_of_programs() && origin->interrupted == k->interrupted ? 0 : 1;
}

static int make_map(const char *name, uint32_t bytes, uint32_t count)
{
    LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
    int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(__u32), bytes, count, &options);

    return fd < 0 ? -errno : fd;
}

static int make_empty(struct kernel *k, struct prcb_error *err)
{
    k->empty = make_map("prcb_nobody", sizeof(struct prcb_account_block), 1);
    k->no_edges = make_map("prcb_no_edges", sizeof(struct prcb_edge_block), 1);
    if (k->empty >= 0 && k->no_edges >= 0)
        return 0;
    return prcb_fail(err, k->empty < 0 ? k->empty : k->no_edges, "a map cannot be made: %s",
                     strerror(errno));
}

/* Returns the blocks that the programs of an earlier daemon look at, unless somebody has written
 * them by now. */
static int shared_blocks(struct kernel *k)
{
    unsigned char head[sizeof(struct prcb_processor_head)];
    int fd = pins_get(k->live, BLOCKS_PIN);
    __u32 zero = 0;

    if (fd < 0 ||
        (!bpf_map_lookup_elem(fd, &zero, head) && !bpf_map_update_elem(fd, &zero, head, BPF_ANY)))
        return fd;
    close(fd); /* frozen */
    return -1;
}

/* Sessions of a daemon that did not note their number of processors have memory for all possible
 * ones. */
static void bound_processors(struct kernel *k)
{
    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++) {
        struct prcb_bpf_client *client = &k->bss->clients[i];

        if ((client->tails || client->switches) && !client->processors)
            client->processors = (__u16)k->possible;
    }
}

static int start_anew(struct kernel *k, kernel_told told, struct prcb_error *err)
{
    int result;

    remove_everything(k);
    result = load_fresh(k, NULL, told, err);
    if (!result)
        start_records(k);
    return result ? result : bpf_settle_clock(k->clock, &k->bss->calibrating, err);
}

static int take_over(struct kernel *k, kernel_told told, struct prcb_error *err)
{
    struct kernel old;
    int result;

    switch (judge_pins(k, told)) {
    case 0:
        k->adopted = true;
        k->has_interrupted = origin_of(k)->has_interrupted;
        return 0;
    case 1:
        told("replacing the programs of another build or of other settings; sessions continue");
        old = *k;
        result = load_fresh(k, &old, told, err);
        k->adopted = !result;
        if (!result) {
            bound_processors(k);
            return 0;
        }
        /* The verifier may refuse these programs on memory of another build: then sessions end, so
         * that others can begin. */
        if (result != -EACCES && result != -EINVAL)
            return result;
        told(err->text);
        told("starting from scratch: sessions of the prcbd before end");
        return start_anew(k, told, err);
    default:
        return start_anew(k, told, err);
    }
}

static void load_unattached(struct kernel *k)
{
    int blocks = shared_blocks(k);

    if (load_processors(blocks, &k->unattached, &k->no_processors)) {
        processor_programs_close(k->unattached);
        k->unattached = NULL;
    }
    if (blocks >= 0)
        close(blocks);
}

int kernel_open(struct kernel *k, const char *directory, bool interrupted, kernel_told told,
                struct prcb_error *err)
{
    int result;

    memset(k, 0, sizeof(*k));
    memset(k->maps, -1, sizeof(k->maps));
    memset(k->programs, -1, sizeof(k->programs));
    k->live = k->empty = k->no_edges = k->processors = k->processor_threads = -1;
    k->narrow = true;
    k->interrupted = interrupted;
    result = libbpf_num_possible_cpus();
    if (result <= 0)
        return prcb_fail(err, result, "the processors cannot be counted: %s", strerror(-result));
    k->possible = (uint32_t)result;
    step();
    k->directory = pins_open(directory, err);
    if (k->directory < 0)
        return k->directory;
    /* The lock lasts as long as the directory is open; a daemon that died holds none any more. */
    if (flock(k->directory, LOCK_EX | LOCK_NB)) {
        close(k->directory);
        return prcb_fail(err, -EBUSY, "%s: another prcbd has its pins there", directory);
    }
    step();
    result = take_over(k, told, err);
    if (!result)
        result = make_empty(k, err);
    /* A daemon that was cut short may have left the program at wakeups attached or not. */
    if (!result && settle_waking(k, edging_of(k->records)))
        told("cannot attach to wakeups: sessions will have no wakers");
    if (!result && k->has_interrupted && settle_switches(k))
        told("cannot attach to switches: what interrupts take is less exact");
    if (result) {
        kernel_close(k);
        return result;
    }
    /* The programs are loaded now, for later nothing can be loaded any more (filter.c). Clients
     * that ask for them are told why they are missing. */
    if (k->processors < 0 && !k->unattached && !k->no_processors.code)
        load_unattached(k);
    return 0;
}

void kernel_close(struct kernel *k)
{
    let_go(k);
    processor_programs_close(k->unattached);
    k->unattached = NULL;
    forget(&k->empty, 1);
    forget(&k->no_edges, 1);
    forget(&k->directory, 1);
}

void kernel_end(struct kernel *k)
{
    remove_everything(k);
    kernel_close(k);
}

int kernel_cleanup(const char *directory, struct prcb_error *err)
{
    struct kernel k = {0};

    memset(k.maps, -1, sizeof(k.maps));
    memset(k.programs, -1, sizeof(k.programs));
    k.live = k.empty = k.no_edges = k.processors = k.processor_threads = -1;
    k.directory = pins_open(directory, err);
    if (k.directory < 0)
        return k.directory;
    if (flock(k.directory, LOCK_EX | LOCK_NB)) {
        close(k.directory);
        return prcb_fail(err, -EBUSY, "%s: a prcbd that runs has its pins there: stop it first",
                         directory);
    }
    if (!open_pins(&k))
        map_all(&k, NULL);
    remove_everything(&k);
    kernel_close(&k);
    rmdir(directory);
    return 0;
}

/* ---- clients ---- */

int kernel_peer(struct kernel *k, int socket, struct prcb_bpf_peer *ret)
{
    __u64 arguments[] = {(__u64)socket};
    int result;

    k->bss->peer = (struct prcb_bpf_peer){0};
    result = bpf_run_program(k->programs[RUN_PEER], arguments, sizeof(arguments), NULL);
    if (result)
        return result;
    if (!k->bss->peer.found)
        return -ESRCH;
    *ret = k->bss->peer;
    return 0;
}

int kernel_start_of(struct kernel *k, pid_t pid, uint64_t *ret)
{
    int result;

    k->bss->look = (struct prcb_bpf_look){.pid = (__u32)pid};
    result = bpf_run_iterator(&k->narrow, k->programs[RUN_LOOK], pid, 0);
    if (result)
        return result;
    if (!k->bss->look.found)
        return -ESRCH;
    *ret = k->bss->look.start;
    return 0;
}

int kernel_stack_of(struct kernel *k, uint32_t client, uint64_t key, pid_t tid, char *ret,
                    size_t size)
{
    ssize_t length;

    /* The handle is made as make_handle of the programs makes it; accounts are counted from
     * element 1. */
    k->bss->kernel_stack.account =
        (key & ~0xffffffffull) | (uint64_t)client << 22 | ((uint32_t)key + 1);
    length = bpf_read_iterator(k->programs[RUN_KERNEL_STACK], tid, ret, size - 1);
    if (length < 0)
        return (int)length;
    return bpf_kernel_names(ret, (size_t)length) > 1 ? 0 : -ESRCH;
}

/* Makes a map that only programs can write. *ret_id: the kernel's number of it. */
static int make_frozen(const char *name, uint32_t bytes, uint32_t count, const void *first,
                       uint32_t *ret_id)
{
    struct bpf_map_info info = {0};
    uint32_t zero = 0, info_bytes = sizeof(info);
    int fd = make_map(name, bytes, count), result;

    if (fd < 0)
        return fd;
    if ((first && bpf_map_update_elem(fd, &zero, first, BPF_ANY)) || bpf_map_freeze(fd) ||
        bpf_obj_get_info_by_fd(fd, &info, &info_bytes)) {
        result = -errno;
        close(fd);
        return result;
    }
    *ret_id = info.id;
    return fd;
}

/* The size of a ring of switch records: 8 MiB for all processors together, at most 2 MiB and at
 * least 32 KiB for each. */
#define RINGS_ELEMENTS 8192u
#define RING_MOST      2048u
#define RING_LEAST     32u

static uint32_t ring_elements(const struct prcb_bpf_client *client)
{
    uint32_t all = client->switch_elements ? client->switch_elements : RINGS_ELEMENTS;
    uint32_t ret = client->switch_elements ? 1u << 20 : RING_MOST;

    while (ret > RING_LEAST && (uint64_t)ret * client->processors > all)
        ret /= 2;
    return ret;
}

uint32_t kernel_client_extra(const struct prcb_bpf_client *client, uint32_t *ret_switches)
{
    uint32_t processors = client->processors;

    *ret_switches = client->switches ? processors * (ring_elements(client) + 1) : 0;
    return (client->tails ? processors * PRCB_CAUSE_MAX : 0) + *ret_switches;
}

int kernel_client_make(struct kernel *k, uint32_t number, const struct prcb_bpf_client *client,
                       struct kernel_client_fds *ret)
{
    struct kernel_record *record = &k->records[number];
    struct kernel_client_fds made = {-1, -1};
    uint32_t after; /* the element after the accounts */
    union {
        struct prcb_client_block block;
        struct prcb_account_block whole;
    } first;

    memset(&first, 0, sizeof(first));
    first.block.head = *k->clock;
    first.block.head.features &= ~PRCB_FEATURE_INTERRUPTED;
    if (!client->registers)
        first.block.head.features &= ~PRCB_FEATURE_REGISTERS;
    if (!client->objects)
        first.block.head.features &= ~PRCB_FEATURE_OBJECTS;
    first.block.head.features |= k->has_interrupted ? PRCB_FEATURE_INTERRUPTED : 0;
    first.block.head.features |= client->edges ? PRCB_FEATURE_EDGES : 0;
    if (client->owners && first.block.head.features & PRCB_FEATURE_LOCKS)
        first.block.head.features |= PRCB_FEATURE_OWNERS;
    first.block.head.features |= client->meanwhile ? PRCB_FEATURE_MEANWHILE : 0;
    first.block.head.account_count = record->accounts;
    first.block.head.tail_processors = client->tails ? client->processors : 0;
    first.block.head.features |= client->tails ? PRCB_FEATURE_TAILS : 0;
    first.block.head.switch_processors = client->switches ? client->processors : 0;
    first.block.head.switch_elements = client->switches ? ring_elements(client) : 0;
    first.block.head.features |= client->switches ? PRCB_FEATURE_SWITCHES : 0;
    record->extra = kernel_client_extra(client, &record->switches);
    after = record->accounts + 1;
    made.accounts = make_frozen("prcb_client", sizeof(struct prcb_account_block),
                                after + record->extra, &first, &record->map_id);
    if (made.accounts < 0)
        return made.accounts;
    if (client->edges)
        made.edges = make_frozen("prcb_client_e", sizeof(struct prcb_edge_block), record->accounts,
                                 NULL, &record->edges_id);
    if (client->edges && made.edges < 0) {
        close(made.accounts);
        return made.edges;
    }
    record->edges = client->edges;
    record->epoch = ++origin_of(k)->last_epoch;
    /* The programs look at this as soon as they know of the map. */
    k->bss->clients[number] = *client;
    k->bss->clients[number].epoch = record->epoch;
    k->bss->clients[number].tails = client->tails ? after : 0;
    k->bss->clients[number].switches =
        client->switches ? after + record->extra - record->switches : 0;
    k->bss->clients[number].switch_elements = first.block.head.switch_elements;
    *ret = made;
    return 0;
}

void kernel_client_unmake(struct kernel *k, uint32_t number)
{
    k->bss->clients[number] = (struct prcb_bpf_client){0};
}

int kernel_client_fds(const struct kernel *k, uint32_t number, struct kernel_client_fds *ret)
{
    const struct kernel_record *record = &k->records[number];
    struct kernel_client_fds fds = {.edges = -1};
    int result = 0;

    fds.accounts = bpf_map_get_fd_by_id(record->map_id);
    if (fds.accounts >= 0 && record->edges)
        fds.edges = bpf_map_get_fd_by_id(record->edges_id);
    if (fds.accounts < 0 || (record->edges && fds.edges < 0))
        result = -errno;
    if (result && fds.accounts >= 0)
        close(fds.accounts);
    if (!result)
        *ret = fds;
    return result;
}

const struct prcb_account_block *kernel_client_view(int fd, uint32_t accounts)
{
    void *at = mmap(NULL, ((size_t)accounts + 1) * sizeof(struct prcb_account_block), PROT_READ,
                    MAP_SHARED, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

void kernel_client_unview(const struct prcb_account_block *blocks, uint32_t accounts)
{
    if (blocks)
        munmap((void *)(uintptr_t)blocks, ((size_t)accounts + 1) * sizeof(*blocks));
}

/* A client that ends gets the empty map, not none: so all changes are updates, and can be made
 * in one call. */
static int put_maps(struct kernel *k, enum kernel_map outer, const uint32_t *numbers,
                    const int *fds, uint32_t count)
{
    __u32 done = count;

    if (!count || !bpf_map_update_batch(k->maps[outer], numbers, fds, &done, NULL))
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (bpf_map_update_elem(k->maps[outer], &numbers[i], &fds[i], BPF_ANY))
            return -errno;
    }
    return 0;
}

/* Changes the maps of edges of clients that begin, or of those that end. */
static int put_edges(struct kernel *k, const uint32_t *numbers,
                     const struct kernel_client_fds *maps, uint32_t count, bool ended)
{
    uint32_t with[PRCB_CLIENT_COUNT], found = 0;
    int fds[PRCB_CLIENT_COUNT], result;

    for (uint32_t i = 0; i < count; i++) {
        if (!k->records[numbers[i]].edges || (maps[i].accounts < 0) != ended)
            continue;
        with[found] = numbers[i];
        fds[found++] = ended ? k->no_edges : maps[i].edges;
    }
    result = found && !ended ? settle_waking(k, true) : 0;
    return result ? result : put_maps(k, MAP_EDGES, with, fds, found);
}

void kernel_tell_client(struct kernel *k, uint32_t number)
{
    struct prcb_bpf_give_back asked = {.client = number};

    for (int i = 0; i < PRCB_CLIENT_SCOPES; i++) {
        if (k->bss->scopes[i].client == number)
            k->bss->scopes[i].client = 0;
    }
    bpf_run_program(k->programs[RUN_END_CLIENT], &asked, sizeof(asked), NULL);
}

static bool anyone_asks_meanwhile(const struct kernel *k)
{
    bool ret = false;

    for (uint32_t i = 1; i < PRCB_CLIENT_COUNT; i++)
        ret |= k->bss->clients[i].meanwhile != 0;
    return ret;
}

int kernel_clients_change(struct kernel *k, const uint32_t *numbers,
                          const struct kernel_client_fds *maps, uint32_t count)
{
    int fds[PRCB_CLIENT_COUNT] = {0}, result;
    bool ended = false, wide = false;

    for (uint32_t i = 0; i < count; i++) {
        fds[i] = maps[i].accounts < 0 ? k->empty : maps[i].accounts;
        ended |= maps[i].accounts < 0;
    }
    /* A map of edges is there before the first account is given out, and until no account is
     * found any more. */
    result = put_edges(k, numbers, maps, count, false);
    if (!result)
        result = put_maps(k, MAP_CLIENTS, numbers, fds, count);
    if (!result && ended)
        result = put_edges(k, numbers, maps, count, true);
    if (result)
        return result;
    /* No program that knew of the ended clients' maps still runs, so no tag gets a handle of
     * theirs any more, and after the sweep none has one. Otherwise the next client of the number
     * could bring such a handle back to life by writing its generation into its own map. */
    for (uint32_t i = 0; i < count; i++) {
        if (maps[i].accounts < 0)
            k->bss->clients[numbers[i]] = (struct prcb_bpf_client){0};
    }
    if (!anyone_asks_meanwhile(k))
        k->bss->meanwhile_epoch = 0;
    if (ended)
        result = bpf_run_iterator(&wide, k->programs[RUN_SWEEP], 0, 0);
    if (result)
        return result;
    /* Release: a daemon that finds a record in use also finds the rest of it, and the map. */
    for (uint32_t i = 0; i < count; i++)
        __atomic_store_n(&k->records[numbers[i]].used, maps[i].accounts >= 0, __ATOMIC_RELEASE);
    return ended ? settle_waking(k, edging_of(k->records)) : 0;
}

/* Where the client asked who runs while others are ready, the switches of all processors note it
 * from now on: before it profiles anybody. */
static void note_turns(struct kernel *k, uint32_t client)
{
    if (k->bss->clients[client].meanwhile && !k->bss->meanwhile_epoch)
        k->bss->meanwhile_epoch = k->records[client].epoch;
}

int kernel_register(struct kernel *k, struct prcb_bpf_request *request, bool same_pid_ns,
                    struct kernel_undone *ret)
{
    struct prcb_bpf_request *shared = &k->bss->request, asked = *request;
    __u32 number = same_pid_ns ? request->number : 0;
    bool again = true;
    int result = 0;

    note_turns(k, request->client);
    ret->count = 0;
    for (unsigned pass = 0; !result && again; pass++) {
        uint32_t added = request->added;

        result = bpf_register_pass(&k->narrow, k->programs[RUN_REGISTER], shared, &asked, number,
                                   pass, &again);
        if (shared->undo)
            ret->keys[ret->count++] = shared->undo_key;
        *request = *shared;
        request->added += added;
    }
    return result;
}

int kernel_give_up(struct kernel *k, uint32_t client, uint64_t key, bool *ret_live)
{
    struct prcb_bpf_give_back asked = {
        .client = client, .slot = (uint32_t)key, .generation = (uint32_t)(key >> 32)};
    int stale = 0;
    int result = bpf_run_program(k->programs[RUN_GIVE_UP], &asked, sizeof(asked), &stale);

    if (result || stale)
        return result ? result : -ESTALE;
    *ret_live = asked.live;
    return 0;
}

int kernel_wait(void)
{
    return bpf_wait_for_programs();
}

int kernel_free(struct kernel *k, uint32_t client, uint32_t slot)
{
    struct prcb_bpf_give_back asked = {.client = client, .slot = slot};
    int busy = 2, result = 0;

    for (int i = 0; i < 10 && !result && busy == 2; i++)
        result = bpf_run_program(k->programs[RUN_FREE_SLOT], &asked, sizeof(asked), &busy);
    return result ? result : busy ? -EAGAIN : 0;
}

int kernel_free_exited(struct kernel *k, uint32_t client, uint32_t accounts, uint64_t *ret)
{
    uint64_t released = 0;

    for (uint32_t from = 0; from < accounts; from += PRCB_SWEEP_STEP) {
        struct prcb_bpf_give_back asked = {.client = client, .from = from};
        int result = bpf_run_program(k->programs[RUN_FREE_EXITED], &asked, sizeof(asked), NULL);

        if (result)
            return result;
        released += asked.released;
    }
    *ret = released;
    return 0;
}

void kernel_count_scopes(struct kernel *k)
{
    uint32_t count = 0;

    for (int i = 0; i < PRCB_CLIENT_SCOPES; i++)
        count += k->bss->scopes[i].client != 0;
    k->bss->scoped = count;
}

struct prcb_bpf_client_scope *kernel_scope(struct kernel *k, uint32_t client)
{
    struct prcb_bpf_client_scope *free = NULL;

    for (int i = 0; i < PRCB_CLIENT_SCOPES; i++) {
        struct prcb_bpf_client_scope *scope = &k->bss->scopes[i];

        if (scope->client == client)
            return scope;
        if (!scope->client && !free)
            free = scope;
    }
    return free;
}

void kernel_scope_begin(struct kernel *k, struct prcb_bpf_client_scope *scope, uint32_t client,
                        bool all, uint64_t cgroup, bool v2)
{
    __u32 bit;

    scope->epoch = k->records[client].epoch;
    scope->all = all;
    scope->cgroups = (struct prcb_bpf_cgroups){0};
    if (cgroup)
        prcb_bpf_cgroups_add(&scope->cgroups, cgroup, v2, &bit);
    note_turns(k, client);
    /* Programs do not see a half filled scope. */
    __atomic_store_n(&scope->client, client, __ATOMIC_RELEASE);
}

uint32_t kernel_scopes_used(const struct kernel *k, uint32_t client, uint32_t uid, uint32_t *ret)
{
    uint32_t own = 0, all = 0;

    for (int i = 0; i < PRCB_CLIENT_SCOPES; i++) {
        uint32_t other = k->bss->scopes[i].client;

        if (!other || other == client)
            continue;
        all++;
        own += k->records[other].uid == uid;
    }
    *ret = all;
    return own;
}

/* ---- processors ---- */

int kernel_attach_processors(struct kernel *k, struct prcb_error *err)
{
    struct processor_programs *programs = k->unattached;
    int result;

    if (!programs) {
        *err = k->no_processors;
        return err->code;
    }
    k->unattached = NULL;
    result = add_processors(k->live, programs, err);
    if (!result &&
        (result = pins_each(k->live, PROCESSOR_EVENT, open_processor_event, &k->processor_events)))
        prcb_fail(err, result, "the pinned processor programs cannot be opened: %s",
                  strerror(-result));
    if (!result)
        k->processor_threads = fcntl(processor_programs_threads_fd(programs), F_DUPFD_CLOEXEC, 0);
    if (!result && k->processor_threads >= 0)
        k->processors = fcntl(processor_programs_map_fd(programs), F_DUPFD_CLOEXEC, 0);
    if (!result && k->processors < 0)
        result = prcb_fail(err, -errno, "prcbd has no free descriptor; try again later");
    processor_programs_close(programs);
    k->no_processors = *err;
    return result;
}

int kernel_processors(struct kernel *k, bool threads, int *ret, struct prcb_error *err)
{
    const int maps[] = {k->processors, k->processor_threads};
    int result = settle_switches(k);

    if (result)
        return prcb_fail(err, result, "the processors' program at switches cannot be attached: %s",
                         strerror(-result));
    for (int i = 0; i < 1 + threads; i++) {
        ret[i] = fcntl(maps[i], F_DUPFD_CLOEXEC, 0);
        if (ret[i] >= 0)
            continue;
        prcb_fail(err, -errno, "prcbd has no free descriptor; try again later");
        if (i)
            close(ret[0]);
        return err->code;
    }
    return 1 + threads;
}

void kernel_events_read(const struct kernel_events *events, struct wire_programs_answer *ret)
{
    ret->count = events->count;
    for (unsigned i = 0; i < events->count; i++) {
        struct wire_program *item = &ret->items[i];

        item->misses = bpf_misses_of(events->fds[i], &item->id);
        memcpy(item->name, events->names[i], sizeof(item->name));
    }
}

#define MAPS_ROOM 16384

int kernel_client_maps(struct kernel *k, uint32_t **ret, size_t *ret_count)
{
    uint32_t *ids = NULL;
    size_t room = 0;
    ssize_t got;

    do {
        got = array_reserve(ids, room, room, MAPS_ROOM)
                  ? -ENOMEM
                  : bpf_read_iterator(k->programs[RUN_MAPS], 0, ids, room * sizeof(*ids));
    } while (got == (ssize_t)(room * sizeof(*ids))); /* there may be more */
    if (got < 0) {
        free(ids);
        return (int)got;
    }
    *ret = ids;
    *ret_count = (size_t)got / sizeof(*ids);
    return 0;
}
