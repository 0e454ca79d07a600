/* SPDX-License-Identifier: BSD-2-Clause
 *
 * For bench_top.py: how long a redraw of prcb top takes, from the history to the grid, of 10,000
 * threads of 100 processes, 500 of which did something. No session, no terminal. The least of 50,
 * by group.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "top_view.h"

#define THREADS 10000
#define ACTIVE  500
#define TRIES   50

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int add_interval(struct top_model *m, uint32_t number)
{
    const struct top_part part = {PRCB_CAUSE_FUTEX, 10, 900000000};
    const struct top_frame frame = {
        .end_ns = (number + 100) * 1000000000ull, .wall_ns = 1000000000, .present = ~0ull};
    int result = 0;

    top_model_begin(m);
    for (uint32_t i = 0; i < (number ? ACTIVE : THREADS) && !result; i++) {
        struct top_delta delta = {.switches = 10,
                                  .part_count = 1,
                                  .wall_ns = 1000000000,
                                  .run_ns = 100000000,
                                  .wait_ns = 900000000,
                                  .now = {TOP_WAIT, PRCB_CAUSE_FUTEX, frame.end_ns - 1000000}};
        char comm[16];

        snprintf(comm, sizeof(comm), "worker-%u", i);
        result = top_model_thread(m, i + 1, (pid_t)(1 + i / 100), (pid_t)(1000 + i), comm, 1,
                                  &delta.thread);
        if (!result)
            result = top_model_add(m, &delta, &part);
    }
    return result ? result : top_model_end(m, &frame);
}

int main(void)
{
    static struct top_grid grid = {.unicode = true};
    static struct top_model model;
    static struct top_ui ui;

    top_model_init(&model);
    if (top_grid_resize(&grid, 200, 60))
        return 1;
    for (uint32_t i = 0; i < 60; i++) {
        if (add_interval(&model, i))
            return 1;
    }
    top_ui_init(&ui, &model);
    for (int sleeping = 0; sleeping < 2; sleeping++) {
        for (int group = 0; group < TOP_GROUPS; group++) {
            uint64_t least = UINT64_MAX;

            ui.choice.group = (enum top_group)group;
            ui.choice.sleeping = sleeping;
            for (int i = 0; i < TRIES; i++) {
                uint64_t start = now_ns(), took;

                if (top_ui_prepare(&ui))
                    return 1;
                top_view_draw(&ui, &grid);
                took = now_ns() - start;
                least = took < least ? took : least;
            }
            printf("redraw, %s%s: %.2f ms\n", top_group_names[group],
                   sleeping ? ", asleep shown" : "", (double)least / 1e6);
        }
    }
    top_ui_deinit(&ui);
    top_grid_deinit(&grid);
    top_model_deinit(&model);
    return 0;
}
