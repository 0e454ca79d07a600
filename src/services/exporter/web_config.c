/* SPDX-License-Identifier: BSD-2-Clause */
#include "web_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "error.h"
#include "read_file.h"
#include "text.h"

#define FILE_MAX  (1 << 20)
#define SHOWN_MAX 64

/* Walks over the file's nodes: they are mappings in mappings, whose ends are texts. */
struct reader {
    yaml_document_t document;
    const char *folder;
    struct web_config *ret;
    struct prcb_error *err;
};

/* Called for each key of a mapping with its node. Returns 0 or an error. */
typedef int take_fn(struct reader *r, const char *key, yaml_node_t *value);

static int refuse(struct reader *r, const yaml_node_t *node, const char *what, const char *word)
{
    char shown[SHOWN_MAX];

    text_copy(TEXT_ESCAPES, word, shown, sizeof(shown));
    return prcb_fail(r->err, -EINVAL, "line %zu: %s \"%s\"", node->start_mark.line + 1, what,
                     shown);
}

/* Returns NULL if the node is no text, or has a NUL in it. */
static const char *text_of(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;

    return node->type == YAML_SCALAR_NODE && strlen(text) == node->data.scalar.length ? text : NULL;
}

static int each_key(struct reader *r, yaml_node_t *node, const char *of, take_fn *take)
{
    int result = 0;

    if (node->type == YAML_SCALAR_NODE && !node->data.scalar.length)
        return 0; /* "tls_server_config:" and nothing behind it */
    if (node->type != YAML_MAPPING_NODE)
        return refuse(r, node, "not a mapping of keys to values:", of);
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         !result && pair < node->data.mapping.pairs.top; pair++) {
        yaml_node_t *key = yaml_document_get_node(&r->document, pair->key);
        yaml_node_t *value = yaml_document_get_node(&r->document, pair->value);

        if (!key || !value || !text_of(key))
            return refuse(r, node, "a key that is not a string, in", of);
        for (yaml_node_pair_t *earlier = node->data.mapping.pairs.start; earlier < pair;
             earlier++) {
            const yaml_node_t *other = yaml_document_get_node(&r->document, earlier->key);

            if (other && text_of(other) && !strcmp(text_of(other), text_of(key)))
                return refuse(r, key, "twice:", text_of(key));
        }
        result = take(r, text_of(key), value);
    }
    return result;
}

static int take_path(struct reader *r, char **to, const char *text)
{
    int length =
        *text == '/' || !*text ? asprintf(to, "%s", text) : asprintf(to, "%s/%s", r->folder, text);

    if (length < 0) {
        *to = NULL;
        return prcb_fail(r->err, -ENOMEM, "out of memory");
    }
    if (!*text) {
        free(*to);
        *to = NULL;
    }
    return 0;
}

static int take_tls(struct reader *r, const char *key, yaml_node_t *value)
{
    struct web_config *c = r->ret;
    const char *text = text_of(value);

    if (!text)
        return refuse(r, value, "the value is not a string:", key);
    if (!strcmp(key, "cert_file"))
        return take_path(r, &c->cert_file, text);
    if (!strcmp(key, "key_file"))
        return take_path(r, &c->key_file, text);
    if (!strcmp(key, "client_ca_file"))
        return take_path(r, &c->client_ca_file, text);
    if (!strcmp(key, "client_auth_type")) {
        if (strcmp(text, "NoClientCert") && strcmp(text, "RequireAndVerifyClientCert"))
            return refuse(
                r, value,
                "client_auth_type is not NoClientCert or RequireAndVerifyClientCert:", text);
        c->client_required = text[0] == 'R';
        return 0;
    }
    if (!strcmp(key, "min_version")) {
        if (strcmp(text, "TLS12") && strcmp(text, "TLS13"))
            return refuse(r, value, "min_version is not TLS12 or TLS13:", text);
        c->tls13 = text[4] == '3';
        return 0;
    }
    return refuse(r, value, "tls_server_config has no key", key);
}

