/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What others wrote, as terminals, logs and documents may have it. Which bytes are UTF-8 is asked
 * of the C library, for all there are.
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#include "error.h"
#include "text.h"

static const struct {
    const char *text, *marks, *escapes, *json, *document;
} cases[] = {
    {"worker", "worker", "worker", "worker", "worker"},
    {"a\x1b[2J", "a?[2J", "a\\x1b[2J", "a\\u001b[2J", "a\\u001b[2J"},
    {"tab\tnl\n\x7f", "tab?nl??", "tab\\x09nl\\x0a\\x7f", "tab\\u0009nl\\u000a\\u007f",
     "tab\tnl\n\\u007f"},
    {"say \"\\\"", "say \"\\\"", "say \"\\\"", "say \\\"\\\\\\\"", "say \"\\\""},
    {"f\xc3\xbcr", "f\xc3\xbcr", "f\xc3\xbcr", "f\xc3\xbcr", "f\xc3\xbcr"},
    {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80",
     "\xf0\x9f\x98\x80"},
    {"cut\xe2\x82", "cut??", "cut\\xe2\\x82", "cut\\ufffd\\ufffd", "cut\\ufffd\\ufffd"},
    {"\x9b\xff", "??", "\\x9b\\xff", "\\ufffd\\ufffd", "\\ufffd\\ufffd"},
    {"\xc2\x9b"
     "2J",
     "?2J", "\\xc2\\x9b2J", "\\u009b2J", "\\u009b2J"},
    {"over\xc0\xaf", "over??", "over\\xc0\\xaf", "over\\ufffd\\ufffd", "over\\ufffd\\ufffd"},
    /* a name that reads "txt.exe" as "exe.txt", isolates, marks, and line ends of Unicode's */
    {"\u202etxt.exe", "?txt.exe", "\\xe2\\x80\\xaetxt.exe", "\\u202etxt.exe", "\\u202etxt.exe"},
    {"\u2066\u200f\u061c\u2028", "????", "\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xd8\\x9c\\xe2\\x80\\xa8",
     "\\u2066\\u200f\\u061c\\u2028", "\\u2066\\u200f\\u061c\\u2028"},
    {"", "", "", "", ""},
};

static void check_form(enum text_form form, const char *text, const char *expected)
{
    char copied[256], *printed;
    size_t size;
    FILE *out = open_memstream(&printed, &size);

    assert_int_equal(text_copy(form, text, copied, sizeof(copied)), strlen(expected));
    assert_string_equal(copied, expected);
    assert_non_null(out);
    text_print(out, form, text);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(printed, expected);
    free(printed);
}

static void nothing_drives_the_terminal(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_form(TEXT_MARKS, cases[i].text, cases[i].marks);
        check_form(TEXT_ESCAPES, cases[i].text, cases[i].escapes);
        check_form(TEXT_JSON, cases[i].text, cases[i].json);
        check_form(TEXT_DOCUMENT, cases[i].text, cases[i].document);
    }
}

static void labels_stay_different(void **state)
{
    check_form(TEXT_LABEL, "/a b/\u00fc", "/a b/\u00fc");
    check_form(TEXT_LABEL, "say \"\\x2d\"", "say \\\"\\\\x2d\\\"");
    check_form(TEXT_LABEL, "a\nb\x01\xff",
               "a\ufffd"
               "0ab\ufffd"
               "01\ufffd"
               "ff");
    check_form(TEXT_LABEL, "\u202e", "\ufffde2\ufffd80\ufffdae");
    check_form(TEXT_LABEL, "\ufffd01", "\ufffd\ufffd01");
    check_form(TEXT_LABEL, "", "");
}

static void texts_are_cut_between_characters(void **state)
{
    char text[6];

    assert_int_equal(text_copy(TEXT_MARKS, "abcd\xc3\xbc", text, sizeof(text)), 4);
    assert_string_equal(text, "abcd");
    assert_int_equal(text_copy(TEXT_ESCAPES, "ab\x1b", text, sizeof(text)), 2);
    assert_string_equal(text, "ab");
    strcpy(text, "a\x1b\xc3\xbc"); /* in place */
    assert_int_equal(text_copy(TEXT_MARKS, text, text, sizeof(text)), 4);
    assert_string_equal(text, "a?\xc3\xbc");
}

/* The decoder against the C library's, for every character and with a stray byte behind. */
static void characters_are_the_c_librarys(void **state)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
    for (uint32_t first = 0; first < 0x10000; first++) {
        for (unsigned rest = 0; rest < 4; rest++) {
            const char tail[4][3] = {"", "\x80", "\xbf\x80", "A"};
            char text[6] = {(char)(first >> 8), (char)first};
            mbstate_t shift = {0};
            uint32_t code = 0;
            wchar_t wide = 0;
            size_t theirs, ours;

            strcpy(text + strlen(text), tail[rest]);
            theirs = mbrtowc(&wide, text, strlen(text) + 1, &shift);
            ours = text_character(text, &code);
            if (!*text) {
                assert_int_equal(ours, 1);
                continue;
            }
            /* It takes what Unicode left out as well. */
            if (theirs > 4 || wide > 0x10ffff || (wide >= 0xd800 && wide < 0xe000))
                theirs = 0;
            assert_int_equal(ours, theirs);
            assert_int_equal(code, ours ? (uint32_t)wide : 0);
        }
    }
}

static void csv(const char *text, const char *separator, const char *expected)
{
    char *printed;
    size_t size;
    FILE *out = open_memstream(&printed, &size);

    assert_non_null(out);
    text_print_csv(out, text, separator);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(printed, expected);
    free(printed);
}

static void values_are_one_value(void **state)
{
    csv("plain", ",", "plain");
    csv("a,b", ",", "\"a,b\"");
    csv("a,b", ";", "a,b");
    csv("say \"x\"", ",", "\"say \"\"x\"\"\"");
    csv("two\nlines", ",", "\"two?lines\"");
    csv("\x1b[2J", ",", "?[2J");
    csv("=cmd|'/c x'!A0", ",", "'=cmd|'/c x'!A0");
    csv("=1,2", ",", "\"'=1,2\"");
    csv("@SUM(1)", ",", "'@SUM(1)");
    csv("-2+cmd|' /c'!A", ",", "'-2+cmd|' /c'!A");
    csv("+A1(x)", ",", "'+A1(x)");
    csv("-bash", ",", "-bash");
    csv("a=b", ",", "a=b");
    csv("\x1b[2J", "?", "\"?[2J\"");
}

static void messages_are_harmless(void **state)
{
    struct prcb_error err;

    assert_int_equal(prcb_fail(&err, -1, "%s: no such file", "/tmp/\x1b]0;x\x07"), -1);
    assert_string_equal(err.text, "/tmp/\\x1b]0;x\\x07: no such file");
    prcb_error_prepend(&err, "\xc2\x9b: ");
    assert_string_equal(err.text, "\\xc2\\x9b: /tmp/\\x1b]0;x\\x07: no such file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_drives_the_terminal),
        cmocka_unit_test(labels_stay_different),
        cmocka_unit_test(texts_are_cut_between_characters),
        cmocka_unit_test(characters_are_the_c_librarys),
        cmocka_unit_test(values_are_one_value),
        cmocka_unit_test(messages_are_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
