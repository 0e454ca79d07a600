/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program and a stack of anybody's: registers, the bytes of a stack, then an ELF file; once of a
 * thread that waits, once of one that ran, whose registers are the stack's first bytes. Frames are
 * as many as there is room for at most, at least one, and have names that end.
 */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind.h"

#define FRAMES 32
#define BASE   0x400000 /* where the file is mapped */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* A file's headers make libdw ask for any amount of memory. The child that unwinds is refused it,
 * too. */
const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=1024:allocator_may_return_null=1";
}

struct head {
    struct frozen_registers at;
    uint16_t length; /* of the stack */
} __attribute__((packed));

static void unwind(struct image *image, const struct frozen *frozen)
{
    uint64_t frames[FRAMES];
    enum stack_end end;
    char name[64];
    size_t count = image_unwind(image, frozen, frames, FRAMES, &end);

    assert(count && count <= FRAMES && end <= STACK_DEEP);
    for (size_t i = 0; i < count; i++) {
        image_name(image, frames[i], name, sizeof(name));
        assert(memchr(name, '\0', sizeof(name)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t registers[FROZEN_REGISTERS] = {0};
    struct frozen frozen = {0};
    struct image *image;
    struct head head;
    int fd;

    if (size < sizeof(head))
        return 0;
    memcpy(&head, data, sizeof(head));
    data += sizeof(head);
    size -= sizeof(head);
    frozen.at = head.at;
    frozen.low = head.at.sp;
    frozen.bytes = (unsigned char *)(uintptr_t)data;
    frozen.length = frozen.room = head.length < size ? head.length : size;
    fd = memfd_create("fuzz", MFD_CLOEXEC);
    assert(fd >= 0 && !image_open(NULL, &image));
    assert(write(fd, data + frozen.length, size - frozen.length) ==
           (ssize_t)(size - frozen.length));
    if (!image_add(image, &(struct image_file){BASE, fd, "file"}) && !image_ready(image)) {
        unwind(image, &frozen);
        memcpy(registers, frozen.bytes,
               frozen.length < sizeof(registers) ? frozen.length : sizeof(registers));
        frozen.registers = registers;
        unwind(image, &frozen);
    }
    image_close(image);
    return 0;
}
