/* SPDX-License-Identifier: BSD-2-Clause */
#include "power_report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cpu_json.h"
#include "cpu_report.h"
#include "format.h"
#include "power_image.h"
#include "power_state.h"

/* Returns the state of a processor since the first look. */
static struct power_state state_of(const struct cpu_samples *samples, uint32_t number)
{
    struct power_state s = {.view = samples->view, .now_ns = samples->now_ns};

    cpu_samples_delta(samples, CPU_SINCE_START, number, &s.p);
    return s;
}

/* ---- tables -------------------------------------------------------------- */

#define ROW(name) .row = &processor_figures[PROCESSOR_ROW_##name]

/* A figure with its names in the table and in JSON, which its row may have as well. */
static const struct column {
    const char *title; /* NULL, and a row without heading: in JSON alone */
    const char *key;
    enum figure_unit unit;
    power_figure *get; /* NULL: what the row says */
    const struct figure *row;
} columns[] = {
    {"parked", "parked", FIGURE_NUMBER, power_parked},
    {"idle", ROW(idle_ns)},
    {"entries", "transitions", ROW(idle_entries)},
    {"%busy", "busy_permille", FIGURE_PERMILLE, power_busy},
    {.get = power_performance, ROW(performance_permille)},
    {"%utility", "utility_permille", FIGURE_PERMILLE, power_utility},
    {ROW(mhz)},
    {ROW(limit_mhz)},
    {"max", ROW(max_mhz)},
    {ROW(min_mhz)},
    {ROW(nominal_mhz)},
    {"%throttle", "throttle_permille", FIGURE_PERMILLE, power_throttle},
    {NULL, "limit_permille", FIGURE_PERMILLE, power_limit},
    {ROW(throttles)},
    {ROW(idle_state)},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static bool is_listed(const struct figure *row)
{
    size_t i = 0;

    while (i < COLUMNS && columns[i].row != row)
        i++;
    return i < COLUMNS;
}

/* Returns a row that this command shows and no column has; after the last, the end of the table. */
static const struct figure *other_row(size_t index)
{
    const struct figure *row = figures_shown(processor_figures, FIGURE_POWER);

    while (row->name && (row->kind == FIGURE_LIST || is_listed(row) || index--))
        row = figures_shown(row + 1, FIGURE_POWER);
    return row;
}

/* Returns the columns in their order, then those of other rows; one without a key is the end. */
static struct column column_at(size_t index)
{
    struct column column = {0};

    if (index < COLUMNS)
        column = columns[index];
    else
        column.row = other_row(index - COLUMNS);
    if (column.row) {
        column.title = column.title ? column.title : column.row->heading;
        column.key = column.key ? column.key : column.row->name;
        column.unit = column.row->unit;
    }
    return column;
}

static struct power_value value_of(const struct column *column, const struct power_state *s)
{
    return column->get ? column->get(s)
                       : power_of(s, (enum processor_row)(column->row - processor_figures));
}

static void write_cell(FILE *out, const struct column *column, const struct power_state *s)
{
    struct power_value value = value_of(column, s);
    char cell[FORMAT_CELL] = "-";

    if (value.reason)
        ;
    else if (column->unit == FIGURE_NS)
        format_time(value.value, cell, sizeof(cell));
    else if (column->unit == FIGURE_PERMILLE)
        snprintf(cell, sizeof(cell), "%.1f", (double)value.value / 10.0);
    else if (column->get == power_parked)
        snprintf(cell, sizeof(cell), "%s", value.value ? "yes" : "no");
    else
        snprintf(cell, sizeof(cell), "%" PRIu64, value.value);
    fprintf(out, "%10s", cell);
}

static void write_states(FILE *out, const struct power_state *s)
{
    for (uint32_t i = 0; i < s->p.idle_state_count; i++) {
        const struct prcb_idle_state *state = &s->p.idle_states[i];
        char time[FORMAT_CELL], share[FORMAT_CELL];

        format_time(state->residency_ns, time, sizeof(time));
        format_share(state->residency_ns, s->p.wall_ns, share, sizeof(share));
        fprintf(out, "%5" PRIu32 "  %-16s%10" PRIu64 "%12s%14s\n", s->p.number, state->name,
                state->entries, time, share);
    }
}

void power_table_write(FILE *out, const struct cpu_samples *samples)
{
    struct power_state s;
    struct column column;
    bool heading = false;
    char time[FORMAT_CELL];

    cpu_title_write(out, samples, prcb_processors_tier(samples->view));
    format_time(cpu_samples_wall(samples, CPU_SINCE_START), time, sizeof(time));
    fprintf(out, "over %s\n\n%5s", time, "CPU");
    for (size_t i = 0; (column = column_at(i)).key; i++) {
        if (column.title)
            fprintf(out, "%10s", column.title);
    }
    fputc('\n', out);
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        s = state_of(samples, i);
        fprintf(out, "%5" PRIu32, i);
        for (size_t k = 0; (column = column_at(k)).key; k++) {
            if (column.title)
                write_cell(out, &column, &s);
        }
        fputc('\n', out);
    }
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        s = state_of(samples, i);
        if (power_levels(&s).reason)
            continue;
        if (!heading)
            fprintf(out, "\n%5s  %-16s%10s%12s%14s\n", "CPU", "idle state", "entries", "residency",
                    "of the time");
        heading = true;
        write_states(out, &s);
    }
    fputc('\n', out);
    cpu_notes_write(out, "", samples, FIGURE_POWER);
}

