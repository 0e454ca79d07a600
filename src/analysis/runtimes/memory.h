/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The memory of another process, a page at a time, for readers that follow its pointers. A page is
 * read once in a question, only if it is there or swapped out (nobody is waited for who serves
 * it), and a question reads a bounded number of pages: a loop in that memory ends.
 *
 * Threads  One memory by one thread at a time.
 */
#ifndef PRCB_RUNTIMES_MEMORY_H
#define PRCB_RUNTIMES_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMORY_PAGE  4096u
#define MEMORY_SLOTS 256u  /* pages that are kept, by address */
#define MEMORY_MOST  8192u /* pages that one question reads */
#define MEMORY_RUN   8u    /* entries of pagemap that are read at once, */
#define MEMORY_RUNS  64u   /* and how many times so many are kept */

struct memory {
    /* /proc/PID/mem and /proc/PID/pagemap, which the memory owns; -1: there are none. */
    int mem, pagemap;
    /* Reads a page in place of these, for tests; false: it is not there. */
    bool (*fetch)(void *ctx, uint64_t address, unsigned char *to);
    void *ctx;
    uint64_t page_size;
    unsigned left;     /* pages that this question may read */
    uint64_t question; /* its number, from 1 */
    struct memory_page {
        uint64_t address, question;
        unsigned char bytes[MEMORY_PAGE];
    } * pages; /* MEMORY_SLOTS, from the first question on */
    struct memory_run {
        uint64_t first, question; /* number of the first page */
        uint64_t entries[MEMORY_RUN];
    } runs[MEMORY_RUNS];
};

void memory_init(struct memory *m);
void memory_deinit(struct memory *m);

/* Begins a question: nothing that was read before it is believed. */
void memory_begin(struct memory *m);
/* All of it, or false. */
bool memory_bytes(struct memory *m, uint64_t address, void *to, size_t size);
bool memory_word(struct memory *m, uint64_t address, uint64_t *ret);

#endif
