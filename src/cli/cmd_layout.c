/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb layout: NT's structures, version by version. Options, the list, and what the forms of output
 * share; the forms are in layout_*.c.
 */
#include "layout_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read_all.h"
#include "text.h"

/* ---- versions ---- */

unsigned int layout_version_count(void)
{
    struct prcb_layout_version v = {.size = sizeof(v)};
    unsigned int n = 0;

    while (!prcb_layout_version_at(n, &v))
        n++;
    return n;
}

bool layout_version_has(unsigned int version, enum prcb_arch arch)
{
    struct prcb_layout_version v = {.size = sizeof(v)};

    if (prcb_layout_version_at(version, &v))
        return false;
    return arch == PRCB_ARCH_X86 ? v.x86 : v.x64;
}

struct prcb_layout *layout_at(const char *structure, unsigned int version, enum prcb_arch arch)
{
    struct prcb_layout *l;

    if (!layout_version_has(version, arch) ||
        prcb_layout_find_id(structure, version, arch, &l, NULL))
        return NULL;
    return l;
}

static const char *without_prefix(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);

    return strncmp(text, prefix, length) ? text : text + length;
}

const char *layout_version_label(unsigned int version, char *buffer, size_t size)
{
    struct prcb_layout_version v = {.size = sizeof(v)};
    const char *dash;

    prcb_layout_version_at(version, &v);
    dash = strchr(v.key, '-');
    if (!strncmp(v.key, "10.0", 4))
        snprintf(buffer, size, "%s", without_prefix(without_prefix(v.release, "Windows "), "10 "));
    else if (!dash)
        snprintf(buffer, size, "%s", v.key);
    else if (!strcmp(dash, "-verylate"))
        snprintf(buffer, size, "very late %.*s", (int)(dash - v.key), v.key);
    else
        snprintf(buffer, size, "%s %.*s", dash + 1, (int)(dash - v.key), v.key);
    return buffer;
}

/* ---- opening ---- */

/* The newest version the structure is known in, for an architecture or any. */
static struct prcb_layout *find_newest(const struct layout_request *r)
{
    for (unsigned int v = layout_version_count(); v-- > 0;) {
        struct prcb_layout *l = NULL;

        if (!r->arch_given || r->arch == PRCB_ARCH_X64)
            l = layout_at(r->structure, v, PRCB_ARCH_X64);
        if (!l && (!r->arch_given || r->arch == PRCB_ARCH_X86))
            l = layout_at(r->structure, v, PRCB_ARCH_X86);
        if (l)
            return l;
    }
    return NULL;
}

/* Of the version asked for; x86 if no architecture was asked for and there is no x64. */
static int find_version(const struct layout_request *r, const char *version,
                        struct prcb_layout **ret, struct prcb_error *err)
{
    int result = prcb_layout_find(r->structure, version, r->arch, ret, err);

    if (result == -ENOENT && !r->arch_given &&
        !prcb_layout_find(r->structure, version, PRCB_ARCH_X86, ret, NULL))
        return 0;
    return result;
}

int layout_open(const struct layout_request *r, const char *version, struct prcb_layout **ret)
{
    struct prcb_layout_version newest = {.size = sizeof(newest)};
    struct prcb_layout *l = version ? NULL : find_newest(r);
    struct prcb_error err;

    if (!version && !l) { /* no version has it: the words of the newest will do */
        prcb_layout_version_at(layout_version_count() - 1, &newest);
        version = newest.name;
    }
    if (!l && find_version(r, version, &l, &err))
        return cli_error(r->command, "%s", err.text);
    if (*prcb_layout_note(l))
        cli_warn(r->command, "%s", prcb_layout_note(l));
    *ret = l;
    return CLI_OK;
}

/* ---- files ---- */

/* Skips `offset` bytes of a stream that may be a pipe; past its end there is nothing to read. */
static void skip(FILE *in, uint64_t offset)
{
    char buffer[4096];
    size_t n = 1;

    if (offset <= INT64_MAX && !fseeko(in, (off_t)offset, SEEK_SET))
        return;
    for (; offset > 0 && n > 0; offset -= n)
        n = fread(buffer, 1, offset < sizeof(buffer) ? (size_t)offset : sizeof(buffer), in);
}

int layout_read_file(const struct layout_request *r, uint64_t offset, size_t limit, uint8_t **ret,
                     size_t *ret_length)
{
    FILE *in = strcmp(r->file, "-") ? fopen(r->file, "rb") : stdin;
    int result;

    if (!in)
        return cli_error(r->command, "%s: %s", r->file, strerror(errno));
    skip(in, offset);
    result = read_all(in, limit, (char **)ret, ret_length);
    if (in != stdin)
        fclose(in);
    if (result)
        return cli_error(r->command, "%s: %s", r->file, strerror(-result));
    return CLI_OK;
}

void layout_put_json(struct json_object *object)
{
    text_print(stdout, TEXT_DOCUMENT,
               json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
                                                          JSON_C_TO_STRING_NOSLASHESCAPE));
    putchar('\n');
    json_object_put(object);
}

/* ---- the list and the definition ---- */

