/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "near.h"
#include "read_file.h"
#include "text.h"

#define AT(member) offsetof(struct prcbd_config, member)

const struct prcbd_setting prcbd_settings[] = {
    {"socket", PRCBD_TYPE_PATH, AT(socket), 0, 0, "/run/prcb/socket", false,
     "The socket that clients connect to. Not used when systemd passes one."},
    {"socket_mode", PRCBD_TYPE_MODE, AT(socket_mode), 0, 0777, "0666", false,
     "Permissions of the socket: who may connect at all. Octal."},
    {"socket_group", PRCBD_TYPE_NAME, AT(socket_group), 0, 0, "", false,
     "Group that owns the socket; empty: the group prcbd is started with."},
    {"user", PRCBD_TYPE_NAME, AT(user), 0, 0, "prcbd", false,
     "User that prcbd becomes once it is set up; empty: stays what it is."},
    {"pin_directory", PRCBD_TYPE_PATH, AT(pin_directory), 0, 0, "/sys/fs/bpf/prcbd", false,
     "Directory of a BPF file system in which programs and maps outlive prcbd."},
    {"system_call_filter", PRCBD_TYPE_SWITCH, AT(system_call_filter), 0, 1, "yes", false,
     "Whether system calls that prcbd needs at its start alone fail from then on: yes or no."},
    {"interrupted", PRCBD_TYPE_SWITCH, AT(interrupted), 0, 1, "no", false,
     "Whether accounts tell what interrupts took of a thread's run: yes or no. The programs of "
     "the\n"
     "processors then run from the start, and each switch looks at their blocks."},
    {"tails", PRCBD_TYPE_SWITCH, AT(tails), 0, 1, "no", false,
     "Whether the session that clients of all threads share keeps how long threads waited and "
     "were\n"
     "ready, as histograms: yes or no. 48 KiB a processor, and some nanoseconds a switch."},
    {"by_whom", PRCBD_TYPE_SWITCH, AT(by_whom), 0, 1, "no", false,
     "Whether the session that clients of all threads share keeps by whom threads were woken, and "
     "who\n"
     "had the processor: yes or no. 2.3 KiB for each account, and a program at each wake."},
    {"flight", PRCBD_TYPE_BYTES, AT(flight), 0, UINT64_C(1) << 36, "0", false,
     "Memory for the last switches of all threads, which who may profile them all can write into "
     "a\n"
     "file (prcb flight save): bytes, or with K, M or G; 0: none are kept. It is part of\n"
     "max_memory_total. That session is there from the start then, and keeps by whom."},
    {"profile_all", PRCBD_TYPE_ACCESS, AT(profile_all), 0, 0, "none", true,
     "Who may profile threads of other users: none, all, or group NAME."},
    {"processors", PRCBD_TYPE_ACCESS, AT(processors), 0, 0, "all", true,
     "Who may read the processors' blocks: none, all, or group NAME. Which thread runs on each is\n"
     "told only to who may profile all threads."},
    {"allow_unprivileged_bpf", PRCBD_TYPE_SWITCH, AT(allow_unprivileged_bpf), 0, 1, "no", true,
     "Whether prcbd serves while kernel.unprivileged_bpf_disabled is 0: yes or no. Every user can\n"
     "then falsify the processors' figures that others read."},
    {"max_accounts_total", PRCBD_TYPE_NUMBER, AT(max_accounts_total), 1, 1 << 22, "65536", true,
     "Threads that all clients together may profile at a time."},
    {"max_memory_total", PRCBD_TYPE_BYTES, AT(max_memory_total), 1 << 20, UINT64_C(1) << 40, "256M",
     true, "Kernel memory that all clients' maps together may take: bytes, or with K, M or G."},
    {"accounts_per_client", PRCBD_TYPE_NUMBER, AT(accounts_per_client), 1, 1 << 20, "256", true,
     "Accounts in the map of a client that asks for no number."},
    {"accounts_per_client_max", PRCBD_TYPE_NUMBER, AT(accounts_per_client_max), 1, 1 << 20, "16384",
     true,
     "Accounts that one client may ask for; the session that who may profile all threads share has "
     "so\n"
     "many."},
    {"accounts_per_user", PRCBD_TYPE_NUMBER, AT(accounts_per_user), 1, 1 << 22, "16384", true,
     "Accounts in the maps of all clients of one user."},
    {"memory_per_user", PRCBD_TYPE_BYTES, AT(memory_per_user), 1 << 20, UINT64_C(1) << 40, "64M",
     true,
     "Kernel memory that the maps of all clients of one user may take: bytes, or with K, M or G.\n"
     "Tails and switch records take more of it the more processors there are."},
    {"sessions_per_user", PRCBD_TYPE_NUMBER, AT(sessions_per_user), 1, 65536, "256", true,
     "Sessions that one user may have open."},
    {"connections_total", PRCBD_TYPE_NUMBER, AT(connections_total), 1, 65536, "1024", true,
     "Connections of all users together."},
    {"requests_in_flight", PRCBD_TYPE_NUMBER, AT(requests_in_flight), 1, 65536, "64", true,
     "Requests of one user that may wait for their answer."},
    {"idle_timeout_s", PRCBD_TYPE_NUMBER, AT(idle_timeout_s), 0, 86400, "60", true,
     "Seconds after which a connection without a session is closed; 0: never."},
    {0},
};

