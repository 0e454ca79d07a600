/* SPDX-License-Identifier: BSD-2-Clause */
#include "web.h"

#include <crypt.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <zlib.h>

#include <prcb/flight.h>

#include "error.h"
#include "guesses.h"
#include "now.h"
#include "places.h"
#include "read_file.h"
#include "sock_diag.h"
#include "socket_place.h"
#include "text.h"
#include "web_config.h"

#define FIRST_PASSED 3
#define BACKLOG      128
#define CONNECTIONS  (2 * (PLACES + PLACES_SPARE)) /* never reached: places are fewer */
#define MEMORY_EACH  (32u << 10)
#define FILE_MAX     (1 << 20)
#define MAC_BYTES    32

/* Files that make up the configuration: it is read again when these change. */
enum { FILE_CONFIG, FILE_CERT, FILE_KEY, FILE_CA, FILES };
struct stamp {
    struct timespec changed;
    ino_t inode;
    off_t size;
};

/* What is read again when its files change. */
struct loaded {
    struct web_config config;
    char *cert, *key, *ca;
};

struct web {
    struct web_options options;
    int sockets[WEB_SOCKETS_MAX];
    size_t socket_count;
    char *unix_path[WEB_SOCKETS_MAX]; /* to be removed at the end */
    struct socket_place unix_place[WEB_SOCKETS_MAX];
    struct MHD_Daemon *daemons[WEB_SOCKETS_MAX];
    struct places places; /* of all daemons */
    struct profiles profiles;
    struct loaded loaded;
    struct stamp stamps[FILES];
    unsigned char secret[MAC_BYTES]; /* of the next */
    /* For each user, a code of the name and password that were right last; it is not the
     * password. */
    struct known {
        bool any;
        unsigned char code[MAC_BYTES];
    } known[WEB_USERS_MAX];
    struct guesses guesses;
    int diag; /* of sock_diag.h; -1: none */
};

/* ---- sockets ---- */

static int add_socket(struct web *web, int fd, struct prcb_error *err)
{
    if (web->socket_count == WEB_SOCKETS_MAX) {
        close(fd);
        return prcb_fail(err, -E2BIG, "more than %d sockets", WEB_SOCKETS_MAX);
    }
    web->sockets[web->socket_count++] = fd;
    return 0;
}

static int listen_unix(struct web *web, const char *path, struct prcb_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (!*path || strlen(path) >= sizeof(address.sun_path))
        return prcb_fail(err, -EINVAL, "unix:%s: the path is empty or too long", path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    socket_place_clear(&address, SOCK_STREAM);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, BACKLOG)) {
        int code = -errno;

        if (fd >= 0)
            close(fd);
        return prcb_fail(err, code, "unix:%s: %s", path, strerror(-code));
    }
    web->unix_path[web->socket_count] = strdup(path);
    web->unix_place[web->socket_count] = socket_place_of(path);
    return add_socket(web, fd, err);
}

static int listen_at(const struct addrinfo *info)
{
    int one = 1, code;
    int fd = socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (info->ai_family == AF_INET6) /* each needs its own socket, or the second cannot be bound */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (!bind(fd, info->ai_addr, info->ai_addrlen) && !listen(fd, BACKLOG))
        return fd;
    code = -errno;
    close(fd);
    return code;
}

/* Listens on all addresses of the name; those that this machine does not have are left out if
 * one is left. localhost means the loopback addresses (RFC 6761), whether a hosts file has it or
 * not. */
static int listen_inet(struct web *web, const char *address, struct prcb_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    const char *colon = strrchr(address, ':');
    struct addrinfo *list = NULL;
    char host[256];
    size_t length = colon ? (size_t)(colon - address) : 0;
    int result, last = -EADDRNOTAVAIL;
    size_t before = web->socket_count;

    if (!colon || length >= sizeof(host) || !colon[1])
        return prcb_fail(err, -EINVAL, "'%s': must be HOST:PORT or unix:PATH", address);
    memcpy(host, address, length);
    host[length] = '\0';
    if (length > 1 && host[0] == '[' && host[length - 1] == ']') {
        memmove(host, host + 1, length - 2);
        host[length - 2] = '\0';
    }
    if (!strcmp(host, "localhost")) {
        hints.ai_flags = 0; /* no name and no AI_PASSIVE: loopback */
        host[0] = '\0';
    }
    result = getaddrinfo(*host ? host : NULL, colon + 1, &hints, &list);
    if (result)
        return prcb_fail(err, -EINVAL, "'%s': %s", address, gai_strerror(result));
    result = 0;
    for (const struct addrinfo *info = list; info && !result; info = info->ai_next) {
        int fd = listen_at(info);

        if (fd >= 0)
            result = add_socket(web, fd, err);
        else
            last = fd;
    }
    freeaddrinfo(list);
    if (!result && web->socket_count == before)
        return prcb_fail(err, last, "'%s': %s", address, strerror(-last));
    return result;
}

