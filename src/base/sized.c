/* SPDX-License-Identifier: BSD-2-Clause */
#include "sized.h"

#include <errno.h>
#include <string.h>

#include "error.h"

static size_t size_of(const void *sized)
{
    return *(const size_t *)sized;
}

int sized_take_options(const char *name, const void *from, void *ret, size_t size,
                       struct prcb_error *err)
{
    const char *bytes = from;

    memset(ret, 0, size);
    if (!from)
        return 0;
    if (size_of(from) < sizeof(size_t))
        return prcb_fail(err, -EINVAL, "%s.size is not set", name);
    for (size_t i = size; i < size_of(from); i++) {
        if (bytes[i])
            return prcb_fail(err, -E2BIG, "%s has a member that this library (%s) does not support",
                             name, PRCB_VERSION);
    }
    sized_take_record(from, ret, size);
    return 0;
}

void sized_take_record(const void *from, void *ret, size_t size)
{
    memset(ret, 0, size);
    memcpy(ret, from, size_of(from) < size ? size_of(from) : size);
}

int sized_hand_out(const void *from, size_t size, void *ret)
{
    size_t room = size_of(ret);

    if (room < sizeof(size_t))
        return -EINVAL;
    if (room > size) {
        memset((char *)ret + size, 0, room - size);
        room = size;
    }
    memcpy((char *)ret + sizeof(size_t), (const char *)from + sizeof(size_t),
           room - sizeof(size_t));
    return 0;
}
