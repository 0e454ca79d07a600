/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb list` shows what can be counted here. It opens each event once on the calling thread, so
 * that what it prints is what a counter would meet.
 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <prcb/counters.h>
#include <prcb/nt.h>

#include "json_doc.h"

struct listing {
    struct output output;
    const char *word;           /* only what contains it; NULL: all */
    struct json_object *events; /* NULL: a table */
    struct json_object *sources;
    struct json_doc doc;
    size_t shown;
};

/* Returns the source of an event if it counts now, or 0 and the reason. */
static uint32_t look(const char *event, char *ret_reason, size_t size)
{
    struct prcb_error err = {0};
    uint32_t source = PRCB_COUNTER_NONE;
    size_t name = strlen(event);

    ret_reason[0] = '\0';
    if (!prcb_counter_check(event, &source, &err))
        return source;
    /* The error begins with the name, which the line shows already. */
    snprintf(ret_reason, size, "%s",
             strncmp(err.text, event, name) || strncmp(err.text + name, ": ", 2)
                 ? err.text
                 : err.text + name + 2);
    return PRCB_COUNTER_NONE;
}

static const char *backing(uint32_t source)
{
    return source == PRCB_COUNTER_SOFTWARE   ? "software"
           : source == PRCB_COUNTER_HARDWARE ? "hardware"
                                             : "-";
}

static bool wanted(const struct listing *listing, const char *name, const char *other)
{
    return !listing->word || strcasestr(name, listing->word) ||
           (other && strcasestr(other, listing->word));
}

/* "" is none. */
static const char *word(const char *value)
{
    return value && *value ? value : NULL;
}

static void show_event(struct listing *listing, const char *name, const char *alias)
{
    char reason[512];
    uint32_t source = look(name, reason, sizeof(reason));

    if (listing->events) {
        struct json_object *row = json_object_new_object();

        json_doc_put_text(&listing->doc, row, "name", word(name));
        json_doc_put_text(&listing->doc, row, "alias", word(alias));
        json_doc_put_text(&listing->doc, row, "backing", source ? backing(source) : NULL);
        json_doc_put_text(&listing->doc, row, "reason", word(reason));
        json_doc_append(&listing->doc, listing->events, row);
    } else {
        if (!listing->shown++)
            fprintf(listing->output.stream, "%-26s  %-20s  %s\n", "EVENT", "OR", "COUNTED BY");
        fprintf(listing->output.stream, "%-26s  %-20s  %s%s%s\n", name, alias ? alias : "",
                backing(source), source ? "" : "  ", reason);
    }
}

static void show_events(struct listing *listing)
{
    const struct prcb_counter_name *row;

    listing->shown = 0;
    for (size_t i = 0; (row = prcb_counter_name(i)); i++) {
        if (wanted(listing, row->name, row->alias))
            show_event(listing, row->name, row->alias);
    }
}

static void show_source(struct listing *listing, const struct prcb_profile_source *row)
{
    char reason[512] = "nothing here means the same", number[24];
    uint32_t source = row->event ? look(row->event, reason, sizeof(reason)) : PRCB_COUNTER_NONE;

    snprintf(number, sizeof(number), row->number < 24 ? "%" PRIu64 : "0x%" PRIx64, row->number);
    if (listing->sources) {
        struct json_object *object = json_object_new_object();

        json_doc_put_number(&listing->doc, object, "number", row->number);
        json_doc_put_text(&listing->doc, object, "name", word(row->name));
        json_doc_put_text(&listing->doc, object, "event", word(row->event));
        json_doc_put_text(&listing->doc, object, "backing", source ? backing(source) : NULL);
        json_doc_put_text(&listing->doc, object, "reason", word(reason));
        json_doc_append(&listing->doc, listing->sources, object);
    } else {
        if (!listing->shown++)
            fprintf(listing->output.stream, "\n%-10s  %-28s  %-24s  %s\n", "SOURCE",
                    "KPROFILE_SOURCE", "EVENT", "COUNTED BY");
        fprintf(listing->output.stream, "%-10s  %-28s  %-24s  %s%s%s\n", number,
                row->name ? row->name : "", row->event ? row->event : "-", backing(source),
                source ? "" : "  ", reason);
    }
}

static void show_sources(struct listing *listing)
{
    const struct prcb_profile_source *row;

    listing->shown = 0;
    for (size_t i = 0; (row = prcb_profile_source(i)); i++) {
        if (wanted(listing, row->name ? row->name : row->event, row->event))
            show_source(listing, row);
    }
}

static int show_pfm(const char *name, const char *words, void *ctx)
{
    struct listing *listing = ctx;

    if (!wanted(listing, name, words))
        return 0;
    if (listing->events) {
        struct json_object *row = json_object_new_object();

        json_doc_put_text(&listing->doc, row, "name", word(name));
        json_doc_put_text(&listing->doc, row, "words", word(words));
        json_doc_append(&listing->doc, listing->events, row);
    } else {
        if (!listing->shown++)
            fprintf(listing->output.stream, "\n%-48s  %s\n", "LIBPFM4 EVENT", "COUNTS");
        fprintf(listing->output.stream, "%-48s  %s\n", name, words);
    }
    return 0;
}

static int print_json(const struct cli_command *self, struct listing *listing, bool pfm)
{
    struct json_doc *doc = &listing->doc;
    json_object *top = json_doc_new(doc, JSON_LIST);

    listing->events = json_object_new_array();
    listing->sources = json_object_new_array();
    show_events(listing);
    show_sources(listing);
    json_doc_put(doc, top, "events", listing->events);
    json_doc_put(doc, top, "sources", listing->sources);
    if (pfm) {
        listing->events = json_object_new_array();
        prcb_counter_pfm_walk(show_pfm, listing);
        json_doc_put(doc, top, "libpfm4", listing->events);
    }
    return json_doc_write_pretty(doc, top, listing->output.stream)
               ? cli_error(self, "out of memory")
               : CLI_OK;
}

static void print_tables(struct listing *listing, bool pfm)
{
    size_t shown;

    show_events(listing);
    shown = listing->shown;
    show_sources(listing);
    shown += listing->shown;
    listing->shown = 0;
    if (pfm)
        prcb_counter_pfm_walk(show_pfm, listing);
    if (!listing->word)
        fprintf(listing->output.stream,
                "\nAlso: raw codes (r01c2), PMU/event/ and PMU/term=value/ of %s,\n"
                "and after any name :u (user mode only) or :k (kernel mode only).\n",
                "/sys/bus/event_source/devices");
    else if (!shown && !listing->shown)
        fprintf(listing->output.stream, "nothing here has '%s' in its name\n", listing->word);
}

struct arguments {
    bool json, pfm;
    const char *word;
};

#define AT(member) .at = offsetof(struct arguments, member)
static const struct cli_option options[] = {
    {'j', "json", NULL, "print JSON", AT(json)},
    {0, "libpfm", NULL, "the names that libpfm4 has for this processor, too", AT(pfm)},
    {0},
};

static int take_word(struct cli_parser *parser, void *target)
{
    struct arguments *arguments = target;

    if (arguments->word)
        return cli_usage_error(parser->command, "'%s': one word is enough", parser->value);
    arguments->word = parser->value;
    return CLI_OK;
}

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct cli_parser parser = {
        .command = self, .argc = argc, .argv = argv, .take_word = take_word};
    struct arguments arguments = {0};
    struct listing listing = {0};
    int status;

    if (cli_take_all(&parser, &arguments, &status))
        return status;
    listing.word = arguments.word;
    status = cli_open_output(self, NULL, &listing.output);
    if (status != CLI_OK)
        return status;
    if (arguments.json)
        status = print_json(self, &listing, arguments.pfm);
    else
        print_tables(&listing, arguments.pfm);
    return cli_close_output(self, &listing.output, status);
}

extern const struct cli_command cmd_list;
const struct cli_command cmd_list = {
    .name = "list",
    .synopsis = "[-j] [--libpfm] [WORD]",
    .summary = "which events can be counted here, and what counts them",
    .description =
        "Names the events that `prcb stat -e` takes and the KPROFILE_SOURCE numbers that\n"
        "KeSetHardwareCounterConfiguration takes, each with what counts it on this machine:\n"
        "the kernel (software), the processor (hardware), or nothing (-) and why. With WORD,\n"
        "those that have it in their name.",
    .options = options,
    .examples = "  prcb list\n"
                "  prcb list cache\n"
                "  prcb list --libpfm -j\n",
    .run = run,
};
