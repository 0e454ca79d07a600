/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The document of a benchmark: {"format": "prcb-bench", "format_version": 1, ...}. Runs are kept
 * whole, so that a later comparison has what this one had.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "bench_report.h"
#include "error.h"
#include "json_doc.h"
#include "read_file.h"

#define FILE_MAX  (64u << 20)
#define VALUE_MAX 1e18 /* ns: 30 years */

/* ---- writing -------------------------------------------------------------------- */

/* null: not known. */
static void put_value(struct json_doc *b, json_object *object, const char *key, double value)
{
    bool known = !isnan(value);

    json_doc_put_if(b, object, key, known, known ? json_object_new_double(value) : NULL);
}

static json_object *runs_of(struct json_doc *b, const struct bench_side *side)
{
    json_object *runs = json_object_new_array();

    for (size_t i = 0; i < side->count; i++) {
        json_object *run = json_object_new_object();

        for (unsigned part = 0; part < BENCH_PARTS; part++) {
            double value = side->runs[i].value[part];

            if (bench_part_name(part) && !isnan(value) && (part < BENCH_FIXED || value > 0))
                put_value(b, run, bench_part_name(part), value);
        }
        json_doc_append(b, runs, run);
    }
    return runs;
}

static json_object *sides_of(struct json_doc *b, const struct bench_report *report)
{
    json_object *sides = json_object_new_array();

    for (size_t i = 0; i < report->side_count; i++) {
        json_object *side = json_object_new_object();

        json_doc_put_text(b, side, "name", report->names[i]);
        json_doc_put_text(b, side, "command", report->sides[i].command);
        json_doc_put(b, side, "runs", runs_of(b, &report->sides[i]));
        json_doc_append(b, sides, side);
    }
    return sides;
}

static json_object *parts_of(struct json_doc *b, const struct bench_comparison *c)
{
    static const char *const owners[] = {"program", "machine", "detail", "all"};
    json_object *parts = json_object_new_array();

    for (size_t i = 0; i < c->count; i++) {
        const struct bench_row *row = &c->rows[i];
        json_object *part = json_object_new_object();

        json_doc_put_text(b, part, "name", bench_part_name(row->part));
        json_doc_put_text(b, part, "owner", owners[bench_part_owner(row->part)]);
        json_doc_put_text(b, part, "unit",
                          bench_part_counts(row->part)                   ? "count"
                          : c->options.shares && row->part != BENCH_WALL ? "share"
                                                                         : "ns");
        put_value(b, part, "a", row->result.median[0]);
        put_value(b, part, "b", row->result.median[1]);
        put_value(b, part, "change", row->result.shift);
        put_value(b, part, "low", row->result.low);
        put_value(b, part, "high", row->result.high);
        put_value(b, part, "p", row->result.p);
        json_doc_put_text(b, part, "verdict", bench_verdict_names[row->verdict]);
        json_doc_append(b, parts, part);
    }
    return parts;
}

static json_object *comparison_of(struct json_doc *b, const struct bench_report *report)
{
    json_object *comparison = json_object_new_object(), *places = json_object_new_array();
    const struct bench_comparison *c = report->comparison;

    put_value(b, comparison, "alpha", c->options.alpha);
    put_value(b, comparison, "matters", c->options.matters);
    json_doc_put_bool(b, comparison, "by_turns", !c->options.apart);
    json_doc_put_bool(b, comparison, "shares", c->options.shares);
    json_doc_put_bool(b, comparison, "machine_changed", c->host_changed);
    json_doc_put_member(b, comparison, "runs_needed", c->enough, c->enough != 0);
    json_doc_put(b, comparison, "parts", parts_of(b, c));
    for (size_t i = 0; i < report->place_count; i++) {
        json_object *place = json_object_new_object();

        json_doc_put_text(b, place, "cause", bench_part_name(report->places[i].part));
        json_doc_put_text(b, place, "function", report->places[i].function);
        put_value(b, place, "a_ns", report->places[i].ns[0]);
        put_value(b, place, "b_ns", report->places[i].ns[1]);
        json_doc_append(b, places, place);
    }
    json_doc_put(b, comparison, "places", places);
    return comparison;
}

int bench_write_json(const struct bench_report *report, FILE *out)
{
    struct json_doc b = {0};
    json_object *document = json_doc_new(&b, JSON_BENCH), *machine = json_object_new_object();
    json_object *conditions = json_object_new_array();
    char *sentence = bench_sentence(report);

    b.failed |= !sentence;
    json_doc_put_text(&b, document, "sentence", sentence);
    free(sentence);
    json_doc_put_text(&b, machine, "model", report->machine->model);
    json_doc_put_text(&b, machine, "kernel", report->machine->kernel);
    json_doc_put_text(&b, machine, "tier", report->machine->tier);
    json_doc_put_number(&b, machine, "processors", report->machine->processors);
    json_doc_put(&b, document, "machine", machine);
    json_doc_put_number(&b, document, "warm_ups", report->warm_ups);
    json_doc_put(&b, document, "sides", sides_of(&b, report));
    json_doc_put_if(&b, document, "comparison", report->comparison != NULL,
                    report->comparison ? comparison_of(&b, report) : NULL);
    for (size_t i = 0; i < report->condition_count; i++) {
        json_object *condition = json_object_new_object();

        json_doc_put_text(&b, condition, "condition", report->conditions[i]);
        json_doc_put_bool(&b, condition, "holds", report->holds[i]);
        json_doc_append(&b, conditions, condition);
    }
    json_doc_put(&b, document, "conditions", conditions);
    return json_doc_write(&b, document, out);
}

