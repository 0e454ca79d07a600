/* SPDX-License-Identifier: BSD-2-Clause */
#include "made_code.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"

static int add(struct made_code *code, uint64_t start, uint64_t bytes, const char *name)
{
    char *kept = strdup(name);

    if (!kept || array_append(code->rows, code->count,
                              (struct made_function){start, start + bytes, code->count, kept})) {
        free(kept);
        return -1;
    }
    return 0;
}

static int by_start(const void *left, const void *right)
{
    const struct made_function *a = left, *b = right;

    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

void made_code_read(int fd, struct made_code *ret)
{
    FILE *file = fdopen(fd, "r");
    char *line = NULL;
    size_t room = 0;
    int result = 0;

    *ret = (struct made_code){0};
    if (!file) {
        close(fd);
        return;
    }
    /* A line is "7f0000001000 40 name with blanks". */
    while (!result && getline(&line, &room, file) > 0) {
        uint64_t start, bytes;
        int name = 0;

        line[strcspn(line, "\r\n")] = '\0';
        if (sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &start, &bytes, &name) == 2 && name &&
            line[name] && start + bytes > start)
            result = add(ret, start, bytes, line + name);
    }
    free(line);
    fclose(file);
    array_sort(ret->rows, ret->count, by_start);
}

void made_code_free(struct made_code *code)
{
    for (size_t i = 0; i < code->count; i++)
        free(code->rows[i].name);
    free(code->rows);
    *code = (struct made_code){0};
}

/* Finds the last row that begins at or before it: if code was generated repeatedly at one place,
 * that is the newest. */
const char *made_code_find(const struct made_code *code, uint64_t address)
{
    size_t low = array_front(i, code->count, code->rows[i].start <= address);

    return low && address < code->rows[low - 1].end ? code->rows[low - 1].name : NULL;
}
