/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Opens a dump. Each step finds what the next one needs.
 */
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INCREMENT_ASSUMED 156250 /* 15.625 ms: the default of every PC since 2000 */
#define INCREMENT_LEAST   1000   /* 0.1 ms */
#define INCREMENT_MOST    1000000

/* These performance counter frequencies were seen in dumps; elsewhere none can be assumed. */
static const struct {
    enum machine machine;
    uint32_t build; /* from */
    uint64_t hertz;
} qpc_rows[] = {
    {MACHINE_X64, 17763, 10000000},   /* since 1809 the TSC scaled to 10 MHz */
    {MACHINE_ARM64, 16299, 19200000}, /* Qualcomm's system counter */
};

static int find_machine(struct prcb_dump *d, struct prcb_error *err)
{
    for (unsigned int i = 0; i < MACHINE_COUNT; i++) {
        if (machine_rows[i].image != d->header.machine ||
            machine_rows[i].pointer_size * 8u != d->header.bits)
            continue;
        d->machine = (enum machine)i;
        d->memory.pointer_size = machine_rows[i].pointer_size;
        return 0;
    }
    return prcb_fail(err, -EOPNOTSUPP,
                     "%s: a %u-bit dump of machine type 0x%x; x86, x64 and arm64 are read", d->name,
                     d->header.bits, d->header.machine);
}

static void find_increment(struct prcb_dump *d)
{
    uint64_t value;

    d->info.time_increment = INCREMENT_ASSUMED;
    d->info.time_increment_source = PRCB_DUMP_ASSUMED;
    if (d->options.time_increment) {
        d->info.time_increment = d->options.time_increment;
        d->info.time_increment_source = PRCB_DUMP_FROM_OPTION;
    } else if (d->kdbg.time_increment &&
               !memory_load(&d->memory, d->kdbg.time_increment, 4, &value) &&
               value >= INCREMENT_LEAST && value <= INCREMENT_MOST) {
        d->info.time_increment = (uint32_t)value;
        d->info.time_increment_source = PRCB_DUMP_FROM_DUMP;
    }
}

static void find_frequency(struct prcb_dump *d)
{
    if (d->options.qpc_frequency) {
        d->info.qpc_frequency = d->options.qpc_frequency;
        d->info.qpc_source = PRCB_DUMP_FROM_OPTION;
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(qpc_rows); i++) {
        if (qpc_rows[i].machine == d->machine && d->header.minor >= qpc_rows[i].build) {
            d->info.qpc_frequency = qpc_rows[i].hertz;
            d->info.qpc_source = PRCB_DUMP_ASSUMED;
        }
    }
}

/* Drops the assumed frequency if a processor would have idled for longer than the machine was
 * up. */
static int check_frequency(struct prcb_dump *d)
{
    for (size_t i = 0; i < d->processor_count && d->info.qpc_source == PRCB_DUMP_ASSUMED; i++) {
        const struct prcb_dump_value *idle = &d->processors[i].items[PRCB_DUMP_IdleTimeTotal];
        double up = (double)d->info.uptime_100ns / 1e7;
        double idled = (double)idle->value / (double)d->info.qpc_frequency;

        if (!idle->found_by || !d->info.uptime_100ns || idled <= up * 1.01 + 1)
            continue;
        d->info.qpc_source = 0;
        d->info.qpc_frequency = 0;
        return dump_note(d,
                         "IdleTimeTotal of processor %u (%llu) would be %.1f s at the usual "
                         "frequency, longer than the uptime of %.1f s: its unit is not known "
                         "(--qpc-frequency)",
                         d->processors[i].number, (unsigned long long)idle->value, idled, up);
    }
    return 0;
}

