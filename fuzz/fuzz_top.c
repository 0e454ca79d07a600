/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A recording of anything, as prcb top -r plays it: its intervals, or its switches as intervals,
 * rows by each group, screens, some keys. Functions are not named: fuzz_symbols' part.
 */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "recording.h"
#include "resolve.h"
#include "top_file.h"
#include "top_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int resolve_functions(struct sqlite3 *db, bool temporary, struct namer *namer,
                      struct prcb_error *err)
{
    return 0;
}

static void show(struct top_ui *ui, struct top_grid *grid)
{
    static const uint32_t keys[] = {'g', 'g',           'g',          'g', 'g',
                                    'i', TOP_KEY_ENTER, TOP_KEY_ESC,  't', TOP_KEY_F1 + 4,
                                    'T', 'L',           TOP_KEY_ENTER};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        top_ui_key(ui, keys[i]);
        if (!top_ui_prepare(ui))
            top_view_draw(ui, grid);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[] = "/tmp/fuzz-top-XXXXXX";
    static struct top_grid grid = {.unicode = true};
    static int fd = -1;
    struct top_reader *reader;
    struct top_model model;
    struct prcb_error err;
    struct top_ui ui;
    bool changed;

    if (fd < 0) {
        fd = mkstemp(path);
        assert(fd >= 0 && !top_grid_resize(&grid, 120, 30));
    }
    assert(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
    if (top_reader_open(path, 1000000000, &reader, &err))
        return 0;
    top_model_init(&model);
    top_ui_init(&ui, &model);
    ui.mode = TOP_FILE;
    if (!top_reader_load(reader, &model, 0, &changed, &err))
        show(&ui, &grid);
    top_reader_close(reader);
    top_ui_deinit(&ui);
    top_model_deinit(&model);
    return 0;
}