static int take_passed(struct web *web, struct prcb_error *err)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    long sockets = count ? strtol(count, NULL, 10) : 0;
    int result = 0;

    if (!pid || strtol(pid, NULL, 10) != getpid() || sockets < 1)
        return prcb_fail(err, -EINVAL, "--web.systemd-socket: systemd passed no socket");
    for (int fd = FIRST_PASSED; !result && fd < FIRST_PASSED + sockets; fd++) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, O_NONBLOCK);
        result = add_socket(web, fd, err);
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    return result;
}

/* ---- who may ---- */

static void mac(const struct web *web, const char *name, const char *password, unsigned char *ret)
{
    gnutls_hmac_hd_t hmac;

    memset(ret, 0, MAC_BYTES);
    if (gnutls_hmac_init(&hmac, GNUTLS_MAC_SHA256, web->secret, sizeof(web->secret)))
        return;
    gnutls_hmac(hmac, name, strlen(name) + 1);
    gnutls_hmac(hmac, password, strlen(password) + 1);
    gnutls_hmac_deinit(hmac, ret);
}

static bool equal(const void *a, const void *b, size_t size)
{
    const volatile unsigned char *left = a, *right = b;
    unsigned char differ = 0;

    for (size_t i = 0; i < size; i++)
        differ |= left[i] ^ right[i];
    return !differ;
}

/* Finds the user of a name. For a name that nobody has it gives some user, always the same one:
 * the check takes as long as for that one. */
static size_t user_of(const struct web *web, const char *name, bool *ret_known)
{
    unsigned char code[MAC_BYTES];
    size_t ret;

    mac(web, name, "", code);
    ret = code[0] % web->loaded.config.user_count;
    *ret_known = false;
    for (size_t i = 0; i < web->loaded.config.user_count; i++) {
        if (!strcmp(web->loaded.config.users[i].name, name)) {
            ret = i;
            *ret_known = true;
        }
    }
    return ret;
}

static bool hash_matches(const char *hash, const char *password)
{
    struct crypt_data data = {0};
    const char *made = crypt_rn(password, hash, &data, sizeof(data));
    bool ret = made && strlen(made) == strlen(hash) && equal(made, hash, strlen(hash));

    explicit_bzero(&data, sizeof(data));
    return ret;
}

enum verdict { LET_IN, UNKNOWN, TOO_MANY };

static enum verdict judge(struct web *web, const unsigned char *who, const char *name,
                          const char *password)
{
    unsigned char asked[MAC_BYTES];
    uint64_t began = now_ms(), now;
    bool known, right;
    size_t user;

    mac(web, name, password, asked);
    user = user_of(web, name, &known);
    if (web->known[user].any && equal(asked, web->known[user].code, sizeof(asked)))
        return LET_IN;
    if (!guesses_may(&web->guesses, who, began))
        return TOO_MANY;
    right = hash_matches(web->loaded.config.users[user].hash, password) && known;
    now = now_ms();
    guesses_tried(&web->guesses, who, right, now - began, now);
    if (!right)
        return UNKNOWN;
    memcpy(web->known[user].code, asked, sizeof(asked));
    web->known[user].any = true;
    return LET_IN;
}

/* Keeps what is known of unchanged users, so that they need not be asked again. */
static void keep_known(struct web *web, const struct web_config *before)
{
    struct known known[WEB_USERS_MAX] = {0};

    for (size_t i = 0; i < web->loaded.config.user_count; i++) {
        for (size_t j = 0; j < before->user_count; j++) {
            if (!strcmp(web->loaded.config.users[i].name, before->users[j].name) &&
                !strcmp(web->loaded.config.users[i].hash, before->users[j].hash))
                known[i] = web->known[j];
        }
    }
    memcpy(web->known, known, sizeof(known));
}

