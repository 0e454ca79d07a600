/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb dump for people: header, one line a processor, notes; or everything of one processor.
 */
#include "dump_show.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <prcb/prcb.h>

#include "error.h"
#include "text.h"

#define BREAKPOINT 0x80000003u

/* ---- shared with dump_json.c ---- */

const char *dump_thread_state(uint64_t state)
{
    static const char *const names[] = {"Initialized",      "Ready",
                                        "Running",          "Standby",
                                        "Terminated",       "Waiting",
                                        "Transition",       "DeferredReady",
                                        "GateWaitObsolete", "WaitingForProcessInSwap"};

    return state < sizeof(names) / sizeof(names[0]) ? names[state] : NULL;
}

/* Makes a date of days since 1601; proleptic Gregorian. */
void dump_time_text(uint64_t filetime, char *ret, size_t size)
{
    uint64_t ms = filetime / 10000, day = ms / 86400000, in_day = ms % 86400000;
    uint64_t shifted = day + 584694; /* days from 0000-03-01 to 1601-01-01 */
    uint64_t era, doe, yoe, doy, mp, year;

    era = shifted / 146097;
    doe = shifted % 146097;
    yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    mp = (5 * doy + 2) / 153;
    year = yoe + era * 400 + (mp >= 10);
    snprintf(ret, size,
             "%04" PRIu64 "-%02" PRIu64 "-%02" PRIu64 " %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64
             ".%03" PRIu64,
             year, mp < 10 ? mp + 3 : mp - 9, doy - (153 * mp + 2) / 5 + 1, in_day / 3600000,
             in_day / 60000 % 60, in_day / 1000 % 60, in_day % 1000);
}

int dump_choose_cpu(const struct prcb_dump *d, const struct dump_show *show, size_t *ret,
                    struct prcb_error *err)
{
    const struct prcb_dump_processor *p;

    for (size_t i = 0; (p = prcb_dump_processor(d, i)); i++) {
        if (show->has_cpu ? p->number == show->cpu : p->crashing) {
            *ret = i;
            return 0;
        }
    }
    if (!show->has_cpu && prcb_dump_processor(d, 0)) {
        *ret = 0;
        return 0;
    }
    if (show->has_cpu)
        return prcb_fail(err, -ENOENT, "processor %u is not in this dump", show->cpu);
    return prcb_fail(err, -ENOENT, "no processor was found in this dump");
}

int64_t dump_signed(const struct prcb_dump_member *m)
{
    unsigned int bits = m->bit_width ? m->bit_width : m->size * 8;
    unsigned int shift = bits < 64 ? 64 - bits : 0;

    return (int64_t)(m->value << shift) >> shift;
}

/* ---- header ---- */

static void print_assumed(FILE *out, uint8_t source, const char *option)
{
    if (source == PRCB_DUMP_ASSUMED)
        fprintf(out, " (assumed, not in this dump; %s)", option);
    else if (source == PRCB_DUMP_FROM_OPTION)
        fprintf(out, " (%s)", option);
}

bool dump_date_text(const struct prcb_dump *d, uint32_t timestamp, char *ret, size_t size)
{
    const uint64_t since_1601 = 11644473600, first = 757382400; /* 1994-01-01 */
    uint64_t crash = prcb_dump_info(d)->crash_time / 10000000;
    char text[40];

    if (timestamp < first || !crash || timestamp + since_1601 > crash)
        return false;
    dump_time_text((timestamp + since_1601) * 10000000, text, sizeof(text));
    snprintf(ret, size, "%.10s", text);
    return true;
}

static void print_uptime(FILE *out, uint64_t uptime)
{
    uint64_t s = uptime / 10000000;

    fprintf(out, "uptime      %.2f s", (double)uptime / 1e7);
    if (s >= 86400)
        fprintf(out, " (%" PRIu64 " day%s %" PRIu64 " h %" PRIu64 " min)", s / 86400,
                s / 86400 == 1 ? "" : "s", s / 3600 % 24, s / 60 % 60);
    else if (s >= 3600)
        fprintf(out, " (%" PRIu64 " h %" PRIu64 " min)", s / 3600, s / 60 % 60);
    else if (s >= 60)
        fprintf(out, " (%" PRIu64 " min %" PRIu64 " s)", s / 60, s % 60);
    putc('\n', out);
}