/* ---- reading -------------------------------------------------------------------- */

static json_object *member(json_object *object, const char *name, enum json_type type)
{
    json_object *value = NULL;

    return json_object_is_type(object, json_type_object) &&
                   json_object_object_get_ex(object, name, &value) &&
                   json_object_is_type(value, type)
               ? value
               : NULL;
}

static void take_text(json_object *object, const char *name, char *ret, size_t size)
{
    json_object *text = member(object, name, json_type_string);

    snprintf(ret, size, "%s", text ? json_object_get_string(text) : "");
}

/* What a run does not have of the causes did not happen, if it has causes at all. */
static bool take_run(json_object *object, bool causes, struct bench_run *ret)
{
    if (!json_object_is_type(object, json_type_object))
        return false;
    for (unsigned part = 0; part < BENCH_PARTS; part++) {
        const char *name = bench_part_name(part);
        json_object *value = NULL;

        ret->value[part] = causes && part >= BENCH_FIXED ? 0 : NAN;
        if (!name || !json_object_object_get_ex(object, name, &value))
            continue;
        ret->value[part] = json_object_get_double(value);
        if (!(ret->value[part] >= 0 && ret->value[part] <= VALUE_MAX))
            return false;
    }
    return ret->value[BENCH_WALL] > 0;
}

static int take_side(json_object *side, bool causes, struct bench_side *ret)
{
    json_object *runs = member(side, "runs", json_type_array);
    json_object *command = member(side, "command", json_type_string);
    size_t count = runs ? json_object_array_length(runs) : 0;

    if (count < 2 || count > RANK_VALUES || !command)
        return -EINVAL;
    ret->command = strdup(json_object_get_string(command));
    ret->runs = calloc(count, sizeof(*ret->runs));
    if (!ret->command || !ret->runs)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (!take_run(json_object_array_get_idx(runs, i), causes, &ret->runs[i]))
            return -EINVAL;
    }
    ret->count = count;
    return 0;
}

static int take_document(json_object *document, struct bench_side *ret,
                         struct bench_machine *ret_machine)
{
    json_object *format = member(document, "format", json_type_string);
    json_object *version = member(document, "format_version", json_type_int);
    /* Files had "version" alone, before other documents had a format. */
    json_object *older = member(document, "version", json_type_int);
    json_object *machine = member(document, "machine", json_type_object);
    json_object *sides = member(document, "sides", json_type_array);
    json_object *processors = member(machine, "processors", json_type_int);

    version = version ? version : older;
    if (!format || strcmp(json_object_get_string(format), json_formats[JSON_BENCH].name) ||
        !version || json_object_get_uint64(version) != json_formats[JSON_BENCH].version ||
        !machine || !sides || !processors || !json_object_array_length(sides))
        return -EINVAL;
    take_text(machine, "model", ret_machine->model, sizeof(ret_machine->model));
    take_text(machine, "kernel", ret_machine->kernel, sizeof(ret_machine->kernel));
    take_text(machine, "tier", ret_machine->tier, sizeof(ret_machine->tier));
    ret_machine->processors = (unsigned)json_object_get_int64(processors);
    return take_side(json_object_array_get_idx(sides, 0), strcmp(ret_machine->tier, "perf") != 0,
                     ret);
}

int bench_parse(const char *text, size_t length, struct bench_side *ret,
                struct bench_machine *ret_machine)
{
    struct json_tokener *tokener = length <= FILE_MAX ? json_tokener_new() : NULL;
    struct bench_machine machine = {.model = ""};
    struct bench_side side = {0};
    json_object *document;
    int result;

    if (!tokener)
        return length <= FILE_MAX ? -ENOMEM : -EINVAL;
    document = json_tokener_parse_ex(tokener, text, (int)length);
    result = document ? take_document(document, &side, &machine) : -EINVAL;
    json_object_put(document);
    json_tokener_free(tokener);
    if (result) {
        bench_side_deinit(&side);
        return result;
    }
    *ret = side;
    *ret_machine = machine;
    return 0;
}

int bench_read(const char *path, struct bench_side *ret, struct bench_machine *ret_machine,
               struct prcb_error *err)
{
    size_t length = 0;
    char *text = NULL;
    int result = read_file(path, FILE_MAX, &text, &length);

    if (!result)
        result = bench_parse(text, length, ret, ret_machine);
    free(text);
    return result == -EINVAL ? prcb_fail(err, result,
                                         "%s: this is no file that prcb bench --save wrote, or it "
                                         "is damaged: measure again",
                                         path)
           : result          ? prcb_fail(err, result, "%s: %s", path, strerror(-result))
                             : 0;
}
