/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Layouts that a user saved: a symbol table (ISF) a build and machine, with the structures that
 * dumps need and what these hold by value. "10.0.26200.1742-x64.json" in
 * $XDG_DATA_HOME/prcb/layouts, else ~/.local/share/prcb/layouts. The two folders and the files must
 * be the user's and nobody else's to write; links are not followed. A file is put in place whole.
 */
#include "array.h"
#include "dump_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

#define FILE_MOST   (16u << 20) /* bytes; a kernel's has half a million */
#define TABLES_MOST 64
#define TYPES_MOST  4096
#define CHAIN_MOST  16 /* arrays of arrays of ... */

/* ---- builds ---- */

/* Takes "10.0.26200[.1742]", or from build 10000 on "26200[.1742]", up to `end`. */
static bool take_build(const char *text, char end, uint32_t ret[4], bool *ret_has_revision)
{
    uint32_t n[4] = {0};
    size_t count = 0;

    for (;;) {
        size_t digits = strspn(text, "0123456789");

        if (!digits || digits > 9 || count == 4)
            return false;
        n[count++] = (uint32_t)strtoul(text, NULL, 10);
        text += digits;
        if (*text != '.')
            break;
        text++;
    }
    if (*text != end || (count <= 2 && n[0] < 10000))
        return false;
    *ret_has_revision = count == 2 || count == 4;
    if (count <= 2)
        memcpy(ret, (uint32_t[4]){10, 0, n[0], n[1]}, sizeof(n));
    else
        memcpy(ret, n, sizeof(n));
    return true;
}