/* Prints "  nt.exe+0x10" of an address in a module, else nothing. */
static void print_module(FILE *out, const struct prcb_dump *d, uint64_t address)
{
    char text[128];

    if (!prcb_dump_address_text(d, address, text, sizeof(text)))
        fprintf(out, "  %s", text);
}

/* Each parameter on a line of its own where its meaning, or the module it points to, is known. */
static void print_parameters(FILE *out, const struct prcb_dump *d)
{
    const struct prcb_dump_info *info = prcb_dump_info(d);
    char text[128];

    for (size_t i = 0; i < 4; i++) {
        uint64_t value = info->bugcheck_parameters[i];
        bool has_module = !prcb_dump_address_text(d, value, text, sizeof(text));

        if (!info->bugcheck_words[i] && !has_module)
            continue;
        fprintf(out, "  %zu         0x%" PRIx64, i + 1, value);
        if (info->bugcheck_words[i])
            fprintf(out, "  %s", info->bugcheck_words[i]);
        fprintf(out, "%s%s\n", has_module ? "  " : "", has_module ? text : "");
    }
}

/* The breakpoint that KeBugCheckEx itself stops at says nothing. */
static void print_exception(FILE *out, const struct prcb_dump *d)
{
    const struct prcb_dump_info *info = prcb_dump_info(d);
    const char *name = prcb_dump_exception_name(info->exception_code);

    if (!info->exception_code || (info->exception_code == BREAKPOINT && info->bugcheck_code))
        return;
    fprintf(out, "exception   0x%08x %s%sat 0x%" PRIx64, info->exception_code, name ? name : "",
            name ? " " : "", info->exception_address);
    print_module(out, d, info->exception_address);
    putc('\n', out);
}

static void print_verdict(FILE *out, const struct prcb_dump *d)
{
    struct prcb_dump_culprit c = {.size = sizeof(c)};
    const char *text;

    for (size_t i = 0; (text = prcb_dump_finding(d, i)); i++)
        fprintf(out, "%s%s\n", i ? "            " : "meaning     ", text);
    if (prcb_dump_culprit(d, &c))
        return;
    fprintf(out, "probably    caused by %s%s: %s", c.module, c.is_unloaded ? " (unloaded)" : "",
            c.found_by);
    if (c.of_frames)
        fprintf(out, " (%" PRIu32 " of %" PRIu32 " addresses there)", c.frames, c.of_frames);
    fputs(c.is_inbox ? "; it comes with Windows\n" : "\n", out);
}

static void print_bugcheck(FILE *out, const struct prcb_dump_info *info)
{
    if (!info->bugcheck_code) {
        fputs("bug check   none: the machine was running\n", out);
        return;
    }
    fprintf(out, "bug check   0x%x %s (", info->bugcheck_code,
            info->bugcheck_name ? info->bugcheck_name : "(name not known)");
    for (size_t i = 0; i < 4; i++)
        fprintf(out, "%s0x%" PRIx64, i ? ", " : "", info->bugcheck_parameters[i]);
    fputs(")\n", out);
}

static void print_layout(FILE *out, const struct prcb_dump *d)
{
    const struct prcb_dump_info *info = prcb_dump_info(d);
    const struct prcb_dump_processor *p;
    size_t held = 0, confirmed = 0;

    for (size_t i = 0; (p = prcb_dump_processor(d, i)); i++) {
        held += p->held;
        confirmed += p->power_confirmed;
    }
    fprintf(out, "layout      KPRCB %s",
            info->layout_found == PRCB_DUMP_BY_SYMBOLS ? "by symbols"
            : info->layout                             ? info->layout
                                                       : "not known");
    if (info->symbols) {
        fputs(" (", out);
        text_print(out, TEXT_ESCAPES, info->symbols);
        putc(')', out);
    }
    if (confirmed)
        fprintf(out, "; PowerState found by %s, landmark holds in %zu of %zu",
                prcb_dump_found_name(prcb_dump_processor(d, 0)->power_found), confirmed, held);
    putc('\n', out);
}

