/* SPDX-License-Identifier: BSD-2-Clause */
#include "page_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "sip_hash.h"
#include "text.h"

int page_names_init(struct page_names *ret, bool redact)
{
    *ret = (struct page_names){.redact = redact};
    if (redact && getrandom(ret->key, sizeof(ret->key), 0) != sizeof(ret->key))
        return errno ? -errno : -EIO;
    return 0;
}

char *page_names_show(const struct page_names *names, const char *name)
{
    size_t length = strlen(name);
    char *shown;

    if (names->redact && length && name[0] != '[') {
        uint64_t hash = sip_hash(names->key, name, length);

        return asprintf(&shown, "n%012" PRIx64, hash >> 16) < 0 ? NULL : shown;
    }
    shown = malloc(length + 1);
    if (shown)
        text_copy(TEXT_MARKS, name, shown, length + 1);
    return shown;
}
