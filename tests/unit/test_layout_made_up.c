/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A version that somebody adds claims nothing: the catalog compiled once more, with two versions
 * that nobody read (tests/layout/made_up_versions.def), but for one structure in one of them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <prcb/layout.h>

static struct prcb_layout *found(const char *structure, const char *version)
{
    struct prcb_layout *l;

    return prcb_layout_find(structure, version, PRCB_ARCH_X64, &l, NULL) ? NULL : l;
}

/* All its fields are of this grade, down through nesting; those of others are inferred. */
static void assert_fields(const struct prcb_layout *l, const char *source)
{
    size_t count;
    const struct prcb_layout_field *members = prcb_layout_members(l, &count);

    for (size_t i = 0; i < count; i++) {
        assert_string_equal(members[i].source, source);
        if (members[i].layout) {
            assert_string_equal(prcb_layout_source(members[i].layout), "inferred");
            assert_fields(members[i].layout, "inferred");
        }
    }
}

static void nothing_is_claimed(void **state)
{
    size_t count = 0;
    const char *name;

    for (unsigned int i = 0; (name = prcb_layout_structure_at(i)); i++) {
        struct prcb_layout *l = found(name, "10.0.26300"), *same = found(name, "10.0.26100");

        assert_int_equal(l != NULL, same != NULL);
        if (l) {
            assert_string_equal(prcb_layout_source(l), "inferred");
            assert_non_null(strstr(prcb_layout_note(l), "was not read in 10.0.26300: inferred"));
            assert_int_equal(prcb_layout_size(l), prcb_layout_size(same));
            assert_fields(l, "inferred");
            count++;
        }
        prcb_layout_close(l);
        prcb_layout_close(same);
    }
    assert_true(count > 50);
}

static void what_was_read_is_said(void **state)
{
    struct prcb_layout *l = found("KDPC", "10.0.26400"), *other = found("KTIMER", "10.0.26400");
    size_t count;
    const struct prcb_layout_field *members = prcb_layout_members(l, &count);

    assert_string_equal(prcb_layout_source(l), "header");
    assert_string_equal(prcb_layout_note(l), "");
    assert_string_equal(members[0].source, "symbols"); /* its row's */
    assert_string_equal(prcb_layout_source(other), "inferred");
    prcb_layout_close(l);
    prcb_layout_close(other);
}

/* One that is in no row at all is the nearest that is known, and says so. */
static void no_row_at_all(void **state)
{
    struct prcb_layout *l = found("KDPC", "10.0.27000");

    assert_string_equal(prcb_layout_source(l), "inferred");
    assert_non_null(strstr(prcb_layout_note(l), "past 10.0.26400, the last build known"));
    assert_fields(l, "inferred");
    prcb_layout_close(l);
    l = found("KDPC", "10.0.22621.382");
    assert_string_equal(prcb_layout_source(l), "symbols");
    prcb_layout_close(l);
    l = found("KDPC", "10.0.22621.383");
    assert_string_equal(prcb_layout_source(l), "inferred");
    prcb_layout_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_claimed),
        cmocka_unit_test(what_was_read_is_said),
        cmocka_unit_test(no_row_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