static void print_processors(FILE *out, const struct prcb_dump *d)
{
    const struct prcb_dump_processor *p;
    size_t i;

    fprintf(out, "processors  %u", prcb_dump_info(d)->header_processors);
    p = prcb_dump_processor(d, 0);
    if (p && p->vendor[0])
        fprintf(out, ", %s", p->vendor);
    for (i = 0; (p = prcb_dump_processor(d, i)); i++) {
        if (p->crashing)
            fprintf(out, "; processor %u crashed (marked *)", p->number);
    }
    putc('\n', out);
}

static void print_header(FILE *out, const struct prcb_dump *d, const char *path)
{
    const struct prcb_dump_info *info = prcb_dump_info(d);
    char time[40];

    fputs("file        ", out);
    text_print(out, TEXT_ESCAPES, path);
    putc('\n', out);
    fprintf(out, "container   %s: %s\n", info->container, info->container_words);
    fprintf(out, "machine     %s, build %u: %s%s\n", info->machine, info->build,
            info->release ? info->release : "release not known",
            info->major == 12 ? " (checked build)" : "");
    if (info->computer)
        fprintf(out, "computer    %s\n", info->computer);
    if (info->firmware)
        fprintf(out, "firmware    %s\n", info->firmware);
    print_bugcheck(out, info);
    print_verdict(out, d);
    print_parameters(out, d);
    print_exception(out, d);
    if (info->uptime_100ns)
        print_uptime(out, info->uptime_100ns);
    else
        fputs("uptime      not in this dump\n", out);
    if (info->crash_time) {
        dump_time_text(info->crash_time, time, sizeof(time));
        fprintf(out, "%-11s %s UTC\n", info->bugcheck_code ? "crashed" : "taken", time);
    }
    print_processors(out, d);
    if (info->kernel_pdb)
        fprintf(out, "symbols     %s\n", info->kernel_pdb);
    print_layout(out, d);
    fprintf(out, "tick        %g ms", info->time_increment / 1e4);
    print_assumed(out, info->time_increment_source, "--time-increment");
    if (info->qpc_source) {
        fprintf(out, "; performance counter %g MHz", (double)info->qpc_frequency / 1e6);
        print_assumed(out, info->qpc_source, "--qpc-frequency");
    }
    putc('\n', out);
}

/* ---- the table ---- */

struct table {
    FILE *out;
    const struct prcb_dump *d;
    const struct prcb_dump_info *info;
    bool raw;
};

static const struct prcb_dump_value *item(const struct prcb_dump_processor *p, unsigned int i)
{
    return p->items[i].found_by ? &p->items[i] : NULL;
}

/* Prints a time: seconds and its share of kernel + user, or ticks. */
static void print_time(const struct table *t, const struct prcb_dump_processor *p,
                       unsigned int which)
{
    const struct prcb_dump_value *v = item(p, which), *k = item(p, PRCB_DUMP_KernelTime),
                                 *u = item(p, PRCB_DUMP_UserTime);

    if (!v) {
        fprintf(t->out, t->raw ? " %10s" : " %10s %5s", "-", "-");
        return;
    }
    if (t->raw) {
        fprintf(t->out, " %10" PRIu64, v->value);
        return;
    }
    fprintf(t->out, " %10.2f", (double)v->value * t->info->time_increment / 1e7);
    if (k && u && k->value + u->value)
        fprintf(t->out, " %5.1f", 100.0 * (double)v->value / (double)(k->value + u->value));
    else
        fprintf(t->out, " %5s", "-");
}

static void print_number(const struct table *t, const struct prcb_dump_value *v, int width)
{
    if (v)
        fprintf(t->out, " %*" PRIu64, width, v->value);
    else
        fprintf(t->out, " %*s", width, "-");
}

