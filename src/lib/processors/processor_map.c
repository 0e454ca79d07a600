/* SPDX-License-Identifier: BSD-2-Clause */
#include "processor_map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "error.h"
#include "seqcount_abi.h"
#include "writer_wait.h"

static size_t pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

static int check_head(const struct prcb_processor_head *head, struct prcb_error *err)
{
    if (head->magic != PRCB_PROCESSOR_MAGIC)
        return prcb_fail(err, -EPROTO, "these are no processor blocks (magic 0x%x)", head->magic);
    if (head->abi_major != PRCB_PROCESSOR_MAJOR)
        return prcb_fail(err, -EPROTO,
                         "processor blocks of version %u: this library (%s) reads version %u",
                         head->abi_major, PRCB_VERSION, PRCB_PROCESSOR_MAJOR);
    if (!head->count || head->count > MOST_PROCESSORS || head->block_stride % 8 ||
        head->block_size < PROCESSOR_TIMES_BYTES || head->block_stride < head->block_size ||
        head->block_stride < sizeof(*head) || head->block_stride > 1u << 20)
        return prcb_fail(err, -EPROTO, "the head of the processor blocks makes no sense");
    return 0;
}

int processor_map_open(int fd, struct processor_map *ret, struct prcb_error *err)
{
    size_t bytes = pages(sizeof(struct prcb_processor_head));
    struct prcb_processor_head head;
    void *memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    int result;

    if (memory == MAP_FAILED)
        return prcb_fail(err, -errno, "the processor blocks cannot be mapped: %s", strerror(errno));
    memcpy(&head, memory, sizeof(head));
    munmap(memory, bytes);
    result = check_head(&head, err);
    if (result)
        return result;
    bytes = pages((size_t)head.block_stride * (head.count + 1));
    memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return prcb_fail(err, -errno, "the blocks of %u processors cannot be mapped: %s",
                         head.count, strerror(errno));
    *ret = (struct processor_map){
        .memory = memory,
        .bytes = bytes,
        .count = head.count,
        .stride = head.block_stride,
        .block_size = head.block_size,
        .features = head.features,
    };
    return 0;
}

int processor_map_add_threads(struct processor_map *map, int fd, struct prcb_error *err)
{
    void *memory =
        mmap(NULL, pages(map->count * sizeof(*map->threads)), PROT_READ, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        return prcb_fail(err, -errno, "the threads of %u processors cannot be mapped: %s",
                         map->count, strerror(errno));
    map->threads = memory;
    return 0;
}

void processor_map_close(struct processor_map *map)
{
    if (map->threads)
        munmap((void *)map->threads, pages(map->count * sizeof(*map->threads)));
    if (map->memory)
        munmap((void *)map->memory, map->bytes);
    *map = (struct processor_map){0};
}

uint64_t processor_map_ended(const struct processor_map *map)
{
    const struct prcb_processor_head *head = (const struct prcb_processor_head *)map->memory;

    /* The load is relaxed: it goes with no other word (prcb_processors_end). Older writers have 0
     * there. */
    return __atomic_load_n(&head->ended, __ATOMIC_RELAXED);
}

/* Copies a block. thread is of the same moment, for it is written under the same count; NULL: not
 * wanted. */
static int copy(const struct processor_map *map, uint32_t number, size_t bytes,
                struct prcb_processor_block *ret, struct prcb_processor_thread *thread,
                uint32_t *retries)
{
    const struct prcb_processor_block *block =
        (const struct prcb_processor_block *)(map->memory + (size_t)map->stride * (number + 1));
    struct seq_part parts[2] = {{ret, block, 0},
                                {thread, thread ? map->threads + number : NULL, sizeof(*thread)}};

    if (bytes > map->block_size) {
        memset((char *)ret + map->block_size, 0, bytes - map->block_size);
        bytes = map->block_size;
    }
    parts[0].bytes = (uint32_t)bytes;
    return seq_copy_parts(&block->seq, parts, thread ? 2 : 1, retries);
}

int processor_block_copy(const struct processor_map *map, uint32_t number, size_t bytes,
                         struct prcb_processor_block *ret, uint32_t *retries)
{
    return copy(map, number, bytes, ret, NULL, retries);
}

int processor_block_copy_with_thread(const struct processor_map *map, uint32_t number,
                                     struct prcb_processor_block *ret,
                                     struct prcb_processor_thread *ret_thread, uint32_t *retries)
{
    return copy(map, number, sizeof(*ret), ret, map->threads ? ret_thread : NULL, retries);
}