static void fill_info(struct prcb_dump *d)
{
    struct prcb_dump_info *info = &d->info;

    info->container = d->container->name;
    info->container_words = d->container->words;
    info->machine = machine_rows[d->machine].name;
    info->major = d->header.major;
    info->build = d->header.minor;
    info->release = release_name(&d->header, d->release, sizeof(d->release)) ? d->release : NULL;
    info->bugcheck_code = d->header.bugcheck_code;
    info->bugcheck_name = bugcheck_name(d->header.bugcheck_code);
    memcpy(info->bugcheck_parameters, d->header.bugcheck_parameters,
           sizeof(info->bugcheck_parameters));
    info->uptime_100ns = d->header.uptime;
    info->crash_time = d->header.crash_time;
    info->header_processors = d->header.processors;
    for (unsigned int i = 0; i < ARRAY_SIZE(info->bugcheck_words); i++)
        info->bugcheck_words[i] = bugcheck_parameter(d->header.bugcheck_code, i);
    info->exception_code = d->header.exception_code;
    info->exception_address = d->header.exception_address;
    info->product_type = d->header.product;
}

static void fill_layout(struct prcb_dump *d)
{
    d->info.layout_candidates = (uint32_t)d->version_count;
    if (d->kprcb.version[0]) {
        d->info.layout = d->kprcb.version;
        d->info.layout_found = PRCB_DUMP_BY_CATALOG;
    }
    if (symbols_have(d, "KPRCB")) {
        d->info.layout_found = PRCB_DUMP_BY_SYMBOLS;
        d->info.symbols = d->options.symbol_name;
    }
}

/* True where a container that keeps memory has nothing behind the header, or too little to load
 * (code) in a file that is shorter than its writer says. */
static bool is_header_only(const struct prcb_dump *d, int code)
{
    bool has_nothing = d->file.size < d->header.size + 0x80u;

    if (d->container->load == load_header)
        return false;
    return has_nothing || (code == -ENODATA && d->file.size < d->header.whole_size);
}

static int load(struct prcb_dump *d, struct prcb_error *err)
{
    bool is_guest = guest_is(&d->file);
    int code = is_guest ? guest_open(d, err) : header_read(&d->file, &d->header, err);

    if (is_guest && !code)
        fill_info(d);
    if (is_guest || code)
        return code;
    code = find_machine(d, err);
    if (code)
        return code;
    d->container = container_find(&d->header, err);
    if (!d->container) {
        prcb_error_prepend(err, "%s: ", d->name);
        return -EOPNOTSUPP;
    }
    d->memory.file = &d->file;
    fill_info(d);
    code = d->container->load(d, err);
    if (is_header_only(d, code))
        code = load_cut(d, err);
    if (code)
        return code;
    memory_seal(&d->memory);
    return 0;
}

static void find_kernel_pdb(struct prcb_dump *d)
{
    char guid[GUID_TEXT];

    codeview_find(d, d->guest.kernel ? d->guest.kernel : d->kdbg.kernel_base, &d->codeview);
    if (!d->codeview.is_known)
        return;
    codeview_guid_text(d->codeview.guid, d->codeview.age, guid, sizeof(guid));
    snprintf(d->kernel_pdb, sizeof(d->kernel_pdb), "%s/%s/%s", d->codeview.name, guid,
             d->codeview.name);
    d->info.kernel_pdb = d->kernel_pdb;
}

static int find_all(struct prcb_dump *d, struct prcb_error *err)
{
    int code = 0;

    if (d->memory.overlaps)
        code = dump_note(d,
                         "%zu blocks of memory overlap others; of bytes that two hold, those of "
                         "the block that starts lower are used",
                         d->memory.overlaps);
    if (!code)
        code = kdbg_find(d, err);
    if (code)
        return code;
    find_kernel_pdb(d);
    smbios_find(d);
    /* Before anything asks for the size of a structure, for the symbols would answer. */
    if (versions_check_symbols(d))
        return prcb_fail(err, -ENOMEM, "%s: out of memory", d->name);
    find_increment(d);
    find_frequency(d);
    code = sources_find(d, err);
    if (!code)
        code = versions_choose(d, err);
    if (code)
        return code;
    fill_layout(d);
    code = processors_read(d, err);
    if (!code)
        code = modules_find(d, err);
    if (!code)
        code = threads_read(d, err);
    if (code)
        return code;
    if (check_frequency(d) || notes_make(d) || dump_verdict_make(d))
        return prcb_fail(err, -ENOMEM, "%s: out of memory", d->name);
    return 0;
}