static void print_idle(const struct table *t, const struct prcb_dump_processor *p)
{
    const struct prcb_dump_value *v = item(p, PRCB_DUMP_IdleTimeTotal);

    if (t->raw || !v)
        print_number(t, v, 14);
    else if (t->info->qpc_frequency)
        fprintf(t->out, " %10.2f", (double)v->value / (double)t->info->qpc_frequency);
    else
        fprintf(t->out, " %10s", "-");
}

/* Prints "System 4.264": the process, its id and the thread's. */
static void print_ids(FILE *out, const struct prcb_dump *d, size_t index)
{
    struct prcb_dump_thread thread = {.size = sizeof(thread)};

    if (prcb_dump_thread(d, index, &thread))
        return;
    if (thread.process_name)
        fprintf(out, " %s", thread.process_name);
    if (thread.ids_found_by && thread.id)
        fprintf(out, " %u.%u", thread.process_id, thread.id);
}

/* Where it was when it was stopped. */
static void print_place(FILE *out, const struct prcb_dump *d, size_t index)
{
    struct prcb_dump_context context = {.size = sizeof(context)};
    char text[128];

    if (prcb_dump_context(d, index, &context) || !context.found_by)
        return;
    if (prcb_dump_address_text(d, context.program_counter, text, sizeof(text)))
        snprintf(text, sizeof(text), "0x%" PRIx64, context.program_counter);
    fprintf(out, " at %s", text);
}

static void print_thread(const struct table *t, const struct prcb_dump_processor *p, size_t index)
{
    const struct prcb_dump_value *thread = item(p, PRCB_DUMP_CurrentThread);
    const struct prcb_dump_value *idle = item(p, PRCB_DUMP_IdleThread);
    const struct prcb_dump_value *switches = item(p, PRCB_DUMP_ThreadContextSwitches);

    if (!thread) {
        fputs(" -", t->out);
        return;
    }
    fprintf(t->out, " %" PRIx64, thread->value);
    print_ids(t->out, t->d, index);
    if (idle && idle->value == thread->value)
        fputs(" (idle)", t->out);
    else if (switches)
        fprintf(t->out, " (%" PRIu64 " switches)", switches->value);
    print_place(t->out, t->d, index);
}

static const struct prcb_dump_value *performance(const struct prcb_dump_processor *p)
{
    const struct prcb_dump_value *latest = item(p, PRCB_DUMP_LatestPerformancePercent);

    return latest ? latest : item(p, PRCB_DUMP_AveragePerformancePercent);
}

static void print_row(const struct table *t, const struct prcb_dump_processor *p, size_t index)
{
    const struct prcb_dump_value *parked = item(p, PRCB_DUMP_Parked);

    fprintf(t->out, "%4u%c", p->number, p->crashing ? '*' : ' ');
    print_time(t, p, PRCB_DUMP_KernelTime);
    print_time(t, p, PRCB_DUMP_UserTime);
    print_time(t, p, PRCB_DUMP_DpcTime);
    print_time(t, p, PRCB_DUMP_InterruptTime);
    print_number(t, item(p, PRCB_DUMP_InterruptCount), 11);
    print_idle(t, p);
    print_number(t, item(p, PRCB_DUMP_MHz), 5);
    print_number(t, performance(p), 5);
    fprintf(t->out, " %6s", !parked ? "-" : parked->value ? "yes" : "no");
    print_number(t, item(p, PRCB_DUMP_TargetIdleState), 4);
    print_number(t, item(p, PRCB_DUMP_KeContextSwitches), 11);
    print_thread(t, p, index);
    putc('\n', t->out);
}

static void print_table(const struct table *t, const struct prcb_dump *d)
{
    const struct prcb_dump_processor *p;

    if (!prcb_dump_processor(d, 0))
        return;
    if (t->raw)
        fprintf(t->out, "\n CPU  %10s %10s %10s %10s %11s %14s %5s %5s %6s %4s %11s %s\n", "kernel",
                "user", "dpc", "interrupt", "interrupts", "idle qpc", "MHz", "perf%", "parked",
                "idle", "switches", "current thread");
    else
        fprintf(t->out,
                "\n CPU  %10s %5s %10s %5s %10s %5s %10s %5s %11s %10s %5s %5s %6s %4s %11s %s\n",
                "kernel s", "%", "user s", "%", "dpc s", "%", "intr s", "%", "interrupts", "idle s",
                "MHz", "perf%", "parked", "idle", "switches", "current thread");
    for (size_t i = 0; (p = prcb_dump_processor(d, i)); i++)
        print_row(t, p, i);
}

