/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Seeds of fuzz_go_table, a table of each version, and of fuzz_stack, programs with them.
 * Arguments: their two folders.
 */
#include <stdio.h>
#include <stdlib.h>

#include "go_file.h"

#define STACK 0x7ffc0000u
#define COUNT 4

static void write_seed(const char *folder, int number, const void *head, size_t head_size,
                       const struct go_bytes *bytes)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/go-%d", folder, number);
    file = fopen(path, "we");
    if (!file || fwrite(head, head_size, 1, file) != 1 ||
        fwrite(bytes->bytes, bytes->size, 1, file) != 1 || fclose(file)) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static const struct go_row rows[COUNT] = {
        {"runtime.futex", 0}, {"main.inner", 0x18}, {"main.outer", 8}, {"runtime.goexit", 0}};
    static struct go_bytes table, program;
    struct {
        uint64_t pc, sp, fp, lr;
        uint16_t length;
        uint64_t words[8];
    } __attribute__((packed)) stack = {GO_TEXT, STACK, 0, GO_TEXT + 96, sizeof(stack.words), {0}};

    if (argc < 3)
        return 2;
    for (size_t i = 0; i < 8; i++)
        stack.words[i] = GO_TEXT + (i / 3 + 1) * GO_STEP + GO_STEP / 2;
    for (int version = 0; version < GO_VERSIONS; version++) {
        const uint64_t address = GO_TEXT + GO_STEP + 32;

        go_write_table(&table, version, rows, COUNT, GO_TEXT, 1);
        write_seed(argv[1], version, &address, sizeof(address), &table);
        for (int find = GO_BY_SECTION; find <= GO_BY_NOTE; find++) {
            go_write_program(&program, &table, COUNT, find, version >= GO_18);
            write_seed(argv[2], 2 * version + find, &stack, sizeof(stack), &program);
        }
    }
    return 0;
}
