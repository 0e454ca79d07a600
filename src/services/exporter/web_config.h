/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Parses the file of --web.config.file, as the exporters of Prometheus have it: TLS and users,
 * in YAML. An unknown key is an error that names it, for a misspelled key must not leave a door
 * open.
 */
#ifndef PRCB_EXPORTER_WEB_CONFIG_H
#define PRCB_EXPORTER_WEB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include <prcb/error.h>

#define WEB_USERS_MAX 64

struct web_user {
    char *name, *hash; /* bcrypt, as htpasswd -B writes it */
};

struct web_config {
    char *cert_file, *key_file,
        *client_ca_file; /* NULL: none; with the file's directory in front */
    bool tls, client_required, tls13;
    struct web_user users[WEB_USERS_MAX];
    size_t user_count;
};

/* text: the content of the file. folder: the file's directory, for relative paths. -EINVAL,
 * -ENOMEM. The caller frees *ret in any case. */
int web_config_parse(const char *text, size_t length, const char *folder, struct web_config *ret,
                     struct prcb_error *err);
int web_config_read(const char *path, struct web_config *ret, struct prcb_error *err);
void web_config_free(struct web_config *config);

#endif