/* ---- answers ---- */

static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status, const char *type,
                             char *body, size_t size, bool gzip)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, body, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result result;

    if (!response) {
        free(body);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (gzip)
        MHD_add_response_header(response, "Content-Encoding", "gzip");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    if (status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, "WWW-Authenticate", "Basic realm=\"prcb-exporter\"");
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned status, const char *type,
                           const char *text)
{
    char *copy = strdup(text);

    return copy ? queue(connection, status, type, copy, strlen(copy), false) : MHD_NO;
}

#define PLAIN "text/plain; charset=utf-8"

static enum MHD_Result landing(const struct web *web, struct MHD_Connection *connection)
{
    char page[1024];

    snprintf(page, sizeof(page),
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<title>prcb-exporter</title></head>\n<body><h1>prcb-exporter</h1>\n"
             "<p>Why the threads of each container do not run. Version " PRCB_VERSION ".</p>\n"
             "<p><a href=\"%s\">Metrics</a></p></body></html>\n",
             web->options.telemetry_path);
    return say(connection, MHD_HTTP_OK, "text/html; charset=utf-8", page);
}

/* Returns NULL if the result is no shorter, or if there is no memory. */
static char *pack(const char *body, size_t size, size_t *ret_size)
{
    z_stream stream = {0};
    char *packed = malloc(size);
    int result;

    if (!packed || deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(packed);
        return NULL;
    }
    stream.next_in = (unsigned char *)body;
    stream.avail_in = (unsigned)size;
    stream.next_out = (unsigned char *)packed;
    stream.avail_out = (unsigned)size;
    result = deflate(&stream, Z_FINISH);
    *ret_size = stream.total_out;
    deflateEnd(&stream);
    if (result == Z_STREAM_END)
        return packed;
    free(packed);
    return NULL;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result metrics_page(struct web *web, struct MHD_Connection *connection)
{
    struct accept accept = accept_parse(header(connection, "Accept"));
    unsigned status = MHD_HTTP_OK;
    size_t size = 0, packed_size;
    char *body = web->options.figures(web->options.ctx, accept, &size, &status), *packed;

    if (!body)
        return say(connection, status, PLAIN, "the figures could not be read\n");
    if (accept_gzip(header(connection, "Accept-Encoding"))) {
        packed = pack(body, size, &packed_size);
        if (packed) {
            free(body);
            return queue(connection, status, exposition_type(accept.format, accept.version), packed,
                         packed_size, true);
        }
    }
    return queue(connection, status, exposition_type(accept.format, accept.version), body, size,
                 false);
}

/* ---- profiles ---- */

/* A request whose profile is being made: the connection sleeps meanwhile. */
struct sleeper {
    struct profile *profile;
    struct MHD_Connection *connection;
};

static struct sleeper no_sleeper; /* of every other request */

static const char *argument(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

/* The paths are those under which Go's programs have theirs. */
static const char *profile_kind(const struct web *web, const char *url)
{
    static const char *const kinds[][2] = {{"/debug/pprof/wait", "wait"},
                                           {"/debug/pprof/lock", "lock"},
                                           {"/debug/pprof/profile", "run"}};

    for (size_t i = 0; web->options.profiles.most && i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (!strcmp(url, kinds[i][0]))
            return kinds[i][1];
    }
    return NULL;
}

static enum MHD_Result begin_profile(struct web *web, struct MHD_Connection *connection,
                                     const char *kind, void **state)
{
    const struct profiles_request request = {.kind = kind,
                                             .seconds = argument(connection, "seconds"),
                                             .cgroup = argument(connection, "cgroup"),
                                             .comm = argument(connection, "comm"),
                                             .spans = argument(connection, "spans")};
    struct sleeper *sleeper = malloc(sizeof(*sleeper));
    const char *why = NULL;
    int result = sleeper
                     ? profiles_start(&web->profiles, &request, now_ms(), &sleeper->profile, &why)
                     : -ENOMEM;
    char text[256];

    if (!result) {
        sleeper->connection = connection;
        sleeper->profile->ctx = sleeper;
        *state = sleeper;
        MHD_suspend_connection(connection);
        return MHD_YES;
    }
    free(sleeper);
    if (result == -EINVAL && why)
        snprintf(text, sizeof(text), "%s\n", why);
    else if (result == -EBUSY)
        snprintf(text, sizeof(text), "as many profiles are being made as may be; try again\n");
    else
        snprintf(text, sizeof(text), "%s does not start: %s\n", web->options.profiles.program,
                 strerror(-result));
    return say(connection,
               result == -EINVAL && why ? MHD_HTTP_BAD_REQUEST
               : result == -EBUSY       ? MHD_HTTP_TOO_MANY_REQUESTS
                                        : MHD_HTTP_SERVICE_UNAVAILABLE,
               PLAIN, text);
}

static enum MHD_Result end_profile(struct MHD_Connection *connection, struct sleeper *sleeper)
{
    struct profile *profile = sleeper->profile;
    char text[PROFILES_SAID + 32], *body;

    if (!profile || !profile->done)
        return MHD_NO;
    if (profile->failed) {
        snprintf(text, sizeof(text), "no profile: %s\n", profile->text);
        return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, PLAIN, text);
    }
    body = profile->bytes;
    profile->bytes = NULL;
    return queue(connection, MHD_HTTP_OK, "application/octet-stream", body, profile->size, false);
}

static void wake_sleepers(struct web *web, bool all)
{
    for (size_t i = 0; i < PROFILES_MAX; i++) {
        struct profile *profile = &web->profiles.profile[i];
        struct sleeper *sleeper = profile->ctx;

        if (!profile->used || !sleeper || (!profile->done && !all))
            continue;
        profile->ctx = NULL;
        MHD_resume_connection(sleeper->connection);
    }
}

static struct place *place_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

/* Their connections do nothing meanwhile, and that is right. */
static void keep_sleepers(struct web *web)
{
    for (size_t i = 0; i < PROFILES_MAX; i++) {
        struct sleeper *sleeper = web->profiles.profile[i].ctx;

        if (web->profiles.profile[i].used && sleeper && place_of(sleeper->connection))
            place_asked(place_of(sleeper->connection), now_ms());
    }
}

/* ---- requests ---- */

/* Returns whether a request came in by this machine's loopback address. */
static bool is_local(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    union {
        struct sockaddr any;
        struct sockaddr_storage room;
    } address;
    socklen_t length = sizeof(address);
    unsigned char who[CALLER_BYTES];

    if (!info || getsockname(info->connect_fd, &address.any, &length))
        return false;
    caller_at(&address.any, who);
    return address.any.sa_family != AF_UNIX && !*who;
}

/* Detects a name that somebody's server resolved to this machine (DNS rebinding), so that a page
 * in a browser on it can read the answers. This machine's own name, "localhost" and addresses
 * are not foreign; a request without the header comes from no browser. */
static bool is_foreign(const char *host)
{
    char own[256] = "";
    size_t length = host ? strcspn(host, ":") : 0;

    if (!host || *host == '[' || strspn(host, "0123456789.") == length)
        return false;
    gethostname(own, sizeof(own) - 1);
    return (length != strlen("localhost") || strncasecmp(host, "localhost", length)) &&
           (length != strlen(own) || strncasecmp(host, own, length));
}

/* Returns whether the client showed a certificate, if one is asked for. */
static bool has_certificate(const struct web *web, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info;
    unsigned status = ~0u;

    if (!web->loaded.config.client_required)
        return true;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return info && !gnutls_certificate_verify_peers2(info->tls_session, &status) && !status;
}

static enum verdict judge_request(struct web *web, struct MHD_Connection *connection)
{
    const struct place *place = place_of(connection);
    char *password = NULL, *name;
    enum verdict verdict = UNKNOWN;

    if (!web->loaded.config.user_count)
        return LET_IN;
    name = MHD_basic_auth_get_username_password(connection, &password);
    if (name && password && place)
        verdict = judge(web, place->who, name, password);
    if (password)
        explicit_bzero(password, strlen(password));
    MHD_free(password);
    MHD_free(name);
    return verdict;
}

/* Who may ask for a moment: those who may connect to a socket of files' rights, and no browser. */
static bool is_over_unix(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    return info && info->client_addr && info->client_addr->sa_family == AF_UNIX;
}

static bool asks_for_moment(const char *method, const char *url)
{
    return !strcmp(method, "POST") && !strcmp(url, "/flight/save");
}

static enum MHD_Result save_moment(struct MHD_Connection *connection)
{
    const char *reason = argument(connection, "reason");
    struct prcb_error err;
    char text[sizeof(err.text) + 2];

    if (!is_over_unix(connection))
        return say(connection, MHD_HTTP_FORBIDDEN, PLAIN, "only over a Unix socket\n");
    if (!prcb_flight_save(reason && *reason ? reason : "prcb-exporter", &err))
        return say(connection, MHD_HTTP_ACCEPTED, PLAIN, "asked for\n");
    snprintf(text, sizeof(text), "%s\n", err.text);
    return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, PLAIN, text);
}