static void print_notes(FILE *out, const struct prcb_dump *d)
{
    const char *note;

    for (size_t i = 0; (note = prcb_dump_note(d, i)); i++) {
        fputs(i ? "- " : "\nnotes\n- ", out);
        text_print(out, TEXT_ESCAPES, note);
        putc('\n', out);
    }
}

/* ---- one processor ---- */

static void print_item(FILE *out, const struct prcb_dump_processor *p, unsigned int i)
{
    const struct prcb_dump_value *v = &p->items[i];
    const char *words = NULL;

    fprintf(out, "  %-27s ", prcb_dump_item_name(i));
    if (!v->found_by) {
        fprintf(out, "- %s\n", v->absent);
        return;
    }
    if (v->value >> 40)
        fprintf(out, "0x%-18" PRIx64, v->value);
    else
        fprintf(out, "%-20" PRIu64, v->value);
    if (i == PRCB_DUMP_ThreadState)
        words = dump_thread_state(v->value);
    else if (i == PRCB_DUMP_ThreadWaitReason)
        words = prcb_wait_reason_name((uint32_t)v->value);
    fprintf(out, " %s%s%s\n", prcb_dump_found_name(v->found_by), words ? "  " : "",
            words ? words : "");
}

static int print_member(const struct prcb_dump_member *m, void *ctx)
{
    char name[128];
    FILE *out = ctx;

    if (m->bit_width)
        snprintf(name, sizeof(name), "%s : %u", m->path, m->bit_width);
    else
        snprintf(name, sizeof(name), "%s", m->path);
    fprintf(out, "  +0x%04x %-44s %-28s ", m->offset, name, m->type);
    if (!m->is_held)
        fputs("- not in this dump\n", out);
    else if (m->is_opaque)
        fprintf(out, "(%u bytes)\n", m->size);
    else if (m->is_pointer)
        fprintf(out, "0x%" PRIx64 "\n", m->value);
    else if (m->value_name)
        fprintf(out, "%" PRIu64 " %s\n", m->value, m->value_name);
    else if (m->is_signed)
        fprintf(out, "%" PRId64 "\n", dump_signed(m));
    else
        fprintf(out, m->value > 9 ? "%" PRIu64 " (0x%" PRIx64 ")\n" : "%" PRIu64 "\n", m->value,
                m->value);
    return 0;
}

/* Prints bytes of a structure, sixteen a line; those that are not held show as "--". */
static void print_bytes(FILE *out, const struct prcb_dump *d, const struct prcb_dump_structure *s)
{
    for (uint32_t at = 0; at < s->length; at += 16) {
        fprintf(out, "  +0x%04x", at);
        for (uint32_t i = at; i < at + 16 && i < s->length; i++) {
            uint8_t byte;

            if (prcb_dump_read(d, s->address + i, &byte, 1, NULL))
                fputs(" --", out);
            else
                fprintf(out, " %02x", byte);
        }
        putc('\n', out);
    }
}

static int print_structure(FILE *out, const struct prcb_dump *d, size_t index, const char *name,
                           bool raw, struct prcb_error *err)
{
    struct prcb_dump_structure s = {.size = sizeof(s)};
    int code = prcb_dump_structure(d, index, name, NULL, NULL, &s, err);

    if (code)
        return code;
    fprintf(out, "\n%s of processor %u", s.name, prcb_dump_processor(d, index)->number);
    if (s.has_address)
        fprintf(out, " at 0x%" PRIx64, s.address);
    fprintf(out, ", layout %s%s, found by %s\n", s.version, s.is_inferred ? " (inferred)" : "",
            prcb_dump_found_name(s.found_by));
    if (raw)
        print_bytes(out, d, &s);
    else
        prcb_dump_structure(d, index, name, print_member, out, NULL, NULL);
    return 0;
}

