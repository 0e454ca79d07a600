/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcbd.conf: what is taken, what is refused and with which words, and that the example of the
 * package and the manual say what the table says. Arguments: the example, the manual.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"

static const char *example_file, *manual_file;

static int parse(const char *text, struct prcbd_config *ret, struct prcb_error *err)
{
    return prcbd_config_parse(text, strlen(text), "f", ret, err);
}

static void defaults_are_in_bounds(void **state)
{
    struct prcbd_config config, parsed;
    struct prcb_error err = {0};
    char line[256], value[PRCBD_VALUE_SIZE];

    prcbd_config_default(&config);
    for (const struct prcbd_setting *s = prcbd_settings; s->key; s++) {
        snprintf(line, sizeof(line), "%s = %s", s->key, s->fallback);
        if (parse(line, &parsed, &err))
            fail_msg("%s", err.text);
        assert_memory_equal(&parsed, &config, sizeof(config));
        assert_string_equal(prcbd_config_value(&config, s, value, sizeof(value)), s->fallback);
    }
    assert_int_equal(parse("", &parsed, &err), 0);
    assert_memory_equal(&parsed, &config, sizeof(config));
    assert_string_equal(config.socket, "/run/prcb/socket");
    assert_int_equal(config.socket_mode, 0666);
    assert_int_equal(config.max_memory_total, 256 << 20);
    assert_int_equal(config.profile_all.who, PRCBD_NOBODY);
    assert_int_equal(config.system_call_filter, 1);
    assert_int_equal(config.processors.who, PRCBD_EVERYBODY);
}

static void values(void **state)
{
    static const char text[] = "# a comment\r\n"
                               "\n"
                               "  socket=/tmp/a b/#c  # blanks and hashes inside stay\n"
                               "socket_mode\t=\t660\n"
                               "socket_group = perf-users\n"
                               "user =\n"
                               "profile_all = group \t admin$\n"
                               "processors = none\r\n"
                               "max_memory_total = 3g\n"
                               "idle_timeout_s = 0\n"
                               "system_call_filter = no\n"
                               "accounts_per_client = 16384"; /* no newline at the end */
    struct prcbd_config config;
    struct prcb_error err = {0};

    if (parse(text, &config, &err))
        fail_msg("%s", err.text);
    assert_string_equal(config.socket, "/tmp/a b/#c");
    assert_int_equal(config.socket_mode, 0660);
    assert_string_equal(config.socket_group, "perf-users");
    assert_string_equal(config.user, "");
    assert_int_equal(config.profile_all.who, PRCBD_GROUP);
    assert_string_equal(config.profile_all.group, "admin$");
    assert_int_equal(config.processors.who, PRCBD_NOBODY);
    assert_int_equal(config.max_memory_total, UINT64_C(3) << 30);
    assert_int_equal(config.idle_timeout_s, 0);
    assert_int_equal(config.system_call_filter, 0);
    assert_int_equal(config.accounts_per_client, 16384);
}

