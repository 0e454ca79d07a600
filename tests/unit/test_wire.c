/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The codec of what libprcb and prcbd say to each other, against bytes written by hand.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire.h"

/* Little-endian, as both architectures are that prcbd is built on. */
static const uint8_t release[] = {24, 0, 0, 0, 5,    0,    0,    0,    7,    0,    0,    0,
                                  0,  0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};

static void messages_are_made_and_taken(void **state)
{
    const struct wire_release payload = {.key = 0x1122334455667788};
    struct wire_release back;
    struct wire_message message;
    uint8_t bytes[WIRE_MAX];

    assert_int_equal(wire_make(bytes, WIRE_RELEASE, 7, 0, &payload, sizeof(payload)), 24);
    assert_memory_equal(bytes, release, sizeof(release));
    for (size_t have = 0; have < sizeof(release); have++)
        assert_int_equal(wire_take(release, have, &message), 0);
    assert_int_equal(wire_take(release, sizeof(release), &message), 24);
    assert_int_equal(message.header.type, WIRE_RELEASE);
    assert_int_equal(message.header.id, 7);
    assert_int_equal(message.size, 8);
    assert_int_equal(wire_request(&message, sizeof(back), &back, sizeof(back)), 0);
    assert_true(back.key == payload.key);
}

static void no_messages(void **state)
{
    uint8_t bytes[WIRE_MAX] = {0};
    struct wire_message message;

    memcpy(bytes, release, sizeof(release));
    for (uint8_t length = 0; length < 16; length++) {
        bytes[0] = length;
        assert_int_equal(wire_take(bytes, sizeof(bytes), &message), -EBADMSG);
    }
    bytes[0] = 16;
    assert_int_equal(wire_take(bytes, sizeof(bytes), &message), 16);
    assert_int_equal(message.size, 0);
    bytes[6] = 1; /* what is to be zero */
    assert_int_equal(wire_take(bytes, sizeof(bytes), &message), -EBADMSG);
    bytes[6] = 0;
    bytes[0] = 0;
    bytes[1] = WIRE_MAX >> 8;
    assert_int_equal(wire_take(bytes, sizeof(bytes), &message), WIRE_MAX);
    bytes[0] = 1;
    assert_int_equal(wire_take(bytes, sizeof(bytes), &message), -EMSGSIZE);
    bytes[3] = 0xff;
    assert_int_equal(wire_take(bytes, 16, &message), -EMSGSIZE);
}

static void other_ages(void **state)
{
    uint8_t payload[32] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}, bytes[WIRE_MAX];
    struct wire_profile profile = {.what = 9, .number = 9, .follow = 9};
    struct wire_message message;

    /* Shorter than is known, with what must be there and without. */
    wire_take(bytes, wire_make(bytes, WIRE_PROFILE, 1, 0, payload, 8), &message);
    assert_int_equal(wire_request(&message, 12, &profile, sizeof(profile)), -EBADMSG);
    assert_int_equal(profile.what, 9);
    assert_int_equal(wire_request(&message, 8, &profile, sizeof(profile)), 0);
    assert_int_equal(profile.number, 2);
    assert_int_equal(profile.follow, 0);
    /* Longer: what is not known must be zero in a request, and is ignored in an answer. */
    wire_take(bytes, wire_make(bytes, WIRE_PROFILE, 1, 0, payload, 32), &message);
    assert_int_equal(wire_request(&message, 12, &profile, sizeof(profile)), 0);
    assert_int_equal(profile.follow, 3);
    payload[31] = 1;
    wire_take(bytes, wire_make(bytes, WIRE_PROFILE, 1, 0, payload, 32), &message);
    assert_int_equal(wire_request(&message, 12, &profile, sizeof(profile)), -E2BIG);
    assert_int_equal(wire_answer(&message, 12, &profile, sizeof(profile)), 0);
    /* Nothing is wanted. */
    assert_int_equal(wire_answer(&message, 0, NULL, 0), 0);
}

static void long_words_are_cut(void **state)
{
    char words[2 * WIRE_MAX];
    uint8_t bytes[WIRE_MAX];
    struct wire_message message;

    memset(words, 'x', sizeof(words));
    assert_int_equal(wire_make(bytes, WIRE_OPEN, 3, -EPERM, words, sizeof(words)), WIRE_MAX);
    assert_int_equal(wire_take(bytes, sizeof(bytes), &message), WIRE_MAX);
    assert_int_equal(message.header.status, -EPERM);
    assert_int_equal(message.size, WIRE_MAX - 16);
}

static void types_have_names(void **state)
{
    assert_string_equal(wire_type_name(WIRE_HELLO), "hello");
    assert_string_equal(wire_type_name(WIRE_PROCESSORS), "processors");
    assert_string_equal(wire_type_name(WIRE_KERNEL_STACK), "kernel-stack");
    assert_string_equal(wire_type_name(WIRE_RELEASE_SOME), "release-some");
    assert_null(wire_type_name(0));
    assert_string_equal(wire_type_name(WIRE_PROGRAMS), "programs");
    assert_null(wire_type_name(WIRE_RELEASE_SOME + 1));
    assert_null(wire_type_name(65535));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_made_and_taken),
        cmocka_unit_test(no_messages),
        cmocka_unit_test(other_ages),
        cmocka_unit_test(long_words_are_cut),
        cmocka_unit_test(types_have_names),
    };

    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
