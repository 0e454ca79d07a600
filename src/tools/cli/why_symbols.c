/* SPDX-License-Identifier: BSD-2-Clause */
#include "why_symbols.h"

#include <stdlib.h>

#ifdef HAVE_RECORD
#include "names.h"

static bool is_in(const struct object *object, int file)
{
    return object->kind == OBJECT_FUTEX && object->file == file && !object->symbol;
}

static void find_in_file(struct objects *objects, int file, bool fetched, struct namer *namer)
{
    uint32_t count = objects_count(objects), wanted = 0, at = 0;
    uint64_t *places = calloc(count + 1, sizeof(*places));
    struct names names = {0};
    const struct names_source source = {.kind = NAMES_VARIABLES,
                                        .file = "",
                                        .place = objects_file(objects, file),
                                        .build_id = "",
                                        .uid = -1,
                                        .fetched = fetched};

    for (uint32_t i = 1; places && i <= count; i++) {
        if (is_in(objects_at(objects, i), file))
            places[wanted++] = objects_at(objects, i)->place;
    }
    if (wanted && !names_find(namer, &source, places, wanted, &names)) {
        for (uint32_t i = 1; i <= count; i++) {
            if (!is_in(objects_at(objects, i), file))
                continue;
            if (names.number[at])
                objects_set_symbol(objects, i, names.name[names.number[at]]);
            at++;
        }
        names_free(&names);
    }
    free(places);
}

void why_find_symbols(struct objects *objects, bool fetched)
{
    struct namer namer = {.wasted_count = 0};

    for (int file = 0; objects_file(objects, file) != OBJECTS_NO_FILE; file++) {
        if (objects_file(objects, file) >= 0)
            find_in_file(objects, file, fetched, &namer);
    }
}
#else
void why_find_symbols(struct objects *objects, bool fetched)
{
    (void)objects;
    (void)fetched;
}
#endif