/* ---- JSON ---------------------------------------------------------------- */

static json_object *make_processor(struct json_doc *b, const struct cpu_samples *samples,
                                   uint32_t number)
{
    json_object *object = json_object_new_object(), *absent = json_object_new_object();
    struct power_value states;
    struct column column;
    struct power_state s = state_of(samples, number);

    json_doc_put_number(b, object, "number", number);
    json_doc_put_bool(b, object, "online", s.p.flags & PRCB_CPU_ONLINE);
    for (size_t i = 0; (column = column_at(i)).key; i++) {
        struct power_value value = value_of(&column, &s);

        if (value.reason)
            json_doc_put_text(b, absent, column.key, value.reason);
        if (column.get == power_parked)
            json_doc_put_bool(b, object, column.key, value.value != 0);
        else
            json_doc_put_member(b, object, column.key, value.value, !value.reason);
    }
    json_doc_put_text(b, object, "performance_source", power_performance_source(&s));
    states = power_levels(&s);
    if (states.reason) {
        json_doc_put_null(b, object, "idle_states");
        json_doc_put_text(b, absent, "idle_states", states.reason);
    } else {
        json_doc_put(b, object, "idle_states", cpu_json_states(b, &s.p));
    }
    json_doc_put(b, object, "absent", absent);
    return object;
}

static json_object *make_image(struct json_doc *b, const struct cpu_samples *samples,
                               const struct prcb_layout *layout, uint32_t number)
{
    json_object *object = json_object_new_object();
    struct power_image image;
    struct power_state s = state_of(samples, number);

    json_doc_put_number(b, object, "number", number);
    json_doc_put_bool(b, object, "online", s.p.flags & PRCB_CPU_ONLINE);
    if (power_image_make(layout, &s, &image)) {
        b->failed = true;
        return object;
    }
    json_doc_put(b, object, "members", power_image_json(b, &image));
    json_doc_put(b, object, "bytes", json_doc_hex(image.bytes, image.length));
    power_image_deinit(&image);
    return object;
}

static void put_layout(struct json_doc *b, json_object *top, const struct prcb_layout *layout)
{
    struct prcb_layout_version version = {.size = sizeof(version)};

    prcb_layout_version(layout, &version);
    json_doc_put_text(b, top, "struct", prcb_layout_name(layout));
    json_doc_put_text(b, top, "version", version.name);
    json_doc_put_text(b, top, "arch", prcb_arch_name(prcb_layout_arch(layout)));
    json_doc_put_number(b, top, "size", prcb_layout_size(layout));
    json_doc_put_text(b, top, "source", prcb_layout_source(layout));
    if (*prcb_layout_note(layout))
        json_doc_put_text(b, top, "note", prcb_layout_note(layout));
}

int power_json_write(FILE *out, const struct cpu_samples *samples, const struct prcb_layout *layout)
{
    struct json_doc b = {0};
    json_object *top = json_doc_new(&b, JSON_POWER), *processors = json_object_new_array();

    if (layout)
        put_layout(&b, top, layout);
    json_doc_put_text(&b, top, "tier", prcb_tier_name(prcb_processors_tier(samples->view)));
    json_doc_put_text(&b, top, "tier_reason", prcb_processors_tier_reason(samples->view));
    json_doc_put_number(&b, top, "wall_ns", cpu_samples_wall(samples, CPU_SINCE_START));
    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1))
        json_doc_append(&b, processors,
                        layout ? make_image(&b, samples, layout, i)
                               : make_processor(&b, samples, i));
    json_doc_put(&b, top, "processors", processors);
    return json_doc_write(&b, top, out);
}

/* ---- the structure of a version ------------------------------------------ */

static void write_heading(FILE *out, const struct cpu_samples *samples,
                          const struct prcb_layout *layout, uint32_t number)
{
    struct prcb_layout_version version = {.size = sizeof(version)};
    char time[FORMAT_CELL];

    prcb_layout_version(layout, &version);
    format_time(cpu_samples_wall(samples, CPU_SINCE_START), time, sizeof(time));
    fprintf(out, "%sprocessor %" PRIu32 ", %s tier, over %s: %s, %s (%s), %s, 0x%X bytes%s\n",
            number == cpu_samples_next(samples, 0) ? "" : "\n", number,
            prcb_tier_name(prcb_processors_tier(samples->view)), time, prcb_layout_name(layout),
            version.name, version.release, prcb_arch_name(prcb_layout_arch(layout)),
            prcb_layout_size(layout),
            strcmp(prcb_layout_source(layout), "inferred") ? "" : ", inferred");
}

int power_images_write(FILE *out, const struct cpu_samples *samples,
                       const struct prcb_layout *layout, bool raw)
{

    for (uint32_t i = cpu_samples_next(samples, 0); i < samples->count;
         i = cpu_samples_next(samples, i + 1)) {
        struct power_image image;
        struct power_state s = state_of(samples, i);

        if (power_image_make(layout, &s, &image))
            return -ENOMEM;
        if (raw) {
            fwrite(image.bytes, 1, image.length, out);
        } else {
            write_heading(out, samples, layout, i);
            power_image_print(out, &image);
        }
        power_image_deinit(&image);
    }
    return 0;
}
