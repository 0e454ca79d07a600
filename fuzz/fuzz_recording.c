/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A recording of anything, as prcb report opens it: all tables, then a report in each format.
 * Functions stay without names: naming them is fuzz_symbols' part.
 */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "export.h"
#include "recording.h"
#include "report.h"
#include "resolve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int resolve_functions(struct sqlite3 *db, bool temporary, struct namer *namer,
                      struct prcb_error *err)
{
    return 0;
}

static void print(const struct recording *recording, FILE *out)
{
    const struct report_style style = {.tables = REPORT_FUNCTIONS | REPORT_THREADS | REPORT_WAITS |
                                                 REPORT_PROCESSORS | REPORT_TIMELINE,
                                       .top = 20};
    struct prcb_error err;
    struct report report;

    if (!report_make(recording, 40, &report, &err)) {
        report_print_text(&report, &style, out);
        report_print_json(&report, &style, out);
        report_free(&report);
    }
    export_folded(recording, out, &err);
    export_trace(recording, out, &err);
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
