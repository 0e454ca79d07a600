/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb layout` shows NT's structures, version by version. This file has its options and the
 * list; the forms of output are in src/windows/show.
 */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "layout_show.h"
#include "layout_symbols.h"

/* ---- the list and the definition ---- */

/* Prints the first and last version with a layout, for either architecture. */
static void print_span(FILE *out, const char *structure)
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
    fprintf(out, "  %-44s %s .. %s\n", structure, layout_version_label(first, a, sizeof(a)),
            layout_version_label(last, b, sizeof(b)));
}

static void print_function(FILE *out, const struct prcb_layout_function *f)
{
    fprintf(out, "typedef %s (%s *%s)(%s);\n", f->returns, f->convention, f->name, f->parameters);
}

static bool find_function(const char *name, struct prcb_layout_function *ret)
{
    for (unsigned int i = 0; !prcb_layout_function_at(i, ret); i++)
        if (!strcmp(ret->name, name))
            return true;
    return false;
}

static void list(FILE *out)
{
    struct prcb_layout_function f = {.size = sizeof(f)};
    struct prcb_layout_version v = {.size = sizeof(v)};
    const char *name;

    fputs("structures:\n", out);
    for (unsigned int i = 0; (name = prcb_layout_structure_at(i)); i++)
        print_span(out, name);
    fputs("\nfunction types:\n", out);
    for (unsigned int i = 0; !prcb_layout_function_at(i, &f); i++) {
        fputs("  ", out);
        print_function(out, &f);
    }
    fputs("\nversions:\n", out);
    for (unsigned int i = 0; !prcb_layout_version_at(i, &v); i++)
        fprintf(out, "  %-20s %-18s %-8s %s\n", v.name, v.key,
                v.x86 && v.x64 ? "x86 x64"
                : v.x86        ? "x86"
                               : "x64",
                v.release);
}

static json_object *functions_json(struct json_doc *b)
{
    json_object *functions = json_object_new_array();
    struct prcb_layout_function f = {.size = sizeof(f)};

    for (unsigned int i = 0; !prcb_layout_function_at(i, &f); i++) {
        json_object *o = json_object_new_object();

        json_doc_put_text(b, o, "name", f.name);
        json_doc_put_text(b, o, "returns", f.returns);
        json_doc_put_text(b, o, "convention", f.convention);
        json_doc_put_text(b, o, "parameters", f.parameters);
        json_doc_put_text(b, o, "source", f.source);
        json_doc_append(b, functions, o);
    }
    return functions;
}

static json_object *versions_json(struct json_doc *b)
{
    json_object *versions = json_object_new_array();
    struct prcb_layout_version v = {.size = sizeof(v)};

    for (unsigned int i = 0; !prcb_layout_version_at(i, &v); i++) {
        json_object *o = json_object_new_object();

        json_doc_put_text(b, o, "version", v.name);
        json_doc_put_text(b, o, "key", v.key);
        json_doc_put_text(b, o, "release", v.release);
        json_doc_put_bool(b, o, "x86", v.x86);
        json_doc_put_bool(b, o, "x64", v.x64);
        json_doc_append(b, versions, o);
    }
    return versions;
}

static int list_json(FILE *out, struct prcb_error *err)
{
    struct json_doc b = {0};
    json_object *root = json_doc_new(&b, JSON_LAYOUTS), *structures = json_object_new_array();
    const char *name;

    for (unsigned int i = 0; (name = prcb_layout_structure_at(i)); i++)
        json_doc_append(&b, structures, json_object_new_string(name));
    json_doc_put(&b, root, "structs", structures);
    json_doc_put(&b, root, "functions", functions_json(&b));
    json_doc_put(&b, root, "versions", versions_json(&b));
    return layout_write_json(&b, root, out, err);
}

static int layout_list(const struct layout_request *r, FILE *out, struct prcb_error *err)
{
    if (r->json)
        return list_json(out, err);
    list(out);
    return 0;
}

static int print_text(const struct layout_request *r,
                      int (*print)(const struct prcb_layout *layout, FILE *out), FILE *out,
                      struct prcb_error *err)
{
    struct prcb_layout *l;
    int code = layout_open(r, r->version, &l, err);

    if (code)
        return code;
    print(l, out);
    prcb_layout_close(l);
    return 0;
}

static int print_definition(const struct layout_request *r, FILE *out, struct prcb_error *err)
{
    struct prcb_layout_function f = {.size = sizeof(f)};

    if (!find_function(r->structure, &f))
        return print_text(r, prcb_layout_print, out, err);
    print_function(out, &f);
    return 0;
}

static int print_header(const struct layout_request *r, FILE *out, struct prcb_error *err)
{
    return print_text(r, prcb_layout_print_header, out, err);
}

/* ---- the command line ---- */

struct arguments {
    struct layout_request request;
    unsigned int form;   /* 0: the default */
    const char *symbols; /* a file */
    const struct cli_command *command;
    struct layout_symbols own; /* of that file */
};

/* The forms of output, by the number in their option's row. */
enum { FORM_DIFF = 1, FORM_HEADER, FORM_ISF, FORM_ALL, FORM_DECODE, FORM_ENCODE };
static layout_form *const forms[] = {NULL,       layout_diff,   print_header, layout_isf,
                                     layout_all, layout_decode, layout_encode};

static int take_form(struct cli_parser *parser, void *target)
{
    struct arguments *a = target;
    unsigned int wanted = (unsigned int)parser->option->min;

    if (a->form && a->form != wanted)
        return cli_usage_error(parser->command, "give one of --diff, --header, --isf, --all, "
                                                "--decode, --encode");
    a->form = wanted;
    if (parser->option->arg)
        a->request.file = parser->value;
    return CLI_OK;
}

/* --diff takes two words; the parser has taken the first. */
static int take_diff(struct cli_parser *parser, void *target)
{
    struct layout_request *r = &((struct arguments *)target)->request;

    if (parser->index >= parser->argc)
        return cli_usage_error(parser->command, "--diff needs two versions");
    r->diff[0] = parser->value;
    r->diff[1] = parser->argv[parser->index++];
    return take_form(parser, target);
}

static int take_arch(struct cli_parser *parser, void *target)
{
    struct layout_request *r = &((struct arguments *)target)->request;
    struct prcb_error err;

    r->arch_given = true;
    return prcb_arch_parse(parser->value, &r->arch, &err)
               ? cli_usage_error(parser->command, "%s", err.text)
               : CLI_OK;
}

static int take_offset(struct cli_parser *parser, void *target)
{
    struct layout_request *r = &((struct arguments *)target)->request;

    return number_parse(parser->value, 0, UINT64_MAX, &r->offset)
               ? cli_usage_error(parser->command, "--offset takes a number, not \"%s\"",
                                 parser->value)
               : CLI_OK;
}

static int take_structure(struct cli_parser *parser, void *target)
{
    struct layout_request *r = &((struct arguments *)target)->request;

    if (r->structure)
        return cli_usage_error(parser->command, "one structure at a time, not also \"%s\"",
                               parser->value);
    r->structure = parser->value;
    return CLI_OK;
}

#define AT(member)   .at = offsetof(struct arguments, request.member)
#define FORM(number) .take = take_form, .min = number
/* clang-format off */
static const struct cli_option options[] = {
    {0, "version", "V", "as of this version: a name (\"XP SP3\", 1909, \"Windows 11 22H2\"),\n"
                        "a version (6.1, \"early 6.0\") or a build (10.0.18362.295)",
     .kind = CLI_TEXT, AT(version)},
    {0, "arch", "A", "x86 or x64 (default: x64 where there is one)",
     .take = take_arch, .choices = "x86 x64"},
    {'j', "json", NULL, "as JSON", AT(json)},
    {0, "diff", "V1 V2", "what was added, removed, moved and resized from V1 to V2",
     .take = take_diff, .min = FORM_DIFF},
    {0, "header", NULL, "a C header: fixed-width types, explicit padding, static asserts", FORM(FORM_HEADER)},
    {0, "isf", NULL, "a volatility3 symbol table: the structure and all it points to", FORM(FORM_ISF)},
    {0, "all", NULL, "every distinct layout of STRUCT, or of all structures; with -j one line of\n"
                     "JSON for every build", FORM(FORM_ALL)},
    {0, "keys", NULL, "with --all -j: one line for every version name instead", AT(keys)},
    {0, "decode", "FILE", "bytes into values (\"-\": standard input)", FORM(FORM_DECODE)},
    {0, "encode", "FILE", "the reverse: JSON as --decode -j writes it into bytes", FORM(FORM_ENCODE)},
    {0, "symbols", "FILE", "the kernel's own symbols, a PDB or volatility3 JSON: list its structures,\n"
                            "and with --version save them; with STRUCT, that one as FILE has it",
     .kind = CLI_TEXT, .at = offsetof(struct arguments, symbols)},
    {0, "offset", "N", "where in FILE the structure starts (--decode)",
     .take = take_offset},
    {'o', "output", "FILE", "write the bytes here (--encode; default: standard output)",
     .kind = CLI_TEXT, AT(output)},
    {0},
};
/* clang-format on */

static void note(void *ctx, const char *text)
{
    cli_warn(((const struct arguments *)ctx)->command, "%s", text);
}

/* Looks into the file of --symbols, or else into what was saved. */
static int find(void *ctx, const char *structure, const char *version, enum prcb_arch arch,
                struct prcb_layout **ret, struct prcb_error *err)
{
    const struct arguments *a = ctx;

    return a->symbols ? layout_symbols_find(&a->own, structure, version, arch, ret, err)
                      : layout_saved_find(NULL, structure, version, arch, ret, err);
}

static int show(struct arguments *a, layout_form *form, FILE *out, struct prcb_error *err)
{
    int code = a->symbols ? layout_symbols_load(a->symbols, &a->own, err) : 0;

    if (!code)
        code = form ? form(&a->request, out, err)
                    : layout_symbols_list(&a->own, &a->request, out, err);
    layout_symbols_free(&a->own);
    return code;
}

/* The form that the words ask for, NULL: the list of a file of symbols; or a status. */
static int choose_form(const struct arguments *a, layout_form **ret)
{
    const struct layout_request *r = &a->request;
    layout_form *form = forms[a->form];

    if (a->symbols && (a->form == FORM_ALL || a->form == FORM_ENCODE || a->form == FORM_DIFF))
        return cli_usage_error(a->command, "--symbols has one version: no --diff, --all, --encode");
    if (!r->structure && form != layout_all && form != layout_encode) {
        if (form || (r->version && !a->symbols))
            return cli_usage_error(a->command, "which structure?");
        form = a->symbols ? NULL : layout_list;
    } else if (!form) {
        form = r->json ? layout_json : print_definition;
    }
    *ret = form;
    return CLI_OK;
}

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct arguments a = {.request = {.arch = PRCB_ARCH_X64, .find = find, .note = note, .ctx = &a},
                          .command = self};
    struct cli_parser parser = {
        .command = self, .argc = argc, .argv = argv, .take_word = take_structure};
    struct prcb_error err;
    struct output output;
    layout_form *form = NULL;
    int status, code;

    if (cli_take_all(&parser, &a, &status))
        return status;
    status = choose_form(&a, &form);
    if (status == CLI_OK)
        status = cli_open_output(self, NULL, &output);
    if (status != CLI_OK)
        return status;
    code = show(&a, form, output.stream, &err);
    if (code == -ENODATA && form == layout_encode)
        status = cli_usage_error(self, "%s", err.text);
    else if (code)
        status = cli_error(self, "%s", err.text);
    return cli_close_output(self, &output, status);
}

const struct cli_command cmd_layout = {
    .name = "layout",
    .synopsis = "[STRUCT] [--version V] [--arch x86|x64] [options]",
    .summary = "NT's processor structures by version: print, compare, decode",
    .description =
        "Prints the definition of a structure as one version of Windows has it. Without\n"
        "STRUCT it lists structures and versions. What was assumed to find a version\n"
        "(a build between two known ones, the last known revision) is printed on\n"
        "standard error. With --symbols, those of a kernel's own symbol file.",
    .options = options,
    .examples = "  prcb layout PROCESSOR_POWER_STATE --version \"Windows 11 22H2\"\n"
                "  prcb layout PROCESSOR_POWER_STATE --arch x86 --diff 6.1 6.2\n"
                "  prcb layout KPRCB --version 10.0.19041.2130 -j\n"
                "  prcb layout PROCESSOR_POWER_STATE --version 6.1 --decode dump --offset 0x4800\n"
                "  prcb layout --symbols ntkrnlmp.pdb --version 10.0.26200.1742\n",
    .run = run,
};