/* Nothing is taken from a file with an error, and the words say where and what. */
static void refusals(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } cases[] = {
        {"socket /run/x", -EINVAL, "f:1: 'socket /run/x' is not 'key = value'"},
        {"\n\nsokcet = /x", -EINVAL, "f:3: unknown setting 'sokcet': perhaps socket"},
        {"= 3", -EINVAL, "f:1: unknown setting ''"},
        {"SOCKET = /x", -EINVAL, "f:1: unknown setting 'SOCKET': perhaps socket"},
        {"frobnicate = 1", -EINVAL, "f:1: unknown setting 'frobnicate'"},
        {"user = a\nuser = a", -EINVAL, "f:2: user is set in line 1 already"},
        {"socket = run/x", -EINVAL, "f:1: socket: give an absolute path"},
        {"socket =", -EINVAL, "f:1: socket: give an absolute path"},
        {"user = a b", -EINVAL, "f:1: user: 'a b' is not the name of a user or group"},
        {"user = ../x", -EINVAL, "f:1: user: '../x' is not the name of a user or group"},
        {"user = 123456789012345678901234567890123", -ERANGE, "f:1: user: a name has at most 32"},
        {"socket_mode = 0888", -EINVAL, "f:1: socket_mode: '0888' is not a number in octal"},
        {"socket_mode = 4755", -ERANGE, "f:1: socket_mode: '4755' is not between 0000 and 0777"},
        {"idle_timeout_s = -1", -EINVAL, "f:1: idle_timeout_s: '-1' is not a number"},
        {"idle_timeout_s = 1.5", -EINVAL, "f:1: idle_timeout_s: '1.5' is not a number"},
        {"idle_timeout_s =", -EINVAL, "f:1: idle_timeout_s: '' is not a number"},
        {"idle_timeout_s = 0x10", -EINVAL, "f:1: idle_timeout_s: '0x10' is not a number"},
        {"idle_timeout_s = 86401", -ERANGE, "'86401' is not between 0 and 86400"},
        {"sessions_per_user = 0", -ERANGE, "'0' is not between 1 and 65536"},
        {"sessions_per_user = 18446744073709551617", -ERANGE, "is not between 1 and 65536"},
        {"max_memory_total = M", -EINVAL, "'M' is not a number of bytes, such as 256M"},
        {"max_memory_total = 5T", -EINVAL, "'5T' is not a number of bytes, such as 256M"},
        {"max_memory_total = 17179869184G", -ERANGE, "is not between 1048576 and"},
        {"socket = /a\x1b]0;b", -EINVAL, "f:1: socket: the path holds a control character"},
        {"socket = /a\xc2\x9b"
         "b",
         -EINVAL, "the path holds a control character"},
        {"system_call_filter = 1", -EINVAL, "f:1: system_call_filter: '1' is not 'yes' or 'no'"},
        {"system_call_filter =", -EINVAL, "'' is not 'yes' or 'no'"},
        {"profile_all = group", -EINVAL, "'group' is not 'none', 'all' or 'group NAME'"},
        {"profile_all = groupx", -EINVAL, "is not 'none', 'all' or 'group NAME'"},
        {"profile_all = group a b", -EINVAL, "'a b' is not the name of a user or group"},
        {"profile_all =", -EINVAL, "'' is not 'none', 'all' or 'group NAME'"},
        {"accounts_per_user = 100\naccounts_per_client_max = 101", -EINVAL,
         "f: accounts_per_client_max, 101, is more than accounts_per_user, 100"},
        {"accounts_per_client_max = 65536\nmax_accounts_total = 30000", -EINVAL,
         "f: accounts_per_client_max, 65536, is more than max_accounts_total, 30000"},
        {"max_memory_total = 1M\nmemory_per_user = 2M", -EINVAL,
         "f: memory_per_user, 2097152, is more than max_memory_total, 1048576"},
    };
    struct prcbd_config config, before;
    struct prcb_error err;

    memset(&before, 0x5a, sizeof(before));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&err, 0, sizeof(err));
        config = before;
        assert_int_equal(parse(cases[i].text, &config, &err), cases[i].code);
        if (!strstr(err.text, cases[i].words))
            fail_msg("'%s': expected '%s', said '%s'", cases[i].text, cases[i].words, err.text);
        assert_int_equal(err.code, cases[i].code);
        assert_memory_equal(&config, &before, sizeof(config));
    }
    assert_int_equal(prcbd_config_parse("user\0 = x", 9, "f", &config, &err), -EINVAL);
    assert_string_equal(err.text, "f:1: holds a zero byte: this is not a text file");
    assert_int_equal(parse("user = a b", &config, NULL), -EINVAL); /* words not wanted */
}