#define SETTINGS (sizeof(prcbd_settings) / sizeof(prcbd_settings[0]) - 1)

/* Limits of a part and of the whole. A limit that the file does not set follows those that it
 * sets: the whole becomes so many times the part, as in the defaults; the part becomes a share
 * of the whole if it would be more and both count the same. Each row stands after those of its
 * part. */
static const struct {
    const char *part, *whole;
    uint64_t times;
    uint64_t share; /* the whole divided by this; 0: they do not count the same */
} limits[] = {
    {"accounts_per_client", "accounts_per_client_max", 1, 1},
    {"accounts_per_client_max", "accounts_per_user", 1, 1},
    {"accounts_per_user", "max_accounts_total", 4, 2},
    {"accounts_per_user", "memory_per_user", 4096, 0},
    {"max_accounts_total", "max_memory_total", 4096, 0},
    {"memory_per_user", "max_memory_total", 4, 2},
};
#define LIMITS (sizeof(limits) / sizeof(limits[0]))

/* A value that is being parsed: it says where the value goes, and how to report that it is
 * wrong. */
struct value {
    const struct prcbd_setting *setting;
    const char *text;
    size_t length;
    void *target;
    const char *file;
    unsigned int line;
    struct prcb_error *err;
};

#define PLACE(v) (v)->file, (v)->line, (v)->setting->key

static uint64_t number_at(const struct prcbd_config *config, size_t offset)
{
    uint64_t number;

    memcpy(&number, (const char *)config + offset, sizeof(number));
    return number;
}

/* Parses the whole text as digits of the base. -EINVAL: it has none or others, -ERANGE: it has
 * too many. */
static int digits(const char *text, size_t length, unsigned int base, uint64_t *ret)
{
    uint64_t number = 0;

    if (!length)
        return -EINVAL;
    for (size_t i = 0; i < length; i++) {
        unsigned int digit = (unsigned int)(unsigned char)text[i] - '0';

        if (digit >= base)
            return -EINVAL;
        if (__builtin_mul_overflow(number, base, &number) ||
            __builtin_add_overflow(number, digit, &number))
            return -ERANGE;
    }
    *ret = number;
    return 0;
}

static bool has_control(const char *text)
{
    uint32_t code;
    size_t bytes;

    for (; *text; text += bytes ? bytes : 1) {
        bytes = text_character(text, &code);
        if (bytes && text_is_control(code))
            return true;
    }
    return false;
}

static int parse_path(const struct value *v)
{
    if (!v->length || v->text[0] != '/')
        return prcb_fail(v->err, -EINVAL, "%s:%u: %s: give an absolute path", PLACE(v));
    if (v->length >= PRCBD_PATH_SIZE)
        return prcb_fail(v->err, -ERANGE, "%s:%u: %s: a path here has at most %d bytes", PLACE(v),
                         PRCBD_PATH_SIZE - 1);
    memcpy(v->target, v->text, v->length);
    ((char *)v->target)[v->length] = '\0';
    if (has_control(v->target))
        return prcb_fail(v->err, -EINVAL, "%s:%u: %s: the path holds a control character",
                         PLACE(v));
    return 0;
}

