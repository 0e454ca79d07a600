/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of C++ and Rust. Expected are the names by the rules of the Itanium C++ ABI and of
 * Rust's RFC 2603, written by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "demangle.h"

static void names(void **state)
{
    static const struct {
        const char *symbol, *name;
    } rows[] = {
        {"_ZN4demo4spinEi", "demo::spin(int)"},
        {"_ZN4demo4spinEi.cold", "demo::spin(int) [clone .cold]"},
        {"_ZNK4demo3Box3getEv", "demo::Box::get() const"},
        {"_Z3addIdET_S0_S0_", "double add<double>(double, double)"},
        {"_RNvC7mycrate3foo", "mycrate::foo"},
        {"_ZN4demo4spin17h0123456789abcdefE", "demo::spin"},
        /* left alone */
        {"main", "main"},
        {"", ""},
        {"_", "_"},
        {"_Z", "_Z"},
        {"_Zebra", "_Zebra"},
        {"_ZN4demo4spinE", NULL}, /* a name without parameters: of a variable */
        {"_ZN4demo9spin", "_ZN4demo9spin"},
        {"_R", "_R"},
        {"__ZN4demo4spinEi", "__ZN4demo4spinEi"},
    };
    char buffer[DEMANGLED_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(demangle(rows[i].symbol, buffer),
                            rows[i].name ? rows[i].name : "demo::spin");
}

/* f(A<int,int>, A<that,that>, ...): each parameter is twice as long as the one before. */
static void doubling(unsigned times, char *ret, size_t size)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t used = (size_t)snprintf(ret, size, "_Z1f1AIiiE");

    for (unsigned i = 0; i < times; i++)
        used += (size_t)snprintf(ret + used, size - used, "S_IS%c_S%c_E", digits[i], digits[i]);
}

/* A symbol table is a file that anybody may have written. */
static void without_end(void **state)
{
    char buffer[DEMANGLED_MAX], symbol[1024], *deep = malloc(100000);

    (void)state;
    doubling(3, symbol, sizeof(symbol));
    assert_string_equal(demangle(symbol, buffer),
                        "f(A<int, int>, A<A<int, int>, A<int, int> >, "
                        "A<A<A<int, int>, A<int, int> >, A<A<int, int>, A<int, int> > >, "
                        "A<A<A<A<int, int>, A<int, int> >, A<A<int, int>, A<int, int> > >, "
                        "A<A<A<int, int>, A<int, int> >, A<A<int, int>, A<int, int> > > >)");
    doubling(36, symbol, sizeof(symbol)); /* 2^36 ints */
    assert_string_equal(demangle(symbol, buffer), symbol);
    for (size_t length = 2000; length < 100000; length += 32000) {
        memset(deep, 'P', length); /* pointers to pointers ... */
        memcpy(deep, "_Z1f", 4);
        strcpy(deep + length - 1, "i");
        assert_non_null(demangle(deep, buffer));
    }
    free(deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(without_end)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
