/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the table of `prcb cpu`: a row for all processors together, a row for each.
 */
#include "cpu_report.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000.0
#define WIDTH    10 /* of a rate */

/* One table being written. */
struct table {
    FILE *out;
    const struct cpu_report *report;
    uint64_t wall_ns;
    uint64_t any; /* members that any processor has */
    struct cpu_states states;
    char time[16]; /* in front of each line */
    struct prcb_processor total;
};

/* ---- all processors together --------------------------------------------- */

static void add_states(struct prcb_processor *total, const struct prcb_processor *p)
{
    for (uint32_t i = 0; i < p->idle_state_count; i++) {
        const struct prcb_idle_state *state = &p->idle_states[i];
        struct prcb_idle_state *sum = NULL;

        for (uint32_t k = 0; !sum && k < total->idle_state_count; k++) {
            if (!strcmp(total->idle_states[k].name, state->name))
                sum = &total->idle_states[k];
        }
        if (!sum && total->idle_state_count < PRCB_IDLE_STATES_MAX) {
            sum = &total->idle_states[total->idle_state_count++];
            memcpy(sum->name, state->name, sizeof(sum->name));
        }
        if (sum) {
            sum->entries += state->entries;
            sum->residency_ns += state->residency_ns;
        }
    }
}

static void add(struct prcb_processor *total, const struct prcb_processor *p)
{
    total->present &= p->present;
    figures_add(processor_figures, total, p);
    add_states(total, p);
}

/* Sums what was online. A sum has no frequency. */
static void sum_up(struct table *t)
{
    const struct cpu_samples *samples = t->report->samples;
    bool any = false;

    memset(&t->total, 0, sizeof(t->total));
    t->total.present = ~figures_alone(processor_figures);
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        struct prcb_processor p;

        cpu_samples_delta(samples, t->report->since, i, &p);
        if (processor_was_offline(&p))
            continue;
        t->any |= p.present;
        add(&t->total, &p);
        any = true;
    }
    if (!any)
        t->total.present = 0;
}

/* ---- lines --------------------------------------------------------------- */

/* Values of the moment are left out if no processor has them. */
static bool shown(const struct table *t, const struct figure *figure)
{
    return figure->shown & FIGURE_CPU && figure->heading &&
           (figure->kind != FIGURE_GAUGE || t->any & figure->present);
}

/* Writes "100.00", millions in a second with a fraction, "10000". */
static int width(const struct figure *figure)
{
    return figure->kind == FIGURE_PART ? 8 : figure->kind == FIGURE_COUNTER ? WIDTH : 7;
}

/* Writes parts as a share of the time, counters by the second. */
static void write_cell(const struct table *t, const struct figure *figure,
                       const struct prcb_processor *p, uint64_t wall_ns)
{
    uint64_t value = figure_get(figure, p);
    char cell[32] = "-";

    if (!(p->present & figure->present))
        ;
    else if (figure->kind == FIGURE_PART && p->wall_ns)
        snprintf(cell, sizeof(cell), "%.2f", 100.0 * (double)value / (double)p->wall_ns);
    else if (figure->kind == FIGURE_COUNTER && wall_ns)
        snprintf(cell, sizeof(cell), "%.1f", (double)value * NS_PER_S / (double)wall_ns);
    else if (figure->unit == FIGURE_PERMILLE)
        snprintf(cell, sizeof(cell), "%.1f", (double)value / 10.0);
    else if (figure->kind == FIGURE_GAUGE)
        snprintf(cell, sizeof(cell), "%" PRIu64, value);
    fprintf(t->out, "%*s", width(figure), cell);
}

static void write_label(const struct table *t, const char *label)
{
    fprintf(t->out, "%-8s %6s", t->time, label);
}

static void write_figures(const struct table *t, const char *label, const struct prcb_processor *p)
{
    write_label(t, label);
    for (const struct figure *figure = processor_figures; figure->name; figure++) {
        if (shown(t, figure))
            write_cell(t, figure, p, t->wall_ns);
    }
    fputs(p->flags & PRCB_CPU_ONLINE || !p->size ? "\n" : "  offline\n", t->out);
}

static void write_states(const struct table *t, const char *label, const struct prcb_processor *p)
{
    write_label(t, label);
    for (size_t i = 0; i < t->states.count; i++) {
        const struct prcb_idle_state *state = cpu_state_find(p, t->states.names[i]);
        char share[32] = "-", rate[32] = "-";

        if (state && p->wall_ns)
            snprintf(share, sizeof(share), "%.2f",
                     100.0 * (double)state->residency_ns / (double)p->wall_ns);
        if (state && t->wall_ns)
            snprintf(rate, sizeof(rate), "%.1f",
                     (double)state->entries * NS_PER_S / (double)t->wall_ns);
        fprintf(t->out, "%*s%*s", WIDTH, share, WIDTH, rate);
    }
    fputc('\n', t->out);
}