static void print_context(FILE *out, const struct prcb_dump *d, size_t index)
{
    struct prcb_dump_context context = {.size = sizeof(context)};
    const char *name;
    uint64_t value;

    if (prcb_dump_context(d, index, &context))
        return;
    fputs("\nregisters", out);
    if (!context.found_by)
        fprintf(out, ": %s\n", context.absent);
    else
        fprintf(out, ", found by %s\n", prcb_dump_found_name(context.found_by));
    for (size_t i = 0; !prcb_dump_register(d, index, i, &name, &value); i++) {
        fprintf(out, "  %-7s 0x%016" PRIx64, name, value);
        print_module(out, d, value);
        putc('\n', out);
    }
    if (context.irql_found_by) {
        name = prcb_dump_irql_name(d, context.irql);
        fprintf(out, "  %-7s %u%s%s\n", "IRQL", context.irql, name ? "  " : "", name ? name : "");
    }
}

static void print_process(FILE *out, const struct prcb_dump *d, size_t index)
{
    struct prcb_dump_thread t = {.size = sizeof(t)};

    if (prcb_dump_thread(d, index, &t) || !t.address)
        return;
    if (t.ids_found_by)
        fprintf(out, "  %-27s %-20u %s\n  %-27s %-20u %s\n", "ThreadId", t.id,
                prcb_dump_found_name(t.ids_found_by), "ProcessId", t.process_id,
                prcb_dump_found_name(t.ids_found_by));
    else
        fputs("  ThreadId                    - not in this dump\n", out);
    if (t.process)
        fprintf(out, "  %-27s 0x%-18" PRIx64 " kdbg\n", "Process", t.process);
    if (t.process_name)
        fprintf(out, "  %-27s %-20s %s\n", "ProcessName", t.process_name,
                prcb_dump_found_name(t.name_found_by));
    else
        fputs("  ProcessName                 - not in this dump\n", out);
}

struct dpc_printer {
    FILE *out;
    const struct prcb_dump *d;
    size_t count;
};

static int print_dpc(const struct prcb_dump_dpc *dpc, void *ctx)
{
    struct dpc_printer *p = ctx;

    fprintf(p->out, "%s  %-8s %-8s 0x%016" PRIx64, p->count++ ? "" : "\nDPCs\n",
            dpc->is_active ? "active" : "queued", dpc->is_threaded ? "threaded" : "normal",
            dpc->address);
    if (dpc->is_held) {
        fprintf(p->out, "  routine 0x%" PRIx64, dpc->routine);
        print_module(p->out, p->d, dpc->routine);
    } else {
        print_module(p->out, p->d, dpc->address);
        fputs("  (its KDPC is not in this dump)", p->out);
    }
    putc('\n', p->out);
    return 0;
}

static void print_cpu(FILE *out, const struct prcb_dump *d, size_t index)
{
    struct dpc_printer dpcs = {out, d, 0};
    const struct prcb_dump_processor *p = prcb_dump_processor(d, index);

    fprintf(out, "\nprocessor %u%s", p->number, p->crashing ? ", the one that crashed" : "");
    if (p->has_kprcb)
        fprintf(out, ", KPRCB at 0x%" PRIx64, p->kprcb);
    fprintf(out, "%s%s\n", p->vendor[0] ? ", " : "", p->vendor);
    for (unsigned int i = 0; i < PRCB_DUMP_ITEM_COUNT; i++)
        print_item(out, p, i);
    print_process(out, d, index);
    print_context(out, d, index);
    prcb_dump_dpcs(d, index, print_dpc, &dpcs);
}

static void print_crashing_thread(FILE *out, const struct prcb_dump *d, size_t index)
{
    const struct prcb_dump_processor *p = prcb_dump_processor(d, index);

    fprintf(out, "\ncurrent thread of processor %u%s\n", p->number,
            p->crashing ? ", the one that crashed" : "");
    print_item(out, p, PRCB_DUMP_CurrentThread);
    for (unsigned int i = PRCB_DUMP_ThreadState; i <= PRCB_DUMP_ThreadCounters; i++)
        print_item(out, p, i);
    print_process(out, d, index);
}

