/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A baseline of `prcb bench`, any bytes: refused, or compared with itself and printed in every
 * form.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bench_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct bench_options options = {
        .alpha = 0.01, .stages = 1, .matters = 0.02, .apart = true};
    struct bench_comparison comparison;
    struct bench_machine machine;
    struct bench_side sides[2] = {0};
    struct bench_report report = {.sides = sides,
                                  .side_count = 2,
                                  .names = {"A", "B"},
                                  .comparison = &comparison,
                                  .machine = &machine};
    FILE *out;

    if (bench_parse((const char *)data, size, &sides[0], &machine)) {
        assert(!sides[0].runs);
        return 0;
    }
    assert(!bench_parse((const char *)data, size, &sides[1], &machine));
    if (sides[0].count <= 24) { /* more takes long and tells nothing new */
        assert(!bench_compare(sides, &options, &comparison));
        for (size_t i = 0; i < comparison.count; i++)
            assert(comparison.rows[i].verdict < BENCH_MORE);
        out = fopen("/dev/null", "we");
        assert(out);
        bench_write_text(&report, out);
        bench_write_json(&report, out);
        bench_write_junit(&report, out);
        bench_write_markdown(&report, out);
        fclose(out);
        bench_comparison_deinit(&comparison);
    }
    bench_side_deinit(&sides[0]);
    bench_side_deinit(&sides[1]);
    return 0;
}
