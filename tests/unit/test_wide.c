/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Products of 128 bits by hand, as 32-bit processors have them, against known ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#undef __SIZEOF_INT128__ /* as on a compiler that has no such numbers */
#include "wide.h"

#define MOST UINT64_MAX

/* a * b = high, low; what the shifts and the quotients are of that. */
static const struct {
    uint64_t a, b, high, low, by_3; /* by_3: low 64 bits of a * b / 3 */
} products[] = {
    {0, MOST, 0, 0, 0},
    {1, MOST, 0, MOST, 0x5555555555555555},
    {MOST, MOST, 0xfffffffffffffffe, 1, 0xaaaaaaaaaaaaaaab},
    {0x100000000, 0x100000000, 1, 0, 0x5555555555555555},
    {0x123456789abcdef0, 0xfedcba9876543210, 0x121fa00ad77d7422, 0x236d88fe5618cf00,
     0x612482ff72084500},
    {1000000007, 998244353, 0, 0xdda79f4dc1aca07, 0x49e28a6f408ee02},
};

static void products_are_whole(void **state)
{
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        struct wide_product p = wide_multiply(products[i].a, products[i].b);

        assert_true(p.high == products[i].high && p.low == products[i].low);
        p = wide_multiply(products[i].b, products[i].a);
        assert_true(p.high == products[i].high && p.low == products[i].low);
        for (unsigned shift = 1; shift < 64; shift++)
            assert_true(wide_shift(products[i].a, products[i].b, shift) ==
                        (p.high << (64 - shift) | p.low >> shift));
    }
}

static void quotients(void **state)
{
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        if (products[i].b && products[i].a)
            assert_true(wide_scale(products[i].a, products[i].b, products[i].b) == products[i].a);
        assert_true(wide_scale(products[i].a, products[i].b, 3) == products[i].by_3);
        assert_true(wide_scale(products[i].a, products[i].b, 1) == products[i].low);
    }
    assert_true(wide_scale(MOST, MOST, MOST) == MOST);
    assert_true(wide_scale(MOST, 1ull << 63, MOST) == 1ull << 63);
    assert_true(wide_scale(3000000000, 1ull << 32, 2999999999) == (1ull << 32) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_whole),
        cmocka_unit_test(quotients),
    };

    return cmocka_run_group_tests_name("wide", tests, NULL, NULL);
}