static int take_user(struct reader *r, const char *key, yaml_node_t *value)
{
    struct web_user *user = &r->ret->users[r->ret->user_count];
    const char *hash = text_of(value);

    if (r->ret->user_count >= WEB_USERS_MAX)
        return refuse(r, value, "too many users, from", key);
    if (!hash || strncmp(hash, "$2", 2) || strlen(hash) != 60)
        return refuse(r, value, "not a bcrypt hash, as htpasswd -B writes it: that of", key);
    r->ret->user_count++;
    user->name = strdup(key);
    user->hash = strdup(hash);
    return user->name && user->hash ? 0 : prcb_fail(r->err, -ENOMEM, "out of memory");
}

static int take_top(struct reader *r, const char *key, yaml_node_t *value)
{
    if (!strcmp(key, "tls_server_config")) {
        r->ret->tls = true;
        return each_key(r, value, key, take_tls);
    }
    if (!strcmp(key, "basic_auth_users"))
        return each_key(r, value, key, take_user);
    return refuse(r, value, "unknown key:", key);
}

/* Refuses settings that make no sense together. */
static int check(const struct web_config *c, struct prcb_error *err)
{
    if (c->tls && (!c->cert_file || !c->key_file))
        return prcb_fail(err, -EINVAL, "tls_server_config needs cert_file and key_file");
    if (c->client_required && !c->client_ca_file)
        return prcb_fail(err, -EINVAL, "RequireAndVerifyClientCert needs client_ca_file");
    if (c->client_ca_file && !c->client_required)
        return prcb_fail(err, -EINVAL,
                         "client_ca_file needs client_auth_type: RequireAndVerifyClientCert");
    return 0;
}

int web_config_parse(const char *text, size_t length, const char *folder, struct web_config *ret,
                     struct prcb_error *err)
{
    struct reader r = {.folder = folder, .ret = ret, .err = err};
    yaml_parser_t parser;
    yaml_node_t *root;
    int result = 0;

    memset(ret, 0, sizeof(*ret));
    if (!yaml_parser_initialize(&parser))
        return prcb_fail(err, -ENOMEM, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    if (!yaml_parser_load(&parser, &r.document)) {
        result = prcb_fail(err, -EINVAL, "line %zu: %s", parser.problem_mark.line + 1,
                           parser.problem ? parser.problem : "no YAML");
        yaml_parser_delete(&parser);
        return result;
    }
    root = yaml_document_get_root_node(&r.document);
    if (root) /* an empty file asks for nothing */
        result = each_key(&r, root, "the file", take_top);
    if (!result)
        result = check(ret, err);
    yaml_document_delete(&r.document);
    yaml_parser_delete(&parser);
    return result;
}

int web_config_read(const char *path, struct web_config *ret, struct prcb_error *err)
{
    const char *slash = strrchr(path, '/');
    char *text = NULL, *folder;
    struct prcb_error why;
    size_t length;
    int result = read_file(path, FILE_MAX, &text, &length);

    memset(ret, 0, sizeof(*ret));
    folder = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
    if (result == -EFBIG)
        result = prcb_fail(err, -EINVAL, "%s: longer than %d bytes", path, FILE_MAX);
    else if (result)
        result = prcb_fail(err, result, "%s: %s", path, strerror(-result));
    else if (!folder)
        result = prcb_fail(err, -ENOMEM, "out of memory");
    else if (web_config_parse(text, length, folder, ret, &why))
        result = prcb_fail(err, why.code, "%s: %s", path, why.text);
    free(text);
    free(folder);
    return result;
}

void web_config_free(struct web_config *config)
{
    free(config->cert_file);
    free(config->key_file);
    free(config->client_ca_file);
    for (size_t i = 0; i < config->user_count; i++) {
        free(config->users[i].name);
        free(config->users[i].hash);
    }
    memset(config, 0, sizeof(*config));
}