/* One setting is enough: those that the file does not set follow. */
static void limits_follow(void **state)
{
    static const struct {
        const char *text;
        uint64_t client, client_max, user, total, memory_user, memory;
    } cases[] = {
        {"", 256, 16384, 16384, 65536, 64 << 20, 256 << 20},
        {"accounts_per_client_max = 65536", 256, 65536, 65536, 262144, 256 << 20, 1 << 30},
        {"max_accounts_total = 1000", 256, 500, 500, 1000, 64 << 20, 256 << 20},
        {"accounts_per_user = 100", 100, 100, 100, 65536, 64 << 20, 256 << 20},
        {"accounts_per_client_max = 10000\nmax_accounts_total = 12000", 256, 10000, 10000, 12000,
         64 << 20, 256 << 20},
        {"max_memory_total = 2M", 256, 16384, 16384, 65536, 1 << 20, 2 << 20},
        {"max_accounts_total = 262144\nmax_memory_total = 256M", 256, 16384, 16384, 262144,
         64 << 20, 256 << 20},
        {"accounts_per_client = 20000", 20000, 20000, 20000, 80000, 20000 << 12, 80000 << 12},
    };
    struct prcbd_config config;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse(cases[i].text, &config, NULL), 0);
        assert_int_equal(config.accounts_per_client, cases[i].client);
        assert_int_equal(config.accounts_per_client_max, cases[i].client_max);
        assert_int_equal(config.accounts_per_user, cases[i].user);
        assert_int_equal(config.max_accounts_total, cases[i].total);
        assert_int_equal(config.memory_per_user, cases[i].memory_user);
        assert_int_equal(config.max_memory_total, cases[i].memory);
    }
}

static void lengths(void **state)
{
    char text[256] = "socket = /";
    size_t start = strlen(text);
    struct prcbd_config config;
    struct prcb_error err = {0};

    memset(text + start, 'x', PRCBD_PATH_SIZE - 2);
    assert_int_equal(parse(text, &config, &err), 0);
    assert_int_equal(strlen(config.socket), PRCBD_PATH_SIZE - 1);
    text[start + PRCBD_PATH_SIZE - 2] = 'x';
    assert_int_equal(parse(text, &config, &err), -ERANGE);
}

static void files(void **state)
{
    char name[] = "/tmp/prcbd-config-XXXXXX", *large = calloc(1, PRCBD_CONFIG_SIZE + 2);
    struct prcbd_config config;
    struct prcb_error err = {0};
    FILE *file = fdopen(mkstemp(name), "w");

    assert_non_null(file);
    assert_non_null(large);
    memset(large, '\n', PRCBD_CONFIG_SIZE);
    fputs(large, file);
    fflush(file);
    assert_int_equal(prcbd_config_load(name, &config, &err), 0);
    fputs("\n", file);
    fclose(file);
    assert_int_equal(prcbd_config_load(name, &config, &err), -EFBIG);
    unlink(name);
    assert_int_equal(prcbd_config_load(name, &config, &err), -ENOENT);
    assert_non_null(strstr(err.text, name));
    assert_int_equal(prcbd_config_load("/tmp", &config, &err), -EISDIR);
    free(large);
}

static void written_again(void **state)
{
    static const char text[] = "user =\nprofile_all = group g\nmax_memory_total = 1048577\n"
                               "socket_mode = 0\nprocessors = none\n";
    struct prcbd_config config, again;
    struct prcb_error err = {0};
    char whole[8192], small[40];
    size_t length;

    assert_int_equal(parse(text, &config, &err), 0);
    length = prcbd_config_write(&config, false, whole, sizeof(whole));
    assert_int_equal(length, strlen(whole));
    assert_int_equal(parse(whole, &again, &err), 0);
    assert_memory_equal(&config, &again, sizeof(config));
    assert_int_equal(prcbd_config_write(&config, false, small, sizeof(small)), length);
    assert_memory_equal(small, whole, sizeof(small) - 1);
    assert_int_equal(strlen(small), sizeof(small) - 1);
}

static void restart(void **state)
{
    struct prcbd_config old, new;
    struct prcb_error err = {0};
    size_t at = 0;

    prcbd_config_default(&old);
    assert_int_equal(parse("user = x\nidle_timeout_s = 1\nsocket = /x", &new, &err), 0);
    assert_string_equal(prcbd_config_needs_restart(&old, &new, &at)->key, "socket");
    assert_string_equal(prcbd_config_needs_restart(&old, &new, &at)->key, "user");
    assert_null(prcbd_config_needs_restart(&old, &new, &at));
    prcbd_config_reload(&old, &new);
    assert_string_equal(old.socket, "/run/prcb/socket");
    assert_string_equal(old.user, "prcbd");
    assert_int_equal(old.idle_timeout_s, 1);
}