/* Accepts names of users and groups: what useradd(8) allows and somewhat more, but no blanks and
 * nothing that could be taken for a path. */
static int parse_name_into(const struct value *v, const char *text, size_t length, char *target)
{
    if (length >= PRCBD_NAME_SIZE)
        return prcb_fail(v->err, -ERANGE, "%s:%u: %s: a name has at most %d bytes", PLACE(v),
                         PRCBD_NAME_SIZE - 1);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_.-$@", text[i]))
            return prcb_fail(v->err, -EINVAL,
                             "%s:%u: %s: '%.*s' is not the name of a user or group", PLACE(v),
                             (int)length, text);
    memcpy(target, text, length);
    target[length] = '\0';
    return 0;
}

static int parse_name(const struct value *v)
{
    return parse_name_into(v, v->text, v->length, v->target);
}

static int in_range(const struct value *v, int code, uint64_t number)
{
    const struct prcbd_setting *s = v->setting;

    if (code == -EINVAL)
        return prcb_fail(v->err, code, "%s:%u: %s: '%.*s' is not a number%s", PLACE(v),
                         (int)v->length, v->text,
                         s->type == PRCBD_TYPE_BYTES  ? " of bytes, such as 256M"
                         : s->type == PRCBD_TYPE_MODE ? " in octal, such as 0660"
                                                      : "");
    if (code || number < s->min || number > s->max)
        return prcb_fail(v->err, -ERANGE,
                         s->type == PRCBD_TYPE_MODE
                             ? "%s:%u: %s: '%.*s' is not between %04" PRIo64 " and %04" PRIo64
                             : "%s:%u: %s: '%.*s' is not between %" PRIu64 " and %" PRIu64,
                         PLACE(v), (int)v->length, v->text, s->min, s->max);
    memcpy(v->target, &number, sizeof(number));
    return 0;
}

static int parse_number(const struct value *v)
{
    uint64_t number = 0;
    int code = digits(v->text, v->length, v->setting->type == PRCBD_TYPE_MODE ? 8 : 10, &number);

    return in_range(v, code, number);
}

static int parse_bytes(const struct value *v)
{
    static const char units[] = "KMG";
    size_t length = v->length;
    const char *unit = length ? strchr(units, toupper((unsigned char)v->text[length - 1])) : NULL;
    unsigned int shift = unit && *unit ? 10 * (unsigned int)(unit - units + 1) : 0;
    uint64_t number = 0;
    int code = digits(v->text, length - (shift ? 1 : 0), 10, &number);

    if (!code && number > UINT64_MAX >> shift)
        code = -ERANGE;
    return in_range(v, code, number << shift);
}

static int parse_switch(const struct value *v)
{
    bool yes = v->length == 3 && !memcmp(v->text, "yes", 3);
    const uint64_t number = yes;

    if (!yes && (v->length != 2 || memcmp(v->text, "no", 2)))
        return prcb_fail(v->err, -EINVAL, "%s:%u: %s: '%.*s' is not 'yes' or 'no'", PLACE(v),
                         (int)v->length, v->text);
    memcpy(v->target, &number, sizeof(number));
    return 0;
}

static int parse_access(const struct value *v)
{
    static const char group[] = "group";
    struct prcbd_access access = {.who = PRCBD_NOBODY};
    size_t at = sizeof(group) - 1;
    int code;

    if (v->length == 3 && !memcmp(v->text, "all", 3)) {
        access.who = PRCBD_EVERYBODY;
    } else if (v->length > at && !memcmp(v->text, group, at) &&
               isblank((unsigned char)v->text[at])) {
        while (at < v->length && isblank((unsigned char)v->text[at]))
            at++;
        access.who = PRCBD_GROUP;
        code = parse_name_into(v, v->text + at, v->length - at, access.group);
        if (code)
            return code;
    } else if (v->length != 4 || memcmp(v->text, "none", 4)) {
        return prcb_fail(v->err, -EINVAL, "%s:%u: %s: '%.*s' is not 'none', 'all' or 'group NAME'",
                         PLACE(v), (int)v->length, v->text);
    }
    memcpy(v->target, &access, sizeof(access));
    return 0;
}

