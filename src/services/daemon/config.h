/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcbd.conf: one table of all settings, and the parser of the file. It reads the file and
 * nothing else: whoever needs a user or group asks whether it exists. It prints nothing. The
 * table is constant; a struct prcbd_config owns no memory and may be copied; functions are
 * thread safe.
 *
 * The file has one "key = value" a line; '#' starts a comment, at the start of a line or after a
 * blank. A key that is not in the table, or twice in the file, is an error.
 */
#ifndef PRCB_DAEMON_CONFIG_H
#define PRCB_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/error.h>

#define PRCBD_CONFIG_FILE "/etc/prcb/prcbd.conf"
#define PRCBD_CONFIG_SIZE 65536 /* bytes; a longer file is refused */

#define PRCBD_PATH_SIZE 108 /* as in struct sockaddr_un */
#define PRCBD_NAME_SIZE 33  /* of a user or group: 32 bytes, as useradd(8) has it */

/* Who may do something. */
enum prcbd_who { PRCBD_NOBODY, PRCBD_EVERYBODY, PRCBD_GROUP };
struct prcbd_access {
    enum prcbd_who who;
    char group[PRCBD_NAME_SIZE]; /* with PRCBD_GROUP */
};

/* Effective settings. A name that is "" was not set. */
struct prcbd_config {
    char socket[PRCBD_PATH_SIZE];
    uint64_t socket_mode;
    char socket_group[PRCBD_NAME_SIZE];
    char user[PRCBD_NAME_SIZE];
    char pin_directory[PRCBD_PATH_SIZE];
    struct prcbd_access profile_all;
    struct prcbd_access processors;
    uint64_t max_accounts_total;
    uint64_t max_memory_total; /* bytes */
    uint64_t memory_per_user;
    uint64_t accounts_per_client;
    uint64_t accounts_per_client_max;
    uint64_t accounts_per_user;
    uint64_t sessions_per_user;
    uint64_t connections_total;
    uint64_t requests_in_flight;
    uint64_t idle_timeout_s;
    uint64_t system_call_filter; /* 0, 1, and so the next */
    uint64_t interrupted;
    uint64_t tails;
    uint64_t by_whom;
    uint64_t flight; /* bytes */
    uint64_t allow_unprivileged_bpf;
};

enum prcbd_type {
    PRCBD_TYPE_PATH,   /* char[PRCBD_PATH_SIZE], absolute */
    PRCBD_TYPE_NAME,   /* char[PRCBD_NAME_SIZE], or empty */
    PRCBD_TYPE_NUMBER, /* uint64_t */
    PRCBD_TYPE_BYTES,  /* uint64_t; K, M or G may follow the number */
    PRCBD_TYPE_MODE,   /* uint64_t, octal */
    PRCBD_TYPE_SWITCH, /* uint64_t: 1 yes, 0 no */
    PRCBD_TYPE_ACCESS, /* struct prcbd_access: none, all or "group NAME" */
};

struct prcbd_setting {
    const char *key; /* NULL ends the table */
    enum prcbd_type type;
    size_t offset;        /* in struct prcbd_config */
    uint64_t min, max;    /* of numbers, both allowed */
    const char *fallback; /* the value where the file has none, as it would be written */
    bool reload;          /* taken over at SIGHUP; the others need a restart */
    const char *help;     /* what it sets, whole sentences; lines are parted by "\n" */
};
extern const struct prcbd_setting prcbd_settings[];

void prcbd_config_default(struct prcbd_config *ret);

/* Parses the text of a file; `file` is its name in errors: "FILE:LINE: ...". -EINVAL, -ERANGE. */
int prcbd_config_parse(const char *text, size_t length, const char *file, struct prcbd_config *ret,
                       struct prcb_error *err);

/* Reads and parses a file; also returns -errno of open and read, and -EFBIG. */
int prcbd_config_load(const char *file, struct prcbd_config *ret, struct prcb_error *err);

/* Writes a setting's value as it would stand in the file; it is cut to size. Returns buffer. */
#define PRCBD_VALUE_SIZE 128 /* holds every value */
const char *prcbd_config_value(const struct prcbd_config *config,
                               const struct prcbd_setting *setting, char *buffer, size_t size);

/* Writes the whole configuration as a file that parses to the same. With help, each setting's
 * description stands before it, and settings at their defaults become comments, which limits
 * that follow others then do. Returns the length without the NUL, which is written too where
 * size allows; a length of `size` or more means that the text was cut. */
size_t prcbd_config_write(const struct prcbd_config *config, bool help, char *buffer, size_t size);

/* Makes *config what was read again, except for settings that need a restart. */
void prcbd_config_reload(struct prcbd_config *config, const struct prcbd_config *read);

/* Returns how much of a total a client may use: root all of it; others together leave as much as
 * one user may have, but at most an eighth. So no number of users can shut root out. */
uint64_t prcbd_config_room(uint64_t total, uint64_t share_of_user, bool root);

/* Returns the first setting, from *at on, that differs and needs a restart; NULL: there is none
 * (more). *at is 0 at first and moves on. */
const struct prcbd_setting *prcbd_config_needs_restart(const struct prcbd_config *old,
                                                       const struct prcbd_config *new, size_t *at);

#endif