static enum MHD_Result answer(void *ctx, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    struct web *web = ctx;
    const char *length = header(connection, "Content-Length");
    const char *kind;

    if (place_of(connection))
        place_asked(place_of(connection), now_ms());
    if (strcmp(method, "GET") && strcmp(method, "HEAD") && !asks_for_moment(method, url))
        return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, PLAIN, "only GET and HEAD\n");
    if (*upload_size || (length && strcmp(length, "0")) || header(connection, "Transfer-Encoding"))
        return say(connection, MHD_HTTP_BAD_REQUEST, PLAIN, "a request with a body\n");
    /* An answer to the first call would close the connection, for a body could still come. */
    if (!*state) {
        *state = &no_sleeper;
        return MHD_YES;
    }
    if (*state != &no_sleeper)
        return end_profile(connection, *state);
    if (is_local(connection) && is_foreign(header(connection, "Host")))
        return say(
            connection, MHD_HTTP_MISDIRECTED_REQUEST, PLAIN,
            "over the loopback address this exporter answers to localhost, addresses and the "
            "machine's own name\n");
    if (!has_certificate(web, connection))
        return say(connection, MHD_HTTP_FORBIDDEN, PLAIN, "a client certificate is required\n");
    switch (judge_request(web, connection)) {
    case LET_IN:
        if (place_of(connection))
            place_of(connection)->known =
                web->loaded.config.user_count || web->loaded.config.client_required;
        break;
    case TOO_MANY:
        return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, PLAIN, "too many attempts\n");
    default:
        return say(connection, MHD_HTTP_UNAUTHORIZED, PLAIN, "Unauthorized\n");
    }
    if (asks_for_moment(method, url))
        return save_moment(connection);
    if (!strcmp(url, web->options.telemetry_path))
        return metrics_page(web, connection);
    kind = profile_kind(web, url);
    if (kind && !strcmp(method, "GET"))
        return begin_profile(web, connection, kind, state);
    if (!strcmp(url, "/"))
        return landing(web, connection);
    if (!strcmp(url, "/-/healthy"))
        return say(connection, MHD_HTTP_OK, PLAIN, "Healthy\n");
    if (!strcmp(url, "/-/ready"))
        return web->options.ready(web->options.ctx) ? say(connection, MHD_HTTP_OK, PLAIN, "Ready\n")
                                                    : say(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                                                          PLAIN, "prcbd is not reachable\n");
    return say(connection, MHD_HTTP_NOT_FOUND, PLAIN, "Not found\n");
}