static void write_nt(const struct table *t, const char *label, const struct prcb_processor *p)
{
    const struct prcb_nt_member *member;

    write_label(t, label);
    for (size_t i = 0; (member = cpu_nt_member(i)); i++) {
        if (!processor_was_offline(p) && !cpu_nt_absent(member))
            fprintf(t->out, "%16" PRIu64,
                    cpu_nt_delta(t->report->nt, t->report->since, p->number, member));
        else
            fprintf(t->out, "%16s", "-");
    }
    fputs(p->flags & PRCB_CPU_ONLINE ? "\n" : "  offline\n", t->out);
}

/* Writes each processor's line; those that were offline and follow each other share one. */
static void write_rows(const struct table *t,
                       void (*write)(const struct table *t, const char *label,
                                     const struct prcb_processor *p),
                       bool with_offline)
{
    const struct cpu_samples *samples = t->report->samples;
    uint32_t i = cpu_samples_next(samples, 0), last;

    while (i < samples->count) {
        struct prcb_processor p, next;
        char label[32];

        cpu_samples_delta(samples, t->report->since, i, &p);
        last = i;
        while (processor_was_offline(&p) && last + 1 < samples->count &&
               samples->chosen[last + 1]) {
            cpu_samples_delta(samples, t->report->since, last + 1, &next);
            if (!processor_was_offline(&next))
                break;
            last++;
        }
        if (last > i)
            snprintf(label, sizeof(label), "%" PRIu32 "-%" PRIu32, i, last);
        else
            snprintf(label, sizeof(label), "%" PRIu32, i);
        if (processor_was_offline(&p))
            p.present = 0;
        if (with_offline || !processor_was_offline(&p))
            write(t, label, &p);
        i = cpu_samples_next(samples, last + 1);
    }
}

/* ---- parts of the report ------------------------------------------------- */

static void write_main(const struct table *t)
{
    fputc('\n', t->out);
    write_label(t, "CPU");
    for (const struct figure *figure = processor_figures; figure->name; figure++) {
        if (shown(t, figure))
            fprintf(t->out, "%*s", width(figure), figure->heading);
    }
    fputc('\n', t->out);
    write_figures(t, "all", &t->total);
    write_rows(t, write_figures, true);
}

/* Whether there are idle states to show: a single state that is all of idleness is in the main
 * table already. */
static bool has_states(const struct table *t)
{
    return t->states.count > 1 || (t->states.count == 1 && strcmp(t->states.names[0], "idle"));
}

static void write_idle(const struct table *t)
{
    char title[32];

    fputc('\n', t->out);
    write_label(t, "CPU");
    for (size_t i = 0; i < t->states.count; i++) {
        snprintf(title, sizeof(title), "%%%.8s", t->states.names[i]);
        fprintf(t->out, "%*s", WIDTH, title);
        snprintf(title, sizeof(title), "%.7s/s", t->states.names[i]);
        fprintf(t->out, "%*s", WIDTH, title);
    }
    fputc('\n', t->out);
    write_states(t, "all", &t->total);
    write_rows(t, write_states, false);
}

static void write_nt_table(const struct table *t)
{
    const struct prcb_nt_member *member;

    fputc('\n', t->out);
    write_label(t, "CPU");
    for (size_t i = 0; (member = cpu_nt_member(i)); i++)
        fprintf(t->out, "%16s", member->name);
    fputc('\n', t->out);
    write_rows(t, write_nt, true);
}

static void set_time(struct table *t)
{
    time_t now = time(NULL);
    struct tm local;

    if (t->report->since == CPU_SINCE_START && !t->report->first)
        snprintf(t->time, sizeof(t->time), t->report->nt ? "Total" : "Average");
    else if (localtime_r(&now, &local))
        strftime(t->time, sizeof(t->time), "%H:%M:%S", &local);
}

void cpu_table_write(FILE *out, const struct cpu_report *report)
{
    struct table t = {
        .out = out, .report = report, .wall_ns = cpu_samples_wall(report->samples, report->since)};

    set_time(&t);
    sum_up(&t);
    cpu_states_collect(report->samples, &t.states);
    if (report->first)
        cpu_title_write(out, report->samples, cpu_report_tier(report));
    if (report->nt) {
        write_nt_table(&t);
        return;
    }
    write_main(&t);
    if (has_states(&t))
        write_idle(&t);
}