static int compare_builds(const uint32_t a[4], const uint32_t b[4])
{
    for (int i = 0; i < 4; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* ---- the folder ---- */

/* Returns the user's folder for data; the caller frees it. */
static char *data_home(struct prcb_error *err)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    char *path = NULL;

    if (data && *data == '/')
        return strdup(data);
    if (!home || *home != '/') {
        prcb_fail(err, -ENOENT, "no home directory: set XDG_DATA_HOME to a directory for layouts");
        return NULL;
    }
    return asprintf(&path, "%s/.local/share", home) < 0 ? NULL : path;
}

/* Makes a directory and those above it. What cannot be made, opening it tells. */
static void make_path(const char *path)
{
    char *copy = strdup(path);

    for (char *slash = copy; slash && (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(copy, 0700);
        *slash = '/';
    }
    if (copy)
        mkdir(copy, 0700);
    free(copy);
}

static int check_own(int fd, const char *path, struct stat *ret, struct prcb_error *err)
{
    if (fstat(fd, ret))
        return prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
    if (ret->st_uid != geteuid())
        return prcb_fail(err, -EPERM, "%s is another user's (%u): layouts there are not used", path,
                         ret->st_uid);
    if (ret->st_mode & (S_IWGRP | S_IWOTH))
        return prcb_fail(err, -EPERM,
                         "%s may be written by others (mode %03o): layouts there are not used",
                         path, ret->st_mode & 0777);
    return 0;
}

/* Opens a folder in another, whose fd it takes over. */
static int step_into(int at, const char *name, const char *path, bool makes, struct prcb_error *err)
{
    struct stat st;
    int fd, code;

    if (makes && mkdirat(at, name, 0700) && errno != EEXIST) {
        code = prcb_fail(err, -errno, "%s: cannot make %s: %s", path, name, strerror(errno));
        close(at);
        return code;
    }
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    code = fd < 0 ? -errno : 0;
    close(at);
    if (code == -ENOTDIR || code == -ELOOP)
        return prcb_fail(err, -ENOTDIR, "%s: \"%s\" is a link, or no directory", path, name);
    if (code)
        return prcb_fail(err, code, "%s: \"%s\": %s", path, name, strerror(-code));
    code = check_own(fd, path, &st, err);
    if (code) {
        close(fd);
        return code;
    }
    return fd;
}

/* Opens the folder: its fd, and its path, which is the caller's; -ENOENT: there is none. */
static int open_folder(bool makes, char **ret_path, struct prcb_error *err)
{
    char *home = data_home(err), *path;
    int fd;

    if (!home || asprintf(&path, "%s/prcb/layouts", home) < 0) {
        free(home);
        return home ? -ENOMEM : -ENOENT;
    }
    if (makes)
        make_path(home);
    fd = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        fd = prcb_fail(err, -errno, "%s: %s", home, strerror(errno));
    free(home);
    if (fd >= 0)
        fd = step_into(fd, "prcb", path, makes, err);
    if (fd >= 0)
        fd = step_into(fd, "layouts", path, makes, err);
    if (fd < 0)
        free(path);
    else
        *ret_path = path;
    /* Where a user may not look they have saved nothing: a home of somebody else's, as sudo leaves
     * it. */
    return fd == -EACCES && !makes ? -ENOENT : fd;
}

/* ---- writing ---- */

/* A document of the structures that are wanted, made of a larger one: a list of names that grows,
 * each taken once. */
struct subset {
    struct json_object *from, *to; /* documents */
    const char **names;            /* of structures, the whole document's */
    size_t count;
    bool out_of_memory;
};

static struct json_object *member(struct json_object *o, const char *key)
{
    struct json_object *value = NULL;

    if (json_object_is_type(o, json_type_object))
        json_object_object_get_ex(o, key, &value);
    return value;
}

/* Copies an entry of a section; false: it is there already, or nowhere. */
static bool copy_entry(struct subset *s, const char *section, const char *name)
{
    struct json_object *to = member(s->to, section),
                       *entry = member(member(s->from, section), name);

    if (!entry || member(to, name))
        return false;
    s->out_of_memory |= json_object_object_add(to, name, json_object_get(entry)) != 0;
    return true;
}

/* What a member's type needs by value. */
static void follow_type(struct subset *s, struct json_object *type)
{
    for (int depth = 0; type && depth < CHAIN_MOST; depth++) {
        struct json_object *kind = member(type, "kind"), *name = member(type, "name");
        const char *word =
            json_object_is_type(kind, json_type_string) ? json_object_get_string(kind) : "";
        const char *text =
            json_object_is_type(name, json_type_string) ? json_object_get_string(name) : "";

        if (!strcmp(word, "pointer") || !strcmp(word, "function"))
            return;
        if (!strcmp(word, "base"))
            copy_entry(s, "base_types", text);
        else if (!strcmp(word, "enum"))
            copy_entry(s, "enums", text);
        else if (*text && s->count < TYPES_MOST && copy_entry(s, "user_types", text))
            s->out_of_memory |= array_append(s->names, s->count, text) != 0;
        type = member(type, !strcmp(word, "bitfield") ? "type" : "subtype");
    }
}

static void follow_structure(struct subset *s, const char *name)
{
    struct json_object *fields = member(member(member(s->from, "user_types"), name), "fields");

    if (!json_object_is_type(fields, json_type_object))
        return;
    json_object_object_foreach(fields, key, field)
    {
        (void)key;
        follow_type(s, member(field, "type"));
    }
}

static void start_subset(struct subset *s)
{
    static const char *const sections[] = {"user_types", "base_types", "enums", "symbols"};
    struct json_object *metadata = member(s->from, "metadata");
    const char *wanted;

    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
        json_object_object_add(s->to, sections[i], json_object_new_object());
    if (metadata)
        json_object_object_add(s->to, "metadata", json_object_get(metadata));
    copy_entry(s, "base_types", "pointer");
    copy_entry(s, "base_types", "void");
    for (unsigned int i = 0; (wanted = dump_symbols_wanted(i)); i++) {
        char name[80];

        snprintf(name, sizeof(name), "_%s", wanted);
        if (!copy_entry(s, "user_types", name))
            copy_entry(s, "user_types", wanted);
    }
    json_object_object_foreach(member(s->to, "user_types"), key, type)
    {
        (void)type;
        s->out_of_memory |= array_append(s->names, s->count, key) != 0;
    }
}

static struct json_object *make_subset(struct json_object *document)
{
    struct subset s = {.from = document, .to = json_object_new_object()};

    if (!s.to)
        return NULL;
    start_subset(&s);
    for (size_t i = 0; i < s.count; i++)
        follow_structure(&s, s.names[i]);
    free(s.names);
    if (s.out_of_memory) {
        json_object_put(s.to);
        return NULL;
    }
    return s.to;
}

static int write_all(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t n = write(fd, text, length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? -errno : -EIO;
        text += n;
        length -= (size_t)n;
    }
    return fsync(fd) ? -errno : 0;
}

/* Puts a file in place whole: under a name of this process first. */
static int put_in_place(int folder, const char *name, const char *text, size_t length)
{
    char draft[96];
    int fd, code;

    snprintf(draft, sizeof(draft), ".%s.%d", name, (int)getpid());
    unlinkat(folder, draft, 0);
    fd = openat(folder, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    code = write_all(fd, text, length);
    close(fd);
    if (!code && renameat(folder, draft, folder, name))
        code = -errno;
    if (code)
        unlinkat(folder, draft, 0);
    return code;
}

static int write_text(const char *name, const char *text, size_t length, char **ret_path,
                      struct prcb_error *err)
{
    char *folder_path;
    int code, folder = open_folder(true, &folder_path, err);

    if (folder < 0)
        return folder;
    code = put_in_place(folder, name, text, length);
    close(folder);
    if (code)
        prcb_fail(err, code, "%s: cannot write %s: %s", folder_path, name, strerror(-code));
    else if (asprintf(ret_path, "%s/%s", folder_path, name) < 0)
        code = prcb_fail(err, -ENOMEM, "out of memory");
    free(folder_path);
    return code;
}

int dump_saved_write(const struct dump_symbols *table, const char *version, char **ret_path,
                     struct prcb_error *err)
{
    struct json_object *document;
    const char *text;
    uint32_t n[4];
    char name[80];
    bool has_revision;
    size_t length = 0;
    int code;

    if (!take_build(version, '\0', n, &has_revision))
        return prcb_fail(err, -EINVAL,
                         "\"%s\" is no build: to save layouts, say which kernel's they are: "
                         "--version 10.0.26200.1742",
                         version);
    if (!table->machine)
        return prcb_fail(err, -EINVAL, "%s: it does not say of what machine it is", table->path);
    document = make_subset(table->document);
    text = document ? json_object_to_json_string_length(document, JSON_C_TO_STRING_PLAIN, &length)
                    : NULL;
    snprintf(name, sizeof(name), "%u.%u.%u.%u-%s.json", n[0], n[1], n[2], n[3], table->machine);
    if (!text)
        code = prcb_fail(err, -ENOMEM, "out of memory");
    else if (length > FILE_MOST)
        code = prcb_fail(err, -E2BIG, "%s: its structures take %zu bytes: not a kernel's",
                         table->path, length);
    else
        code = write_text(name, text, length, ret_path, err);
    json_object_put(document);
    return code;
}

/* ---- reading ---- */

static int load_one(int folder, const char *path, const char *name, struct dump_tables *ret,
                    struct prcb_error *err)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), code;
    char *whole = NULL;
    struct stat st;

    if (fd < 0)
        return prcb_fail(err, -errno, "%s/%s: %s", path, name, strerror(errno));
    code = asprintf(&whole, "%s/%s", path, name) < 0 ? -ENOMEM : check_own(fd, whole, &st, err);
    if (!code && (!S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_MOST))
        code = prcb_fail(err, -EINVAL, "%s: not a file that was saved here", whole);
    if (!code)
        code = dump_symbols_load_fd(fd, whole, ret, err);
    free(whole);
    close(fd);
    return code;
}

/* A file's name is "BUILD-MACHINE.json". */
static bool is_named(const char *name, const char *machine, uint32_t ret[4])
{
    const char *dash = strchr(name, '-');
    size_t length = strlen(machine);
    bool has_revision;

    return dash && !strncmp(dash + 1, machine, length) && !strcmp(dash + 1 + length, ".json") &&
           take_build(name, '-', ret, &has_revision);
}

/* Those that are wanted: of a build, or one alone (all four numbers). Returns 0 if there are none;
 * a file that is not used is an error only if it is the one wanted. */
static int load_wanted(const uint32_t *wanted, bool is_exact, const char *machine,
                       struct dump_tables *ret, struct prcb_error *err)
{
    struct dirent **entries = NULL;
    char *path;
    int folder = open_folder(false, &path, err), count, code = 0;

    if (folder < 0)
        return folder == -ENOENT ? 0 : folder;
    count = scandirat(folder, ".", &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        uint32_t n[4];

        if (!code && ret->count < TABLES_MOST && is_named(entries[i]->d_name, machine, n) &&
            n[2] == wanted[2] && (!is_exact || !compare_builds(n, wanted)))
            code = load_one(folder, path, entries[i]->d_name, ret, err);
        free(entries[i]);
    }
    free(entries);
    close(folder);
    free(path);
    return code;
}

/* What was read of a build and machine, also if that is nothing. */
struct loaded {
    struct loaded *next;
    uint32_t build;
    const char *machine; /* static */
    struct dump_tables tables;
};
struct dump_saved {
    pthread_mutex_t lock;
    struct loaded *first;
};

struct dump_saved *dump_saved_start(void)
{
    struct dump_saved *s = calloc(1, sizeof(*s));

    if (s)
        pthread_mutex_init(&s->lock, NULL);
    return s;
}

static struct loaded *load_build(struct dump_saved *s, uint32_t build, const char *machine,
                                 struct prcb_error *why)
{
    const uint32_t wanted[4] = {0, 0, build, 0};
    struct loaded *l = s->first;

    while (l && (l->build != build || strcmp(l->machine, machine)))
        l = l->next;
    if (l || !(l = calloc(1, sizeof(*l))))
        return l;
    l->build = build;
    l->machine = machine;
    l->next = s->first;
    s->first = l;
    if (load_wanted(wanted, false, machine, &l->tables, why))
        dump_symbols_free(&l->tables);
    else
        why->text[0] = '\0';
    return l;
}

const struct dump_tables *dump_saved_for(struct dump_saved *s, uint32_t build, const char *machine,
                                         struct prcb_error *why)
{
    struct loaded *l;

    pthread_mutex_lock(&s->lock);
    l = load_build(s, build, machine, why);
    pthread_mutex_unlock(&s->lock);
    return l && l->tables.count ? &l->tables : NULL;
}

void dump_saved_end(struct dump_saved *s)
{
    struct loaded *l = s ? s->first : NULL, *next;

    for (; l; l = next) {
        next = l->next;
        dump_symbols_free(&l->tables);
        free(l);
    }
    if (s)
        pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Reads the build in a saved file's path. */
static void build_of(const struct dump_symbols *table, uint32_t ret[4], char *text, size_t size)
{
    const char *name = strrchr(table->path, '/') + 1;
    bool has_revision;

    take_build(name, '-', ret, &has_revision);
    snprintf(text, size, "%.*s", (int)strcspn(name, "-"), name);
}

int dump_saved_layout(const char *structure, const char *version, enum prcb_arch arch,
                      struct prcb_layout **ret, struct prcb_error *err)
{
    struct prcb_layout_version known = {.size = sizeof(known)};
    const struct dump_symbols *last = NULL;
    uint32_t wanted[4], n[4], most[4] = {0};
    struct dump_tables tables = {0};
    bool has_revision;
    char build[64], text[64];
    int code;

    if (!take_build(version, '\0', wanted, &has_revision) ||
        (!has_revision && !prcb_layout_version_parse(version, arch, &known, NULL, NULL) &&
         known.build == wanted[2]))
        return -ENOENT;
    code = load_wanted(wanted, has_revision, prcb_arch_name(arch), &tables, err);
    for (size_t i = 0; !code && i < tables.count; i++) {
        build_of(&tables.tables[i], n, text, sizeof(text));
        if (last && compare_builds(n, most) <= 0)
            continue;
        last = &tables.tables[i];
        memcpy(most, n, sizeof(most));
        memcpy(build, text, sizeof(build));
    }
    if (!code)
        code = last ? prcb_layout_from_symbols(structure, build, arch, last->rows, last->count,
                                               sizeof(*last->rows), ret, err)
                    : -ENOENT;
    dump_symbols_free(&tables);
    return code;
}