static int (*const parsers[])(const struct value *v) = {
    [PRCBD_TYPE_PATH] = parse_path,     [PRCBD_TYPE_NAME] = parse_name,
    [PRCBD_TYPE_NUMBER] = parse_number, [PRCBD_TYPE_BYTES] = parse_bytes,
    [PRCBD_TYPE_MODE] = parse_number,   [PRCBD_TYPE_ACCESS] = parse_access,
    [PRCBD_TYPE_SWITCH] = parse_switch,
};

void prcbd_config_default(struct prcbd_config *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (const struct prcbd_setting *s = prcbd_settings; s->key; s++) {
        struct value v = {.setting = s,
                          .text = s->fallback,
                          .length = strlen(s->fallback),
                          .target = (char *)ret + s->offset,
                          .file = "default"};

        parsers[s->type](&v); /* a test checks that each default is within its bounds */
    }
}

/* ---- the file ---- */

static const struct prcbd_setting *find(const char *key, size_t length)
{
    for (const struct prcbd_setting *s = prcbd_settings; s->key; s++)
        if (strlen(s->key) == length && !memcmp(s->key, key, length))
            return s;
    return NULL;
}

static int unknown_key(const char *file, unsigned int line, const char *key, size_t length,
                       struct prcb_error *err)
{
    struct near near = {0};
    char wanted[64], words[200];

    snprintf(wanted, sizeof(wanted), "%.*s", (int)length, key);
    for (const struct prcbd_setting *s = prcbd_settings; s->key; s++)
        near_offer(&near, wanted, s->key);
    return prcb_fail(err, -EINVAL, "%s:%u: unknown setting '%s'%s", file, line, wanted,
                     near_text(&near, words, sizeof(words)));
}

static void trim(const char **text, size_t *length)
{
    while (*length && isspace((unsigned char)(*text)[0]))
        (*text)++, (*length)--;
    while (*length && isspace((unsigned char)(*text)[*length - 1]))
        (*length)--;
}

/* Returns the length of a line without its comment. */
static size_t without_comment(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == '#' && (i == 0 || isspace((unsigned char)text[i - 1])))
            return i;
    return length;
}

struct parse {
    const char *file;
    unsigned int line;
    struct prcbd_config config;
    unsigned int line_of[SETTINGS]; /* each setting's line; 0: not seen */
    struct prcb_error *err;
};

static int parse_line(struct parse *p, const char *text, size_t length)
{
    const struct prcbd_setting *s;
    const char *equals, *value;
    size_t key_length, left;
    unsigned int *seen;

    if (memchr(text, '\0', length))
        return prcb_fail(p->err, -EINVAL, "%s:%u: holds a zero byte: this is not a text file",
                         p->file, p->line);
    length = without_comment(text, length);
    trim(&text, &length);
    if (!length)
        return 0;
    equals = memchr(text, '=', length);
    if (!equals)
        return prcb_fail(p->err, -EINVAL, "%s:%u: '%.*s' is not 'key = value'", p->file, p->line,
                         (int)(length < 64 ? length : 64), text);
    value = equals + 1;
    left = length - (size_t)(value - text);
    trim(&value, &left);
    key_length = (size_t)(equals - text);
    trim(&text, &key_length);
    s = find(text, key_length);
    if (!s)
        return unknown_key(p->file, p->line, text, key_length, p->err);
    seen = &p->line_of[s - prcbd_settings];
    if (*seen)
        return prcb_fail(p->err, -EINVAL, "%s:%u: %s is set in line %u already", p->file, p->line,
                         s->key, *seen);
    *seen = p->line;
    return parsers[s->type](&(struct value){.setting = s,
                                            .text = value,
                                            .length = left,
                                            .target = (char *)&p->config + s->offset,
                                            .file = p->file,
                                            .line = p->line,
                                            .err = p->err});
}

static const struct prcbd_setting *named(const char *key)
{
    return find(key, strlen(key));
}

static bool is_set(const struct parse *p, const struct prcbd_setting *s)
{
    return p->line_of[s - prcbd_settings];
}