/* ---- connections ---- */

static enum MHD_Result let_connect(void *ctx, const struct sockaddr *address, socklen_t length)
{
    return places_room(&((struct web *)ctx)->places) ? MHD_YES : MHD_NO;
}

static void connected(void *ctx, struct MHD_Connection *connection, void **state,
                      enum MHD_ConnectionNotificationCode code)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct web *web = ctx;

    if (code == MHD_CONNECTION_NOTIFY_STARTED && info) {
        *state = places_take(&web->places, info->connect_fd, now_ms());
        if (*state)
            caller_of(web->diag, info->connect_fd, ((struct place *)*state)->who);
    } else if (code == MHD_CONNECTION_NOTIFY_CLOSED && *state)
        place_leave(*state);
}

static void answered(void *ctx, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode code)
{
    struct sleeper *sleeper = *state;

    if (sleeper && sleeper != &no_sleeper) {
        profile_free(sleeper->profile);
        free(sleeper);
        *state = NULL;
    }
    if (place_of(connection))
        place_answered(place_of(connection), now_ms());
}

/* ---- daemons ---- */

static void stop_daemons(struct web *web)
{
    wake_sleepers(web, true);
    for (size_t i = 0; i < web->socket_count; i++) {
        if (web->daemons[i]) {
            int fd = MHD_quiesce_daemon(web->daemons[i]);

            MHD_stop_daemon(web->daemons[i]);
            if (fd >= 0)
                close(fd);
        }
        web->daemons[i] = NULL;
    }
}

