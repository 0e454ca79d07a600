/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct wire_header) == 16, "wire_header");
_Static_assert(sizeof(struct wire_hello) == 24, "wire_hello");
_Static_assert(sizeof(struct wire_hello_answer) == 40, "wire_hello_answer");
_Static_assert(sizeof(struct wire_open) == 24, "wire_open");
_Static_assert(sizeof(struct wire_open_answer) == 24, "wire_open_answer");
_Static_assert(sizeof(struct wire_profile) == 12, "wire_profile");
_Static_assert(sizeof(struct wire_profile_answer) == 20, "wire_profile_answer");
_Static_assert(sizeof(struct wire_scope) == 24, "wire_scope");
_Static_assert(sizeof(struct wire_program) == 40, "wire_program");
_Static_assert(sizeof(struct wire_programs_answer) <= WIRE_MAX - sizeof(struct wire_header),
               "wire_programs_answer");

int wire_take(const uint8_t *bytes, size_t have, struct wire_message *ret)
{
    struct wire_header header;

    if (have < sizeof(header))
        return 0;
    memcpy(&header, bytes, sizeof(header));
    if (header.length < sizeof(header) || header.pad)
        return -EBADMSG;
    if (header.length > WIRE_MAX)
        return -EMSGSIZE;
    if (have < header.length)
        return 0;
    ret->header = header;
    ret->payload = bytes + sizeof(header);
    ret->size = header.length - sizeof(header);
    return (int)header.length;
}

int wire_answer(const struct wire_message *message, size_t least, void *ret, size_t size)
{
    size_t there = message->size < size ? message->size : size;

    if (message->size < least)
        return -EBADMSG;
    if (!size)
        return 0; /* nothing is wanted, perhaps into nothing */
    memcpy(ret, message->payload, there);
    memset((uint8_t *)ret + there, 0, size - there);
    return 0;
}

int wire_request(const struct wire_message *message, size_t least, void *ret, size_t size)
{
    for (size_t i = size; i < message->size; i++) {
        if (message->payload[i])
            return -E2BIG;
    }
    return wire_answer(message, least, ret, size);
}

size_t wire_make(uint8_t *buffer, uint16_t type, uint32_t id, int status, const void *payload,
                 size_t size)
{
    struct wire_header header = {.type = type, .id = id, .status = status};

    if (size > WIRE_MAX - sizeof(header))
        size = WIRE_MAX - sizeof(header);
    header.length = (uint32_t)(sizeof(header) + size);
    memcpy(buffer, &header, sizeof(header));
    if (size)
        memcpy(buffer + sizeof(header), payload, size);
    return header.length;
}

const char *wire_type_name(uint16_t type)
{
    static const char *const names[] = {
        [WIRE_HELLO] = "hello",
        [WIRE_OPEN] = "open",
        [WIRE_PROFILE] = "profile",
        [WIRE_SCOPE] = "scope",
        [WIRE_RELEASE] = "release",
        [WIRE_RELEASE_EXITED] = "release-exited",
        [WIRE_REFRESH] = "refresh",
        [WIRE_PROCESSORS] = "processors",
        [WIRE_KERNEL_STACK] = "kernel-stack",
        [WIRE_PROGRAMS] = "programs",
        [WIRE_RELEASE_SOME] = "release-some",
    };

    return type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}