static uint64_t value_of(const struct parse *p, const struct prcbd_setting *s)
{
    return number_at(&p->config, s->offset);
}

/* Changes a limit that the file does not set, and only in one direction. */
static void follow(struct parse *p, const struct prcbd_setting *s, uint64_t value, bool up)
{
    value = value < s->min ? s->min : value > s->max ? s->max : value;
    if (!is_set(p, s) && (up ? value > value_of(p, s) : value < value_of(p, s)))
        memcpy((char *)&p->config + s->offset, &value, sizeof(value));
}

static void follow_limits(struct parse *p)
{
    for (size_t i = 0; i < LIMITS; i++)
        follow(p, named(limits[i].whole), value_of(p, named(limits[i].part)) * limits[i].times,
               true);
    for (size_t i = LIMITS; i--;) {
        uint64_t whole = value_of(p, named(limits[i].whole));

        if (limits[i].share && value_of(p, named(limits[i].part)) > whole)
            follow(p, named(limits[i].part), whole / limits[i].share, false);
    }
    for (size_t i = 0; i < LIMITS; i++) {
        if (limits[i].share)
            follow(p, named(limits[i].whole), value_of(p, named(limits[i].part)), true);
    }
}

/* Refuses two limits that the file sets if the part is more than the whole, or than the whole's
 * whole. */
static int check_limits(const struct parse *p, const struct prcbd_setting *part,
                        const struct prcbd_setting *whole)
{
    int result = 0;

    if (is_set(p, part) && is_set(p, whole) && value_of(p, part) > value_of(p, whole))
        return prcb_fail(p->err, -EINVAL, "%s: %s, %" PRIu64 ", is more than %s, %" PRIu64, p->file,
                         part->key, value_of(p, part), whole->key, value_of(p, whole));
    for (size_t i = 0; i < LIMITS && !result; i++) {
        if (limits[i].share && !strcmp(limits[i].part, whole->key))
            result = check_limits(p, part, named(limits[i].whole));
    }
    return result;
}

int prcbd_config_parse(const char *text, size_t length, const char *file, struct prcbd_config *ret,
                       struct prcb_error *err)
{
    struct parse p = {.file = file, .err = err};
    const char *end = text + length;
    int code;

    prcbd_config_default(&p.config);
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;

        p.line++;
        code = parse_line(&p, text, (size_t)(stop - text));
        if (code)
            return code;
        text = newline ? newline + 1 : end;
    }
    for (size_t i = 0; i < LIMITS; i++) {
        code =
            limits[i].share ? check_limits(&p, named(limits[i].part), named(limits[i].whole)) : 0;
        if (code)
            return code;
    }
    follow_limits(&p);
    *ret = p.config;
    return 0;
}

int prcbd_config_load(const char *file, struct prcbd_config *ret, struct prcb_error *err)
{
    char text[PRCBD_CONFIG_SIZE + 1];
    ssize_t length = read_start(file, text, sizeof(text));

    if (length < 0)
        return prcb_fail(err, (int)length, "cannot read %s: %s", file, strerror((int)-length));
    if (length > PRCBD_CONFIG_SIZE)
        return prcb_fail(err, -EFBIG, "%s has more than %d bytes: is it prcbd's configuration?",
                         file, PRCBD_CONFIG_SIZE);
    return prcbd_config_parse(text, (size_t)length, file, ret, err);
}

/* ---- back to text ---- */

static void write_access(const struct prcbd_access *access, char *buffer, size_t size)
{
    static const char *const words[] = {"none", "all", "group "};

    snprintf(buffer, size, "%s%s", words[access->who],
             access->who == PRCBD_GROUP ? access->group : "");
}

static void write_bytes(uint64_t number, char *buffer, size_t size)
{
    static const char *const units[] = {"", "K", "M", "G"};
    unsigned int unit = 0;

    while (unit < 3 && number && number % 1024 == 0) {
        number /= 1024;
        unit++;
    }
    snprintf(buffer, size, "%" PRIu64 "%s", number, units[unit]);
}

