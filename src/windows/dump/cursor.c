/* SPDX-License-Identifier: BSD-2-Clause */
#include "cursor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SMALL_FILE (64 << 20) /* below it, the kernel's read-ahead helps */

int dump_file_map(int fd, const char *name, struct dump_file *ret, struct prcb_error *err)
{
    struct stat st;
    void *bytes;

    if (fstat(fd, &st))
        return prcb_fail(err, -errno, "%s: cannot stat: %s", name, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return prcb_fail(err, -EISDIR, "%s: is a directory, not a dump", name);
    if (!S_ISREG(st.st_mode))
        return prcb_fail(err, -EINVAL, "%s: not a regular file; copy the dump to one", name);
    if (!st.st_size)
        return prcb_fail(err, -ENODATA, "%s: the file is empty", name);
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (bytes == MAP_FAILED)
        return prcb_fail(err, -errno, "%s: cannot map the file: %s", name, strerror(errno));
    if (st.st_size > SMALL_FILE) /* few pages are read, far apart */
        madvise(bytes, (size_t)st.st_size, MADV_RANDOM);
    *ret = (struct dump_file){bytes, (uint64_t)st.st_size, name, true};
    return 0;
}

void dump_file_unmap(struct dump_file *file)
{
    if (file->is_mapped)
        munmap((void *)file->bytes, (size_t)file->size);
    *file = (struct dump_file){0};
}

bool dump_file_holds(const struct dump_file *file, uint64_t offset, uint64_t length)
{
    return offset <= file->size && length <= file->size - offset;
}

int cursor_fail(const struct dump_cursor *c, int code, const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    prcb_fail(c->err, code, "%s: offset 0x%llx: %s", c->file->name, (unsigned long long)c->previous,
              text);
    if (c->err)
        c->err->offset = c->previous;
    return code;
}

int cursor_bytes(struct dump_cursor *c, const char *what, uint64_t length, const uint8_t **ret)
{
    c->previous = c->at;
    if (!dump_file_holds(c->file, c->at, length))
        return cursor_fail(c, -ENODATA, "%s needs 0x%llx bytes, the file ends at 0x%llx", what,
                           (unsigned long long)length, (unsigned long long)c->file->size);
    *ret = c->file->bytes + c->at;
    c->at += length;
    return 0;
}

int cursor_u32(struct dump_cursor *c, const char *what, uint32_t *ret)
{
    const uint8_t *bytes = NULL;
    int err = cursor_bytes(c, what, sizeof(*ret), &bytes);

    if (!err)
        *ret = (uint32_t)load_le(bytes, sizeof(*ret));
    return err;
}

int cursor_u64(struct dump_cursor *c, const char *what, uint64_t *ret)
{
    const uint8_t *bytes = NULL;
    int err = cursor_bytes(c, what, sizeof(*ret), &bytes);

    if (!err)
        *ret = load_le(bytes, sizeof(*ret));
    return err;
}

uint64_t load_le(const uint8_t *bytes, size_t size)
{
    uint64_t value = 0;

    for (size_t i = size; i > 0; i--)
        value = value << 8 | bytes[i - 1];
    return value;
}
