/* SPDX-License-Identifier: BSD-2-Clause */
#include "by_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* Sorts the samples by thread; those of no known thread are left out. */
static struct page_sample *sort_samples(const struct page_data *d, size_t *places)
{
    size_t threads = d->recording->thread_count, at = 0;
    struct page_sample *sorted = malloc((d->sample_count + 1) * sizeof(*sorted));

    for (size_t i = 0; i < d->sample_count; i++)
        places[d->samples[i].thread]++;
    for (size_t i = 0; i <= threads; i++) {
        size_t count = places[i];

        places[i] = at;
        at += count;
    }
    for (size_t i = 0; sorted && i < d->sample_count; i++)
        sorted[places[d->samples[i].thread]++] = d->samples[i];
    return sorted; /* places[i] is now where the next thread's samples begin */
}

int page_threads(const struct page_data *d, int (*fn)(const struct page_thread *thread, void *ctx),
                 void *ctx)
{
    size_t *places = calloc(d->recording->thread_count + 1, sizeof(*places)), at = 0;
    struct page_sample *samples = places ? sort_samples(d, places) : NULL;
    int result = samples ? 0 : -ENOMEM;

    for (size_t i = 0; i < d->recording->thread_count && !result; i++) {
        size_t first = at, sample = i ? places[i - 1] : 0;
        struct page_thread thread = {.index = i, .samples = samples + sample};

        while (at < d->stretch_count && d->stretches[at].thread == i)
            at++;
        thread.stretches = d->stretches + first;
        thread.stretch_count = at - first;
        thread.sample_count = places[i] - sample;
        if (thread.stretch_count || thread.sample_count)
            result = fn(&thread, ctx);
    }
    free(samples);
    free(places);
    return result;
}

void page_put_text(FILE *out, const char *text)
{
    fputc('"', out);
    text_print(out, TEXT_JSON, text);
    fputc('"', out);
}

void page_put_function(FILE *out, const struct page_data *data, uint32_t code)
{
    const struct recording *r = data->recording;
    const struct recorded_function *function =
        code >> 1 < r->function_count ? &r->functions[code >> 1] : NULL;

    fputc('"', out);
    text_print(out, TEXT_JSON, function ? function->name : "[unknown]");
    if (function && !strcmp(function->name, "[unknown]") && *function->file) {
        fputc(' ', out);
        text_print(out, TEXT_JSON, function->file);
    }
    fputc('"', out);
}

void page_put_state(FILE *out, const struct page_state *state)
{
    fputs(state->kind == 'r'   ? "\"running"
          : state->kind == 'q' ? "\"ready"
          : state->kind == 'w' ? "\"waiting"
                               : "\"not known",
          out);
    if (*state->cause) {
        fputs(state->kind == 'q' ? ", after " : ": ", out);
        text_print(out, TEXT_JSON, state->cause);
    }
    fputc('"', out);
}