const char *prcbd_config_value(const struct prcbd_config *config,
                               const struct prcbd_setting *setting, char *buffer, size_t size)
{
    const void *at = (const char *)config + setting->offset;

    switch (setting->type) {
    case PRCBD_TYPE_PATH:
    case PRCBD_TYPE_NAME:
        snprintf(buffer, size, "%s", (const char *)at);
        break;
    case PRCBD_TYPE_NUMBER:
        snprintf(buffer, size, "%" PRIu64, number_at(config, setting->offset));
        break;
    case PRCBD_TYPE_BYTES:
        write_bytes(number_at(config, setting->offset), buffer, size);
        break;
    case PRCBD_TYPE_MODE:
        snprintf(buffer, size, "%04" PRIo64, number_at(config, setting->offset));
        break;
    case PRCBD_TYPE_SWITCH:
        snprintf(buffer, size, "%s", number_at(config, setting->offset) ? "yes" : "no");
        break;
    case PRCBD_TYPE_ACCESS:
        write_access(at, buffer, size);
        break;
    }
    return buffer;
}

struct writer {
    char *buffer;
    size_t size, used;
};

static void put(struct writer *w, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++, w->used++)
        if (w->used + 1 < w->size)
            w->buffer[w->used] = text[i];
    if (w->size)
        w->buffer[w->used < w->size ? w->used : w->size - 1] = '\0';
}

static void put_word(struct writer *w, const char *text)
{
    put(w, text, strlen(text));
}

static void put_help(struct writer *w, const struct prcbd_setting *s)
{
    const char *line = s->help, *end;

    put_word(w, s == prcbd_settings ? "" : "\n");
    for (; *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        put_word(w, "# ");
        put(w, line, (size_t)(end - line));
        put_word(w, "\n");
    }
    if (!s->reload)
        put_word(w, "# A change needs a restart.\n");
}

size_t prcbd_config_write(const struct prcbd_config *config, bool help, char *buffer, size_t size)
{
    struct writer w = {.buffer = buffer, .size = size};
    char value[PRCBD_VALUE_SIZE];

    put_word(&w, "");
    for (const struct prcbd_setting *s = prcbd_settings; s->key; s++) {
        if (help)
            put_help(&w, s);
        prcbd_config_value(config, s, value, sizeof(value));
        if (help && !strcmp(value, s->fallback))
            put_word(&w, "#");
        put_word(&w, s->key);
        put_word(&w, *value ? " = " : " =");
        put_word(&w, value);
        put_word(&w, "\n");
    }
    return w.used;
}

void prcbd_config_reload(struct prcbd_config *config, const struct prcbd_config *read)
{
    static const size_t sizes[] = {
        [PRCBD_TYPE_PATH] = PRCBD_PATH_SIZE,
        [PRCBD_TYPE_NAME] = PRCBD_NAME_SIZE,
        [PRCBD_TYPE_NUMBER] = sizeof(uint64_t),
        [PRCBD_TYPE_BYTES] = sizeof(uint64_t),
        [PRCBD_TYPE_MODE] = sizeof(uint64_t),
        [PRCBD_TYPE_SWITCH] = sizeof(uint64_t),
        [PRCBD_TYPE_ACCESS] = sizeof(struct prcbd_access),
    };

    for (const struct prcbd_setting *s = prcbd_settings; s->key; s++) {
        if (s->reload)
            memcpy((char *)config + s->offset, (const char *)read + s->offset, sizes[s->type]);
    }
}

uint64_t prcbd_config_room(uint64_t total, uint64_t share_of_user, bool root)
{
    uint64_t kept = share_of_user < total / 8 ? share_of_user : total / 8;

    return root ? total : total - kept;
}

const struct prcbd_setting *prcbd_config_needs_restart(const struct prcbd_config *old,
                                                       const struct prcbd_config *new, size_t *at)
{
    char before[PRCBD_VALUE_SIZE], after[PRCBD_VALUE_SIZE];
    const struct prcbd_setting *s;

    for (s = prcbd_settings + *at; s->key; s++) {
        ++*at;
        if (!s->reload && strcmp(prcbd_config_value(old, s, before, sizeof(before)),
                                 prcbd_config_value(new, s, after, sizeof(after))) != 0)
            return s;
    }
    return NULL;
}
