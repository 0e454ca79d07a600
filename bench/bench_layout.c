/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Layouts: decoding every value of a PROCESSOR_POWER_STATE, one value by path, finding a layout;
 * then Python's struct and ctypes on the same bytes and the same values.
 */
#include <string.h>

#include <prcb/layout.h>

#include "bench.h"

#define ROUNDS 31
#define SIZE   4096
#define VALUES 512

static struct prcb_layout *layout;
static struct prcb_layout_field deep;
static uint8_t bytes[SIZE];
static uint64_t values[VALUES];
static size_t count;
static volatile uint64_t sink;

static void decode_all(void)
{
    prcb_layout_decode_all(layout, bytes, sizeof(bytes), values, count, NULL);
}

static void encode_all(void)
{
    prcb_layout_encode_all(layout, values, count, bytes, sizeof(bytes), NULL);
}

static void get(const char *path)
{
    uint64_t value = 0;

    prcb_layout_get(layout, bytes, sizeof(bytes), path, &value, NULL);
    sink += value;
}

static void get_shallow(void)
{
    get("IdleTimeTotal");
}

static void get_deep(void)
{
    get("PerfActionDpc.DeferredContext");
}

static void decode_field(void)
{
    uint64_t value = 0;

    prcb_layout_decode(layout, &deep, 0, bytes, sizeof(bytes), &value, NULL);
    sink += value;
}

static void find(void)
{
    struct prcb_layout *found;

    if (!prcb_layout_find("PROCESSOR_POWER_STATE", "10.0.19041.2130", PRCB_ARCH_X64, &found, NULL))
        prcb_layout_close(found);
}

static const struct work {
    const char *name;
    void (*run)(void);
    unsigned int times;
} works[] = {
    {"decode all values", decode_all, 20000},
    {"encode all values", encode_all, 20000},
    {"one value by path, IdleTimeTotal", get_shallow, 50000},
    {"one value by path, PerfActionDpc.DeferredContext", get_deep, 50000},
    {"one value, field looked up before", decode_field, 200000},
    {"find the layout by structure and version", find, 500},
};
#define WORKS (sizeof(works) / sizeof(works[0]))

static double measure(const struct work *w)
{
    uint64_t start = bench_now();

    for (unsigned int i = 0; i < w->times; i++)
        w->run();
    return (double)(bench_now() - start) / w->times;
}

/* Hands the leaves to Python: "offset size signed", a line each. */
static int run_python(void)
{
    const struct prcb_layout_field *leaf = prcb_layout_leaves(layout, &count);
    FILE *python = popen("python3 " BENCH_SOURCE "/bench_layout.py", "w");

    if (!python)
        return 1;
    for (size_t i = 0; i < count; i++)
        if (leaf[i].kind != PRCB_LAYOUT_OPAQUE && !leaf[i].bit_width)
            fprintf(python, "%u %u %d\n", leaf[i].offset, leaf[i].size,
                    leaf[i].kind == PRCB_LAYOUT_SIGNED);
    return pclose(python);
}

int main(void)
{
    static double ns[WORKS][ROUNDS];
    struct prcb_error err;

    bench_pin(0);
    if (prcb_layout_find("PROCESSOR_POWER_STATE", "10.0.19041.2130", PRCB_ARCH_X64, &layout,
                         &err) ||
        prcb_layout_lookup(layout, "PerfActionDpc.DeferredContext", &deep, &err)) {
        fprintf(stderr, "bench_layout: %s\n", err.text);
        return 1;
    }
    prcb_layout_leaves(layout, &count);
    memset(bytes, 0x5A, sizeof(bytes));
    for (int round = 0; round < ROUNDS; round++)
        for (size_t w = 0; w < WORKS; w++)
            ns[w][round] = measure(&works[w]);
    printf("PROCESSOR_POWER_STATE of 10.0.19041.2130, x64: %u bytes, %zu values\n",
           prcb_layout_size(layout), count);
    for (size_t w = 0; w < WORKS; w++)
        printf("%12.1f ns  %s\n", bench_median(ns[w], ROUNDS), works[w].name);
    fflush(stdout);
    if (run_python())
        puts("             python3: not measured");
    prcb_layout_close(layout);
    return 0;
}
