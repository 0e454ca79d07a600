/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

int ring_make(size_t bytes, struct ring *ret)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct ring ring = {.bytes = bytes};
    void *consumer, *producer;

    ring.fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "prcb_ring", 0, 0, (__u32)bytes, NULL);
    if (ring.fd < 0)
        return -errno;
    consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0);
    /* The kernel maps the data twice in a row, so no record is cut. */
    producer = consumer == MAP_FAILED
                   ? MAP_FAILED
                   : mmap(NULL, page + 2 * bytes, PROT_READ, MAP_SHARED, ring.fd, (off_t)page);
    if (producer == MAP_FAILED) {
        int code = -errno;

        if (consumer != MAP_FAILED)
            munmap(consumer, page);
        close(ring.fd);
        return code;
    }
    ring.consumer = consumer;
    ring.producer = producer;
    ring.data = (const uint8_t *)producer + page;
    *ret = ring;
    return 0;
}

void ring_close(struct ring *ring)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (!ring->consumer)
        return;
    munmap(ring->consumer, page);
    munmap((void *)ring->producer, page + 2 * ring->bytes);
    close(ring->fd);
    ring->consumer = NULL;
    ring->fd = -1;
}

int ring_read(struct ring *ring, int (*fn)(const void *record, size_t bytes, void *ctx), void *ctx)
{
    uint64_t at = *ring->consumer;
    int result = 0;

    /* This pairs with the kernel's store-release of the producer's position at a reserve, and of
     * the record's header at its submit. */
    while (!result && at < __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE)) {
        const uint8_t *record = ring->data + (at & (ring->bytes - 1));
        uint32_t length = __atomic_load_n((const uint32_t *)record, __ATOMIC_ACQUIRE);

        if (length & BPF_RINGBUF_BUSY_BIT)
            break;
        if (!(length & BPF_RINGBUF_DISCARD_BIT))
            result = fn(record + BPF_RINGBUF_HDR_SZ, length, ctx);
        length &= ~BPF_RINGBUF_DISCARD_BIT;
        at += (length + BPF_RINGBUF_HDR_SZ + 7) & ~7u;
        /* This pairs with the kernel's load-acquire of it at a reserve: the place is free. */
        __atomic_store_n(ring->consumer, at, __ATOMIC_RELEASE);
    }
    return result;
}

void ring_skip(struct ring *ring)
{
    /* Reads as ring_read does; a record that is being written is thrown away too, for the kernel
     * writes it where it was reserved, whatever the consumer's position is. */
    __atomic_store_n(ring->consumer, __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE),
                     __ATOMIC_RELEASE);
}