static void read_file(const char *name, char *buffer, size_t size)
{
    FILE *file = fopen(name, "r");

    assert_non_null(file);
    buffer[fread(buffer, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* To make it anew after a change of the table: PRCBD_WRITE_EXAMPLE=1 in the environment. */
static void example(void **state)
{
    struct prcbd_config config;
    char wanted[16384], found[16384];
    size_t length;
    FILE *file;

    prcbd_config_default(&config);
    length = prcbd_config_write(&config, true, wanted, sizeof(wanted));
    assert_true(length < sizeof(wanted));
    if (getenv("PRCBD_WRITE_EXAMPLE")) {
        file = fopen(example_file, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(wanted, 1, length, file), length);
        fclose(file);
    }
    read_file(example_file, found, sizeof(found));
    assert_string_equal(found, wanted);
}

/* "*key* = _NUMBER_ (1 to 2)" and, before the next entry, "Default: 1". */
static void manual(void **state)
{
    static const char *const kinds[] = {
        [PRCBD_TYPE_PATH] = "_PATH_",     [PRCBD_TYPE_NAME] = "_NAME_",
        [PRCBD_TYPE_NUMBER] = "_NUMBER_", [PRCBD_TYPE_BYTES] = "_SIZE_",
        [PRCBD_TYPE_MODE] = "_MODE_",     [PRCBD_TYPE_ACCESS] = "none | all | group _NAME_",
        [PRCBD_TYPE_SWITCH] = "yes | no",
    };
    char page[16384], entry[256], fallback[256], *reloaded;
    size_t entries = 0, settings = 0;

    read_file(manual_file, page, sizeof(page));
    reloaded = strstr(page, "# WHO MAY DO WHAT"); /* before it: those that need a restart */
    assert_non_null(reloaded);
    for (const struct prcbd_setting *s = prcbd_settings; s->key; s++) {
        size_t used = (size_t)snprintf(entry, sizeof(entry), "\n*%s* = %s", s->key, kinds[s->type]);
        const char *at, *end;

        settings++;
        if (s->type == PRCBD_TYPE_NUMBER)
            snprintf(entry + used, sizeof(entry) - used, " (%" PRIu64 " to %" PRIu64 ")", s->min,
                     s->max);
        if (s->type == PRCBD_TYPE_BYTES)
            snprintf(entry + used, sizeof(entry) - used, " (%" PRIu64 "M to %" PRIu64 "G)",
                     s->min >> 20, s->max >> 30);
        strcat(entry, "\n\t");
        snprintf(fallback, sizeof(fallback), "Default: %s%s", s->fallback,
                 *s->fallback ? "\n" : "");
        at = strstr(page, entry);
        if (!at)
            fail_msg("the manual has no '%s'", entry + 1);
        end = strstr(at, "\n\n");
        assert_int_equal(at > reloaded, s->reload);
        at = strstr(at, fallback);
        if (!at || at > end)
            fail_msg("the manual has another default of %s than '%s'", s->key, s->fallback);
    }
    for (const char *at = page; (at = strstr(at, "\n\n*")); at++)
        entries += !strncmp(at + 3 + strcspn(at + 3, "*"), "* = ", 4);
    assert_int_equal(entries, settings); /* none that the table does not have */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_in_bounds),
        cmocka_unit_test(values),
        cmocka_unit_test(refusals),
        cmocka_unit_test(limits_follow),
        cmocka_unit_test(lengths),
        cmocka_unit_test(files),
        cmocka_unit_test(written_again),
        cmocka_unit_test(restart),
        cmocka_unit_test(example),
        cmocka_unit_test(manual),
    };

    example_file = argc > 1 ? argv[1] : "packaging/prcbd.conf";
    manual_file = argc > 2 ? argv[2] : "man/prcbd.conf.5.scd";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