/* ---- modules, the stack ---- */

static void print_known(FILE *out, uint32_t value)
{
    if (value)
        fprintf(out, " 0x%08x", value);
    else
        fprintf(out, " %10s", "-");
}

/* The day of a time stamp that is one: reproducible builds have a hash in its place. */
static void print_date(FILE *out, const struct prcb_dump *d, uint32_t timestamp)
{
    char text[16];

    fprintf(out, "  %-10s", dump_date_text(d, timestamp, text, sizeof(text)) ? text : "-");
}

static void print_modules_of(FILE *out, const struct prcb_dump *d, bool is_inbox)
{
    struct prcb_dump_module m = {.size = sizeof(m)};

    for (size_t i = 0; !prcb_dump_module(d, i, &m); i++) {
        if (prcb_dump_is_inbox(m.name) != is_inbox)
            continue;
        fprintf(out, "0x%016" PRIx64 " 0x%08" PRIx64, m.base, m.length);
        print_known(out, m.timestamp);
        print_known(out, m.checksum);
        print_date(out, d, m.timestamp);
        fprintf(out, "  %s%s\n", m.name, m.is_unloaded ? " (unloaded)" : "");
    }
}

/* Those that do not come with Windows first. */
static void print_modules(FILE *out, const struct prcb_dump *d)
{
    if (!prcb_dump_module_count(d)) {
        fputs("\nmodules: no list of them is in this dump\n", out);
        return;
    }
    fprintf(out, "\n%-18s %10s %10s %10s  %-10s  %s\n", "base", "size", "timestamp", "checksum",
            "date", "module");
    print_modules_of(out, d, false);
    print_modules_of(out, d, true);
}

struct scan_printer {
    FILE *out;
    const struct prcb_dump *d;
    size_t count;
};

static int print_scanned(uint64_t address, uint64_t value, void *ctx)
{
    struct scan_printer *p = ctx;

    p->count++;
    fprintf(p->out, "  0x%016" PRIx64 "  0x%016" PRIx64, address, value);
    print_module(p->out, p->d, value);
    putc('\n', p->out);
    return 0;
}

static void print_stack(FILE *out, const struct prcb_dump *d)
{
    struct scan_printer p = {out, d, 0};
    struct prcb_error err;

    fputs("\nstack of the crashing thread: a scan for addresses in modules, no backtrace\n", out);
    if (prcb_dump_stack_scan(d, print_scanned, &p, &err))
        fprintf(out, "  %s\n", err.text);
    else if (!p.count)
        fputs("  none\n", out);
}

/* --cpu shows all there is of one processor; --struct and --thread narrow that. */
static int print_one(FILE *out, const struct prcb_dump *d, const struct dump_show *show,
                     struct prcb_error *err)
{
    size_t index;
    int code = dump_choose_cpu(d, show, &index, err);

    if (code)
        return code;
    if (show->thread)
        print_crashing_thread(out, d, index);
    if (show->structure)
        return print_structure(out, d, index, show->structure, show->raw, err);
    if (show->thread)
        return 0;
    print_cpu(out, d, index);
    print_structure(out, d, index, "PROCESSOR_POWER_STATE", show->raw, NULL);
    return 0;
}

int dump_text(const struct prcb_dump *d, const char *path, const struct dump_show *show, FILE *out,
              struct prcb_error *err)
{
    struct table t = {out, d, prcb_dump_info(d), show->raw};
    int code = 0;

    print_header(out, d, path);
    if (show->has_cpu || show->structure || show->thread)
        code = print_one(out, d, show, err);
    else if (!show->modules && !show->stack && !show->brief)
        print_table(&t, d);
    if (!code && show->modules)
        print_modules(out, d);
    if (!code && show->stack)
        print_stack(out, d);
    if (!code && !show->brief)
        print_notes(out, d);
    return code;
}