/* Owns file from here on. */
static int open_file(struct dump_file *file, const struct prcb_dump_options *options,
                     struct prcb_dump **ret, struct prcb_error *err)
{
    struct prcb_dump *d = calloc(1, sizeof(*d));
    int code;

    if (!d) {
        dump_file_unmap(file);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    d->file = *file;
    d->name = strdup(file->name);
    d->file.name = d->name ? d->name : "";
    code = d->name ? sized_take_options("prcb_dump_options", options, &d->options,
                                        sizeof(d->options), err)
                   : prcb_fail(err, -ENOMEM, "out of memory");
    if (!code && d->options.symbol_count && !d->options.symbol_size)
        code = prcb_fail(err, -EINVAL, "prcb_dump_options.symbol_size is not set");
    if (!code)
        code = load(d, err);
    if (!code)
        code = find_all(d, err);
    if (code)
        prcb_dump_close(d);
    else
        *ret = d;
    return code;
}

int prcb_dump_open_fd(int fd, const char *name, const struct prcb_dump_options *options,
                      struct prcb_dump **ret, struct prcb_error *err)
{
    struct dump_file file;
    int code = dump_file_map(fd, name, &file, err);

    return code ? code : open_file(&file, options, ret, err);
}

int prcb_dump_open(const char *path, const struct prcb_dump_options *options,
                   struct prcb_dump **ret, struct prcb_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), code;

    if (fd < 0)
        return prcb_fail(err, -errno, "%s: cannot open: %s", path, strerror(errno));
    code = prcb_dump_open_fd(fd, path, options, ret, err);
    close(fd);
    return code;
}

int prcb_dump_open_memory(const void *bytes, size_t length, const char *name,
                          const struct prcb_dump_options *options, struct prcb_dump **ret,
                          struct prcb_error *err)
{
    struct dump_file file = {bytes, length, name, false};

    return open_file(&file, options, ret, err);
}

void prcb_dump_close(struct prcb_dump *d)
{
    if (!d)
        return;
    view_deinit(&d->kprcb);
    view_deinit(&d->power);
    view_deinit(&d->thread);
    notes_free(&d->notes);
    notes_free(&d->findings);
    memory_free(&d->memory);
    guest_free(&d->guest);
    dump_file_unmap(&d->file);
    free(d->sources);
    free(d->processors);
    free(d->items);
    free(d->contexts);
    free(d->threads);
    free(d->modules.rows);
    free(d->name);
    free(d);
}

/* ---- what was found ---- */

const struct prcb_dump_info *prcb_dump_info(const struct prcb_dump *d)
{
    return &d->info;
}

size_t prcb_dump_processor_count(const struct prcb_dump *d)
{
    return d->processor_count;
}

const struct prcb_dump_processor *prcb_dump_processor(const struct prcb_dump *d, size_t index)
{
    return index < d->processor_count ? &d->processors[index] : NULL;
}

const char *prcb_dump_note(const struct prcb_dump *d, size_t index)
{
    return index < d->notes.count ? d->notes.texts[index] : NULL;
}

int prcb_dump_read(const struct prcb_dump *d, uint64_t address, void *buffer, size_t length,
                   struct prcb_error *err)
{
    enum memory_absence why = MEMORY_PRESENT;

    if (length)
        why = memory_read(&d->memory, address, buffer, length);
    if (why == MEMORY_PRESENT)
        return 0;
    return prcb_fail(err, -ENODATA, "%s: %zu bytes at 0x%llx: %s", d->name, length,
                     (unsigned long long)address, memory_words(why));
}
