/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A recording of anything, as prcb report opens it: all tables, then a report in each format.
 * Functions stay without names: naming them is fuzz_symbols' part.
 */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "data.h"
#include "diff.h"
#include "export.h"
#include "recording.h"
#include "report.h"
#include "report_verdict.h"
#include "resolve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int resolve_functions(struct sqlite3 *db, bool temporary, struct namer *namer,
                      struct prcb_error *err)
{
    return 0;
}

/* The page's data, whole, folded and without a timeline. */
static void print_page(const struct recording *recording)
{
    static const uint64_t cells[] = {0, 1000, 100000000, PAGE_WHOLE};
    struct page_names names = {.redact = true};
    struct page_data data;
    struct prcb_error err;
    uint8_t *bytes;
    size_t count;

    if (page_data_open(recording, &names, &data, &err))
        return;
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
        if (!page_data_write(&data, cells[i], &bytes, &count, &err))
            free(bytes);
    }
    page_data_close(&data);
}

static void print_diff(const struct recording *recording, FILE *out)
{
    struct prcb_error err;
    struct diff diff;
    bool holds;

    if (diff_make(recording, recording, &diff, &err))
        return;
    diff_print_text(&diff, 20, out);
    diff_print_json(&diff, 0, out);
    assert(diff_check(&diff, "ready>0%", &holds, &err) || !holds);
    diff_free(&diff);
}

static void print(const struct recording *recording, FILE *out)
{
    struct report_style style = {.tables = REPORT_FUNCTIONS | REPORT_THREADS | REPORT_WAITS |
                                           REPORT_PROCESSORS | REPORT_TIMELINE,
                                 .top = 20};
    struct prcb_error err;
    struct report report;
    struct verdict *verdict = NULL;

    if (!report_make(recording, 40, &report, &err)) {
        if (!report_verdict_make(&report, &verdict))
            style.verdict = verdict;
        report_print_text(&report, &style, out);
        report_print_json(&report, &style, out);
        report_print_brief(&report, verdict, out);
        report_verdict_free(verdict);
        report_free(&report);
    }
    export_folded(recording, out, &err);
    export_firefox(recording, out, &err);
    print_page(recording);
    print_diff(recording, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[] = "/tmp/fuzz-recording-XXXXXX";
    static int fd = -1;
    static FILE *nowhere;
    struct recording recording;
    struct prcb_error err;

    if (fd < 0) {
        fd = mkstemp(path);
        nowhere = fopen("/dev/null", "w");
        assert(fd >= 0 && nowhere);
    }
    assert(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
    if (recording_open(path, &recording, &err))
        return 0;
    print(&recording, nowhere);
    recording_close(&recording);
    return 0;
}