/* First and last version with a layout, either architecture. */
static void print_span(const char *structure)
{
    unsigned int first = layout_version_count(), last = 0;
    char a[64], b[64];

    for (unsigned int v = 0; v < layout_version_count(); v++) {
        struct prcb_layout *l = layout_at(structure, v, PRCB_ARCH_X64);

        l = l ? l : layout_at(structure, v, PRCB_ARCH_X86);
        if (!l)
            continue;
        first = v < first ? v : first;
        last = v;
        prcb_layout_close(l);
    }
    printf("  %-44s %s .. %s\n", structure, layout_version_label(first, a, sizeof(a)),
           layout_version_label(last, b, sizeof(b)));
}

static void print_function(const struct prcb_layout_function *f)
{
    printf("typedef %s (%s *%s)(%s);\n", f->returns, f->convention, f->name, f->parameters);
}

static bool find_function(const char *name, struct prcb_layout_function *ret)
{
    for (unsigned int i = 0; !prcb_layout_function_at(i, ret); i++)
        if (!strcmp(ret->name, name))
            return true;
    return false;
}

static int list(void)
{
    struct prcb_layout_function f = {.size = sizeof(f)};
    struct prcb_layout_version v = {.size = sizeof(v)};
    const char *name;

    puts("structures:");
    for (unsigned int i = 0; (name = prcb_layout_structure_at(i)); i++)
        print_span(name);
    puts("\nfunction types:");
    for (unsigned int i = 0; !prcb_layout_function_at(i, &f); i++) {
        fputs("  ", stdout);
        print_function(&f);
    }
    puts("\nversions:");
    for (unsigned int i = 0; !prcb_layout_version_at(i, &v); i++)
        printf("  %-20s %-18s %-8s %s\n", v.name, v.key,
               v.x86 && v.x64 ? "x86 x64"
               : v.x86        ? "x86"
                              : "x64",
               v.release);
    return CLI_OK;
}

static struct json_object *functions_json(void)
{
    struct json_object *functions = json_object_new_array();
    struct prcb_layout_function f = {.size = sizeof(f)};

    for (unsigned int i = 0; !prcb_layout_function_at(i, &f); i++) {
        struct json_object *o = json_object_new_object();

        json_object_object_add(o, "name", json_object_new_string(f.name));
        json_object_object_add(o, "returns", json_object_new_string(f.returns));
        json_object_object_add(o, "convention", json_object_new_string(f.convention));
        json_object_object_add(o, "parameters", json_object_new_string(f.parameters));
        json_object_object_add(o, "source", json_object_new_string(f.source));
        json_object_array_add(functions, o);
    }
    return functions;
}

static int list_json(void)
{
    struct json_object *root = json_object_new_object();
    struct json_object *structures = json_object_new_array();
    struct json_object *versions = json_object_new_array();
    struct prcb_layout_version v = {.size = sizeof(v)};
    const char *name;

    for (unsigned int i = 0; (name = prcb_layout_structure_at(i)); i++)
        json_object_array_add(structures, json_object_new_string(name));
    for (unsigned int i = 0; !prcb_layout_version_at(i, &v); i++) {
        struct json_object *o = json_object_new_object();

        json_object_object_add(o, "version", json_object_new_string(v.name));
        json_object_object_add(o, "key", json_object_new_string(v.key));
        json_object_object_add(o, "release", json_object_new_string(v.release));
        json_object_object_add(o, "x86", json_object_new_boolean(v.x86));
        json_object_object_add(o, "x64", json_object_new_boolean(v.x64));
        json_object_array_add(versions, o);
    }
    json_object_object_add(root, "structs", structures);
    json_object_object_add(root, "functions", functions_json());
    json_object_object_add(root, "versions", versions);
    layout_put_json(root);
    return CLI_OK;
}

static int print_text(const struct layout_request *r,
                      int (*print)(const struct prcb_layout *layout, FILE *out))
{
    struct prcb_layout *l;
    int result = layout_open(r, r->version, &l);

    if (result)
        return result;
    print(l, stdout);
    prcb_layout_close(l);
    return CLI_OK;
}

static int print_definition(const struct layout_request *r)
{
    struct prcb_layout_function f = {.size = sizeof(f)};

    if (find_function(r->structure, &f)) {
        print_function(&f);
        return CLI_OK;
    }
    return print_text(r, prcb_layout_print);
}

static int print_header(const struct layout_request *r)
{
    return print_text(r, prcb_layout_print_header);
}

/* ---- the command line ---- */

typedef int (*form)(const struct layout_request *r);

/* The forms of output, by the number in their option's row. */
enum { FORM_TABLE = 1, FORM_DIFF, FORM_HEADER, FORM_ISF, FORM_ALL, FORM_DECODE, FORM_ENCODE };
static const form forms[] = {NULL,       layout_table, layout_diff,   print_header,
                             layout_isf, layout_all,   layout_decode, layout_encode};