/* The daemon gets a descriptor of its own for the socket, which stays ours for the next one: if
 * it does not start, libmicrohttpd may or may not have closed the descriptor. */
static struct MHD_Daemon *start_daemon(struct web *web, int listens)
{
    int fd = fcntl(listens, F_DUPFD_CLOEXEC, 0);
    struct MHD_Daemon *daemon;
    static char only_tls13[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3";
    static char from_tls12[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    bool tls = web->loaded.config.tls;
    const struct MHD_OptionItem secure[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, web->loaded.cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, web->loaded.key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, web->loaded.config.tls13 ? only_tls13 : from_tls12},
        {web->loaded.ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, web->loaded.ca},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

    if (fd < 0)
        return NULL;
    daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (tls ? MHD_USE_TLS : 0u), 0, let_connect, web,
        answer, web, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS, MHD_OPTION_NOTIFY_CONNECTION, connected, web,
        MHD_OPTION_NOTIFY_COMPLETED, answered, web, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(PLACES_ASK_MS / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_EACH,
        MHD_OPTION_ARRAY, tls ? secure : none, MHD_OPTION_END);
    if (!daemon && fcntl(fd, F_GETFD) >= 0)
        close(fd);
    return daemon;
}

static int start_daemons(struct web *web, struct prcb_error *err)
{
    for (size_t i = 0; i < web->socket_count; i++) {
        web->daemons[i] = start_daemon(web, web->sockets[i]);
        if (!web->daemons[i]) {
            stop_daemons(web);
            return prcb_fail(err, -EINVAL, "the HTTP server does not start%s",
                             web->loaded.config.tls ? ": certificate and key may not fit together"
                                                    : "");
        }
    }
    return 0;
}

/* ---- the configuration ---- */

static char *read_text(const char *path, struct prcb_error *err)
{
    char *text = NULL;
    size_t length;
    int result = read_file(path, FILE_MAX, &text, &length);

    if (result == -EFBIG)
        prcb_fail(err, result, "%s: longer than a certificate", path);
    else if (result)
        prcb_fail(err, result, "%s: %s", path, strerror(-result));
    return text;
}

/* Returns whether the file has changed. Ask before it is read: what is written meanwhile is then
 * read the next time. */
static bool file_changed(struct web *web, int file, const char *path)
{
    struct stamp now = {0}, before = web->stamps[file];
    struct stat st;

    if (path && !stat(path, &st))
        now = (struct stamp){st.st_mtim, st.st_ino, st.st_size};
    web->stamps[file] = now;
    return now.changed.tv_sec != before.changed.tv_sec ||
           now.changed.tv_nsec != before.changed.tv_nsec || now.inode != before.inode ||
           now.size != before.size;
}

static bool tls_files_changed(struct web *web, const struct web_config *config)
{
    bool cert = file_changed(web, FILE_CERT, config->cert_file);
    bool key = file_changed(web, FILE_KEY, config->key_file);
    bool ca = file_changed(web, FILE_CA, config->client_ca_file);

    return cert || key || ca;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static void loaded_free(struct loaded *l)
{
    web_config_free(&l->config);
    free(l->cert);
    free(l->key);
    free(l->ca);
    *l = (struct loaded){0};
}

/* Reads the files as they are now, and notes their stamps. */
static int read_files(struct web *web, struct loaded *ret, struct prcb_error *err)
{
    const struct web_config *config = &ret->config;
    int result = web_config_read(web->options.config_file, &ret->config, err);

    if (result)
        return result;
    tls_files_changed(web, config);
    if (!config->tls)
        return 0;
    ret->cert = read_text(config->cert_file, err);
    ret->key = ret->cert ? read_text(config->key_file, err) : NULL;
    ret->ca = ret->key && config->client_ca_file ? read_text(config->client_ca_file, err) : NULL;
    return !ret->key || (config->client_ca_file && !ret->ca) ? err->code : 0;
}

/* Changed users alone are no reason to end the connections. */
static bool same_daemons(const struct loaded *a, const struct loaded *b)
{
    return a->config.tls == b->config.tls && a->config.tls13 == b->config.tls13 &&
           a->config.client_required == b->config.client_required && same_text(a->cert, b->cert) &&
           same_text(a->key, b->key) && same_text(a->ca, b->ca);
}

/* Serves with the configuration that was read. If it cannot, it goes back to the one that
 * worked. */
static int serve_with(struct web *web, const struct loaded *next, struct prcb_error *err)
{
    struct loaded old = web->loaded;
    bool serves = web->daemons[0];
    struct prcb_error ignored;
    int result;

    if (serves && same_daemons(&old, next)) {
        web->loaded = *next;
        return 0;
    }
    stop_daemons(web);
    web->loaded = *next;
    result = start_daemons(web, err);
    if (result) {
        web->loaded = old;
        if (serves)
            start_daemons(web, &ignored);
    }
    return result;
}

static int load(struct web *web, struct prcb_error *err)
{
    struct loaded old = web->loaded, next = {0};
    struct stamp stamps[FILES];
    int result;

    memcpy(stamps, web->stamps, sizeof(stamps));
    result = read_files(web, &next, err);
    if (!result)
        result = serve_with(web, &next, err);
    if (result) {
        memcpy(web->stamps, stamps, sizeof(stamps));
        loaded_free(&next);
        return result;
    }
    keep_known(web, &old.config);
    loaded_free(&old);
    return 0;
}

void web_reload(struct web *web)
{
    struct prcb_error err;
    bool changed = false;

    if (web->options.config_file) {
        changed = file_changed(web, FILE_CONFIG, web->options.config_file);
        changed = tls_files_changed(web, &web->loaded.config) || changed;
    }
    if (!changed)
        return;
    if (load(web, &err))
        web->options.log(err.text);
    else
        web->options.log("the web configuration was reloaded");
}

/* ---- the whole ---- */

int web_open(const struct web_options *options, struct web **ret, struct prcb_error *err)
{
    struct web *web = calloc(1, sizeof(*web));
    int result = 0;

    if (!web)
        return prcb_fail(err, -ENOMEM, "out of memory");
    web->options = *options;
    places_init(&web->places);
    web->diag = sock_diag_open();
    web->profiles.options = options->profiles;
    if (gnutls_rnd(GNUTLS_RND_KEY, web->secret, sizeof(web->secret)))
        result = prcb_fail(err, -EIO, "cannot get random numbers");
    if (!result && options->systemd)
        result = take_passed(web, err);
    for (size_t i = 0; !result && !options->systemd && i < options->address_count; i++) {
        const char *address = options->addresses[i];

        result = strncmp(address, "unix:", 5) ? listen_inet(web, address, err)
                                              : listen_unix(web, address + 5, err);
    }
    if (options->config_file)
        file_changed(web, FILE_CONFIG, options->config_file);
    if (!result)
        result = options->config_file ? load(web, err) : start_daemons(web, err);
    if (result) {
        web_close(web);
        return result;
    }
    *ret = web;
    return 0;
}

void web_close(struct web *web)
{
    if (!web)
        return;
    stop_daemons(web);
    for (size_t i = 0; i < web->socket_count; i++) {
        close(web->sockets[i]);
        if (web->unix_path[i])
            socket_place_leave(web->unix_path[i], &web->unix_place[i]);
        free(web->unix_path[i]);
    }
    if (web->diag >= 0)
        close(web->diag);
    loaded_free(&web->loaded);
    explicit_bzero(web, sizeof(*web));
    free(web);
}

size_t web_fds(struct web *web, struct pollfd *ret, int *timeout_ms)
{
    keep_sleepers(web);
    if (places_end_late(&web->places, now_ms()) && *timeout_ms > 1000)
        *timeout_ms = 1000;
    for (size_t i = 0; i < web->socket_count; i++) {
        const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(web->daemons[i], MHD_DAEMON_INFO_EPOLL_FD);
        unsigned MHD_LONG_LONG ms;

        ret[i] = (struct pollfd){.fd = info ? info->epoll_fd : -1, .events = POLLIN};
        if (MHD_get_timeout(web->daemons[i], &ms) == MHD_YES && ms < (unsigned)*timeout_ms)
            *timeout_ms = (int)ms;
    }
    return web->socket_count + profiles_fds(&web->profiles, ret + web->socket_count, timeout_ms);
}

void web_run(struct web *web)
{
    profiles_run(&web->profiles, now_ms());
    wake_sleepers(web, false);
    for (size_t i = 0; i < web->socket_count; i++)
        MHD_run(web->daemons[i]);
}
