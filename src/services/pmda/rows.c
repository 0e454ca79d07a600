/* SPDX-License-Identifier: BSD-2-Clause */
#include "rows.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cause.h"

#define ROWS_MAX    256
#define FIRST_CLASS 16
#define FIRST_COUNT                                                                                \
    256 /* in a cgroup, times have the numbers of their causes; counts have these plus 256 */
#define TIME_UNITS  PMDA_PMUNITS(0, 1, 0, 0, PM_TIME_NSEC, 0)
#define COUNT_UNITS PMDA_PMUNITS(0, 0, 1, 0, 0, PM_COUNT_ONE)

struct row rows[ROWS_MAX];
size_t row_count;

/* Classes stand in the order of their numbers, which stay: append new ones. */
static const enum cause_class classes[] = {
    CAUSE_CLASS_SLEEP,  CAUSE_CLASS_LOCK, CAUSE_CLASS_EVENT, CAUSE_CLASS_IPC,
    CAUSE_CLASS_NET,    CAUSE_CLASS_DISK, CAUSE_CLASS_CHILD, CAUSE_CLASS_STOPPED,
    CAUSE_CLASS_KERNEL, CAUSE_CLASS_OTHER};
_Static_assert(sizeof(classes) / sizeof(classes[0]) == CAUSE_CLASSES, "a class has no number");

static const struct metrics_family *family_of(const char *name)
{
    for (const struct metrics_family *f = metrics_families; name && f->name; f++) {
        if (!strcmp(f->name, name))
            return f;
    }
    if (!name)
        return NULL;
    fprintf(stderr, "pmdaprcb: unknown family %s\n", name);
    abort(); /* rows.def has a mistake: no build passes its tests with it */
}

void rows_component(const char *text, char *ret, size_t size)
{
    size_t i;

    for (i = 0; text[i] && i + 1 < size; i++)
        ret[i] = isalnum((unsigned char)text[i]) ? text[i] : '_';
    ret[i] = '\0';
}

static pmUnits units_of(const struct row *row)
{
    static const pmUnits time = TIME_UNITS, count = COUNT_UNITS;
    static const pmUnits seconds = PMDA_PMUNITS(0, 1, 0, 0, PM_TIME_SEC, 0);
    static const pmUnits mhz = PMDA_PMUNITS(0, -1, 1, 0, PM_TIME_USEC, PM_COUNT_ONE);
    static const pmUnits none = PMDA_PMUNITS(0, 0, 0, 0, 0, 0);

    switch (row->kind) {
    case ROW_SECONDS:
        return seconds;
    case ROW_MHZ:
        return mhz;
    case ROW_TEXT:
    case ROW_REAL:
        return none;
    case ROW_THREAD:
        return row->item == THREAD_SWITCHES ? count : row->item == THREAD_OPEN_CAUSE ? none : time;
    case ROW_VALUE:
        break;
    }
    return row->family->unit == METRICS_SECONDS   ? time
           : row->family->type == METRICS_COUNTER ? count
                                                  : none;
}

static struct row *add(struct row row, const char *name, const char *more)
{
    bool text = row.kind == ROW_TEXT || (row.kind == ROW_THREAD && row.item == THREAD_OPEN_CAUSE);
    bool counter = row.kind == ROW_THREAD
                       ? !text && row.item != THREAD_OPEN_TIME
                       : row.kind == ROW_VALUE && row.family->type == METRICS_COUNTER;
    struct row *at = &rows[row_count++];

    if (row_count > ROWS_MAX)
        abort();
    *at = row;
    at->type = text                                          ? PM_TYPE_STRING
               : row.kind == ROW_MHZ || row.kind == ROW_REAL ? PM_TYPE_DOUBLE
                                                             : PM_TYPE_U64;
    at->semantics = counter                           ? PM_SEM_COUNTER
                    : text || row.kind == ROW_SECONDS ? PM_SEM_DISCRETE
                                                      : PM_SEM_INSTANT;
    at->units = units_of(&row);
    snprintf(at->name, sizeof(at->name), "%s", name);
    snprintf(at->help, sizeof(at->help), "%s%s%s", row.family ? row.family->help : "",
             row.family && more ? " " : "", more ? more : "");
    return at;
}

static void add_classes(unsigned cluster, const char *prefix, const char *family,
                        enum row_indom indom)
{
    for (size_t i = 0; i < CAUSE_CLASSES; i++) {
        const char *class = cause_class_names[classes[i]];
        char name[64], more[64];

        snprintf(name, sizeof(name), "%s.wait.%s", prefix, class);
        snprintf(more, sizeof(more), "Class: %s.", class);
        add((struct row){.cluster = cluster,
                         .item = FIRST_CLASS + (unsigned)i,
                         .family = family_of(family),
                         .label = "class",
                         .value = class,
                         .kind = ROW_VALUE,
                         .indom = indom},
            name, more);
    }
}

static void add_cause(uint32_t item, const char *name, const char *family)
{
    const struct prcb_cause_info *info = prcb_cause_info(item % FIRST_COUNT);

    add((struct row){.cluster = CLUSTER_CGROUP_CAUSE,
                     .item = item,
                     .family = family_of(family),
                     .label = "cause",
                     .value = info->name,
                     .kind = ROW_VALUE,
                     .indom = INDOM_CGROUP},
        name, info->words);
}

void rows_init(void)
{
#define R(cluster_, item_, name_, family_, label_, value_, kind_, indom_, more_)                   \
    add((struct row){.cluster = CLUSTER_##cluster_,                                                \
                     .item = item_,                                                                \
                     .family = family_of(family_),                                                 \
                     .label = label_,                                                              \
                     .value = value_,                                                              \
                     .kind = ROW_##kind_,                                                          \
                     .indom = INDOM_##indom_},                                                     \
        name_, more_);
#include "rows.def"
    add_classes(CLUSTER_CGROUP, "cgroup", "prcb_cgroup_wait_seconds", INDOM_CGROUP);
    add_classes(CLUSTER_NAME, "name", "prcb_name_wait_seconds", INDOM_NAME);
    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        const struct prcb_cause_info *info = prcb_cause_info(cause);
        char name[64], component[32];

        if (!info || info->kind != PRCB_KIND_WAIT)
            continue;
        rows_component(info->name, component, sizeof(component));
        snprintf(name, sizeof(name), "cgroup.cause.time.%s", component);
        add_cause(cause, name, "prcb_cgroup_cause_seconds");
        snprintf(name, sizeof(name), "cgroup.cause.count.%s", component);
        add_cause(cause + FIRST_COUNT, name, "prcb_cgroup_cause_switches");
    }
}