static int take_form(struct cli_parser *parser, void *target)
{
    struct layout_request *r = target;
    unsigned int wanted = (unsigned int)parser->option->min;

    if (r->form && r->form != wanted)
        return cli_usage_error(r->command, "give one of --table, --diff, --header, --isf, --all, "
                                           "--decode, --encode");
    r->form = wanted;
    if (parser->option->arg)
        r->file = parser->value;
    return CLI_OK;
}

/* --diff takes two words; the parser has taken the first. */
static int take_diff(struct cli_parser *parser, void *target)
{
    struct layout_request *r = target;

    if (parser->index >= parser->argc)
        return cli_usage_error(r->command, "--diff needs two versions");
    r->diff[0] = parser->value;
    r->diff[1] = parser->argv[parser->index++];
    return take_form(parser, target);
}

static int take_arch(struct cli_parser *parser, void *target)
{
    struct layout_request *r = target;
    struct prcb_error err;

    r->arch_given = true;
    return prcb_arch_parse(parser->value, &r->arch, &err)
               ? cli_usage_error(r->command, "%s", err.text)
               : CLI_OK;
}

static int take_offset(struct cli_parser *parser, void *target)
{
    struct layout_request *r = target;

    return cli_parse_u64(parser->value, 0, UINT64_MAX, &r->offset)
               ? cli_usage_error(r->command, "--offset takes a number, not \"%s\"", parser->value)
               : CLI_OK;
}

static int take_structure(struct cli_parser *parser, void *target)
{
    struct layout_request *r = target;

    if (r->structure)
        return cli_usage_error(r->command, "one structure at a time, not also \"%s\"",
                               parser->value);
    r->structure = parser->value;
    return CLI_OK;
}

#define AT(member)   .at = offsetof(struct layout_request, member)
#define FORM(number) .kind = CLI_TAKE, .take = take_form, .min = number
/* clang-format off */
static const struct cli_option options[] = {
    {0, "version", "V", "as of this version: a name (\"XP SP3\", 1909, \"Windows 11 22H2\"),\n"
                        "a version (6.1, \"early 6.0\") or a build (10.0.18362.295)",
     .kind = CLI_TEXT, AT(version)},
    {0, "arch", "A", "x86 or x64 (default: x64 where there is one)",
     .kind = CLI_TAKE, .take = take_arch, .choices = "x86 x64"},
    {'j', "json", NULL, "as JSON", AT(json)},
    {0, "table", NULL, "offsets of every member across all versions, as a Markdown table", FORM(FORM_TABLE)},
    {0, "diff", "V1 V2", "what was added, removed, moved and resized from V1 to V2",
     .kind = CLI_TAKE, .take = take_diff, .min = FORM_DIFF},
    {0, "header", NULL, "a C header: fixed-width types, explicit padding, static asserts", FORM(FORM_HEADER)},
    {0, "isf", NULL, "a volatility3 symbol table: the structure and all it points to", FORM(FORM_ISF)},
    {0, "all", NULL, "every distinct layout of STRUCT, or of all structures; with -j one line of\n"
                     "JSON for every build", FORM(FORM_ALL)},
    {0, "keys", NULL, "with --all -j: one line for every version name instead", AT(keys)},
    {0, "decode", "FILE", "bytes into values (\"-\": standard input)", FORM(FORM_DECODE)},
    {0, "encode", "FILE", "the reverse: JSON as --decode -j writes it into bytes", FORM(FORM_ENCODE)},
    {0, "offset", "N", "where in FILE the structure starts (--decode)",
     .kind = CLI_TAKE, .take = take_offset},
    {'o', "output", "FILE", "write the bytes here (--encode; default: standard output)",
     .kind = CLI_TEXT, AT(output)},
    {0},
};
/* clang-format on */

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct layout_request r = {.command = self, .arch = PRCB_ARCH_X64};
    struct cli_parser parser = {
        .command = self, .argc = argc, .argv = argv, .take_word = take_structure};
    form chosen;
    int status;

    if (cli_take_all(&parser, &r, &status))
        return status;
    chosen = forms[r.form];
    if (!r.structure && chosen != layout_all && chosen != layout_encode) {
        if (chosen || r.version)
            return cli_usage_error(self, "which structure?");
        return r.json ? list_json() : list();
    }
    if (!chosen)
        chosen = r.json ? layout_json : print_definition;
    return chosen(&r);
}

const struct cli_command cmd_layout = {
    .name = "layout",
    .synopsis = "[STRUCT] [--version V] [--arch x86|x64] [options]",
    .summary = "NT's processor structures, version by version: print, compare, decode, encode",
    .description =
        "Prints the definition of a structure as one version of Windows has it. Without\n"
        "STRUCT it lists structures and versions. What was assumed to find a version\n"
        "(a build between two known ones, the last known revision) is said on\n"
        "standard error.",
    .options = options,
    .examples = "  prcb layout PROCESSOR_POWER_STATE --version \"Windows 11 22H2\"\n"
                "  prcb layout PROCESSOR_POWER_STATE --arch x86 --diff 6.1 6.2\n"
                "  prcb layout KPRCB --version 10.0.19041.2130 -j\n"
                "  prcb layout PROCESSOR_POWER_STATE --version 6.1 --decode dump --offset 0x4800\n",
    .run = run,
};
