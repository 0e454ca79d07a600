/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What was each processor of a crashed Windows doing? Prints how many interrupts and DPCs each had
 * taken, and what a person should know of the dump. Needs libprcb-layout and the C library only.
 *
 *     cc dump.c $(pkg-config --cflags --libs libprcb-layout)
 *     ./a.out MEMORY.DMP
 */
#include <inttypes.h>
#include <stdio.h>

#include <prcb/dump.h>

static void print_item(const struct prcb_dump_processor *processor, enum prcb_dump_item item)
{
    const struct prcb_dump_value *value = &processor->items[item];

    if (value->found_by)
        printf("  %s %" PRIu64, prcb_dump_item_name(item), value->value);
    else
        printf("  %s - (%s)", prcb_dump_item_name(item), value->absent);
}

int main(int argc, char **argv)
{
    struct prcb_error err = {0};
    struct prcb_dump *dump;
    const char *note;

    if (argc != 2) {
        fprintf(stderr, "usage: %s DUMP\n", argv[0]);
        return 2;
    }
    if (prcb_dump_open(argv[1], NULL, &dump, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (size_t i = 0; i < prcb_dump_processor_count(dump); i++) {
        const struct prcb_dump_processor *processor = prcb_dump_processor(dump, i);

        printf("processor %u%s:", processor->number, processor->crashing ? " (crashing)" : "");
        print_item(processor, PRCB_DUMP_InterruptCount);
        print_item(processor, PRCB_DUMP_DpcCount);
        printf("\n");
    }
    for (size_t i = 0; (note = prcb_dump_note(dump, i)); i++)
        printf("%s\n", note);
    prcb_dump_close(dump);
    return 0;
}
