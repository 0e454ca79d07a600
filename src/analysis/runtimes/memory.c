/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRESENT (1ull << 63) /* /proc/PID/pagemap */
#define SWAPPED (1ull << 62)

void memory_init(struct memory *m)
{
    *m = (struct memory){.mem = -1, .pagemap = -1, .page_size = (uint64_t)sysconf(_SC_PAGESIZE)};
}

void memory_deinit(struct memory *m)
{
    if (m->mem >= 0)
        close(m->mem);
    if (m->pagemap >= 0)
        close(m->pagemap);
    free(m->pages);
    memory_init(m);
}

void memory_begin(struct memory *m)
{
    m->question++;
    m->left = MEMORY_MOST;
    if (!m->pages)
        m->pages = calloc(MEMORY_SLOTS, sizeof(*m->pages));
}

/* Whether a page can be read without waiting for others. */
static bool is_at_hand(struct memory *m, uint64_t address)
{
    uint64_t page = address / m->page_size, first = page - page % MEMORY_RUN;
    struct memory_run *run = &m->runs[first / MEMORY_RUN % MEMORY_RUNS];

    if (run->question != m->question || run->first != first) {
        ssize_t got = pread(m->pagemap, run->entries, sizeof(run->entries),
                            (off_t)(first * sizeof(*run->entries)));

        got = got > 0 ? got : 0;
        memset((char *)run->entries + got, 0, sizeof(run->entries) - (size_t)got);
        run->question = m->question;
        run->first = first;
    }
    return run->entries[page - first] & (PRESENT | SWAPPED);
}

static bool fetch(struct memory *m, uint64_t address, unsigned char *to)
{
    if (m->fetch)
        return m->fetch(m->ctx, address, to);
    return m->mem >= 0 && address <= INT64_MAX && is_at_hand(m, address) &&
           pread(m->mem, to, MEMORY_PAGE, (off_t)address) == MEMORY_PAGE;
}

/* Returns the page that begins at an address; NULL: it cannot be had. */
static const struct memory_page *page_at(struct memory *m, uint64_t address)
{
    struct memory_page *page = &m->pages[address / MEMORY_PAGE % MEMORY_SLOTS];

    if (page->question == m->question && page->address == address)
        return page;
    if (!m->left)
        return NULL;
    m->left--;
    page->question = 0;
    if (!fetch(m, address, page->bytes))
        return NULL;
    page->address = address;
    page->question = m->question;
    return page;
}

bool memory_bytes(struct memory *m, uint64_t address, void *to, size_t size)
{
    unsigned char *at = to;

    if (!m->pages || address + size < address)
        return false;
    while (size) {
        size_t from = (size_t)(address % MEMORY_PAGE);
        size_t step = MEMORY_PAGE - from < size ? MEMORY_PAGE - from : size;
        const struct memory_page *page = page_at(m, address - from);

        if (!page)
            return false;
        memcpy(at, page->bytes + from, step);
        at += step;
        address += step;
        size -= step;
    }
    return true;
}

bool memory_word(struct memory *m, uint64_t address, uint64_t *ret)
{
    return memory_bytes(m, address, ret, sizeof(*ret));
}
