/* SPDX-License-Identifier: BSD-2-Clause
 *
 * https://www.speedscope.app/file-format-schema.json: frames that all profiles share, functions and
 * behind them the states; a profile is a list of stacks, outermost first, and of weights.
 */
#include "viewers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "by_thread.h"
#include "error.h"

struct scope {
    const struct page_data *data;
    FILE *out;
    uint32_t *path; /* of a stack */
    bool begun;     /* a profile was written */
};

static size_t functions(const struct scope *s)
{
    return s->data->recording->function_count + 1;
}

static void put_frames(const struct scope *s)
{
    const struct recording *r = s->data->recording;

    for (size_t i = 0; i < functions(s); i++) {
        fputs(i ? ",\n{\"name\":" : "\n{\"name\":", s->out);
        page_put_function(s->out, s->data, (uint32_t)(2 * i));
        if (i < r->function_count && *r->functions[i].file) {
            fputs(",\"file\":", s->out);
            page_put_text(s->out, r->functions[i].file);
        }
        fputc('}', s->out);
    }
    for (size_t i = 0; i < s->data->state_count; i++) {
        fputs(",\n{\"name\":", s->out);
        page_put_state(s->out, &s->data->states[i]);
        fputc('}', s->out);
    }
}

/* state 0: none. */
static void put_stack(const struct scope *s, size_t state, uint32_t node)
{
    size_t depth = 0;
    const char *between = "";

    for (; node; node = s->data->nodes[2 * node])
        s->path[depth++] = s->data->nodes[2 * node + 1] >> 1;
    fputc('[', s->out);
    if (state) {
        fprintf(s->out, "%zu", functions(s) + state);
        between = ",";
    }
    for (; depth; between = ",")
        fprintf(s->out, "%s%" PRIu32, between, s->path[--depth]);
    fputc(']', s->out);
}

static void begin_profile(struct scope *s, size_t thread, const char *what, const char *unit,
                          uint64_t total)
{
    const struct recorded_thread *row = &s->data->recording->threads[thread];
    char *name = NULL;

    if (asprintf(&name, "%s (%" PRId64 ")%s", row->name, row->tid, what) < 0)
        name = NULL;
    fputs(s->begun ? ",\n{\"type\":\"sampled\",\"name\":" : "\n{\"type\":\"sampled\",\"name\":",
          s->out);
    page_put_text(s->out, name ? name : "");
    fprintf(s->out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\"samples\":[",
            unit, total);
    s->begun = true;
    free(name);
}

static void put_samples(struct scope *s, const struct page_thread *thread)
{
    uint64_t total = 0;

    for (size_t i = 0; i < thread->sample_count; i++)
        total += thread->samples[i].weight;
    if (!thread->sample_count)
        return;
    begin_profile(s, thread->index, "", s->data->report.weight_is_ns ? "nanoseconds" : "none",
                  total);
    for (size_t i = 0; i < thread->sample_count; i++) {
        fputs(i ? "," : "", s->out);
        put_stack(s, 0, thread->samples[i].node);
    }
    fputs("],\"weights\":[", s->out);
    for (size_t i = 0; i < thread->sample_count; i++)
        fprintf(s->out, "%s%" PRIu64, i ? "," : "", thread->samples[i].weight);
    fputs("]}", s->out);
}

static bool is_off(const struct page_data *d, const struct page_stretch *stretch)
{
    return d->states[stretch->state].kind == 'q' || d->states[stretch->state].kind == 'w';
}

static void put_off(struct scope *s, const struct page_thread *thread)
{
    const struct page_stretch *end = thread->stretches + thread->stretch_count;
    const char *between = "";
    uint64_t total = 0;

    for (const struct page_stretch *at = thread->stretches; at < end; at++)
        total += is_off(s->data, at) ? at->ns : 0;
    if (!total)
        return;
    begin_profile(s, thread->index, ", off the processor", "nanoseconds", total);
    for (const struct page_stretch *at = thread->stretches; at < end; at++) {
        if (!is_off(s->data, at))
            continue;
        fputs(between, s->out);
        put_stack(s, at->state, at->place >> 1);
        between = ",";
    }
    fputs("],\"weights\":[", s->out);
    between = "";
    for (const struct page_stretch *at = thread->stretches; at < end; at++) {
        if (!is_off(s->data, at))
            continue;
        fprintf(s->out, "%s%" PRIu64, between, at->ns);
        between = ",";
    }
    fputs("]}", s->out);
}

static int put_thread(const struct page_thread *thread, void *ctx)
{
    put_samples(ctx, thread);
    put_off(ctx, thread);
    return 0;
}

int export_speedscope(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    struct page_names names = {0};
    struct page_data data;
    struct scope s = {.data = &data, .out = out};
    int result = page_data_open(recording, &names, &data, err);

    if (result)
        return result;
    s.path = malloc((data.node_count + 1) * sizeof(*s.path));
    if (s.path) {
        fputs("{\"$schema\":\"https://www.speedscope.app/"
              "file-format-schema.json\",\"exporter\":\"prcb " PRCB_VERSION
              "\",\"name\":\"prcb\",\"activeProfileIndex\":0,\"shared\":{\"frames\":[",
              out);
        put_frames(&s);
        fputs("]},\n\"profiles\":[", out);
        result = page_threads(&data, put_thread, &s);
        fputs("]}\n", out);
    }
    free(s.path);
    page_data_close(&data);
    return !s.path || result ? prcb_fail(err, -ENOMEM, "out of memory") : 0;
}
