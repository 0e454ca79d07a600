/* SPDX-License-Identifier: BSD-2-Clause */
#include "http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "guard.h"
#include "number.h"
#include "parts.h"
#include "text.h"

#define CONNECTIONS   256
#define NEWCOMERS     16 /* of these; when so few are free, the oldest stranger's is, too */
#define STREAMS       32
#define IDLE_SECONDS  10
#define TOKEN_SECONDS 5 /* a connection has to show its token or cookie within this time */
#define MEMORY_EACH   (16u << 10)
#define BLOCK         (32u << 10) /* of an event, at once */
#define BYTES_MOST    (64u << 20) /* of frames */
#define PLAIN         "text/plain; charset=utf-8"

struct event {
    char *text; /* owned */
    size_t size;
    bool key;
};

/* A connection from its first byte. */
struct guest {
    int fd; /* -1: the place is free */
    time_t since;
    uint64_t number; /* in the order in which they came */
    bool known;      /* it had the token or the cookie */
    bool leaves;
};

/* A reader of events. */
struct stream {
    struct http *http;
    struct MHD_Connection *connection;
    uint64_t number; /* of the event that it is at; one more than the last: it waits */
    size_t offset;
    bool suspended;
};

struct http {
    struct MHD_Daemon *daemon;
    struct MHD_Response *page;
    char *token, cookie_name[32], cookie[HTTP_TOKEN + 1];
    struct event *events; /* a ring */
    size_t room, count;
    uint64_t first, history; /* the number of the oldest; how many a page keeps */
    size_t bytes;
    struct stream *streams[STREAMS];
    struct guest guests[CONNECTIONS];
    uint64_t guests_so_far;
};

static time_t now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* ---- frames --------------------------------------------------------------------------------- */

static struct event *event_of(const struct http *h, uint64_t number)
{
    return number >= h->first && number < h->first + h->count ? &h->events[number % h->room] : NULL;
}

static void drop_first(struct http *h)
{
    struct event *event = event_of(h, h->first);

    h->first++;
    h->bytes -= event->size;
    h->count--;
    free(event->text);
    *event = (struct event){0};
}

/* Drops whole groups from key frame to key frame, if those that stay are enough or all together
 * are too large. */
static void drop_old(struct http *h)
{
    for (;;) {
        uint64_t next = h->first + 1;

        while (event_of(h, next) && !event_of(h, next)->key)
            next++;
        if (!event_of(h, next) ||
            (h->bytes <= BYTES_MOST && h->first + h->count - next < h->history))
            return;
        while (h->first < next)
            drop_first(h);
    }
}

static int make_room(struct http *h)
{
    size_t room = h->room ? 2 * h->room : 64;
    struct event *events;

    if (h->count < h->room)
        return 0;
    events = calloc(room, sizeof(*events));
    if (!events)
        return -ENOMEM;
    for (uint64_t i = h->first; i < h->first + h->count; i++)
        events[i % room] = h->events[i % h->room];
    free(h->events);
    h->events = events;
    h->room = room;
    return 0;
}

int http_add(struct http *h, char *text, size_t size, bool key)
{
    if (make_room(h)) {
        free(text);
        return -ENOMEM;
    }
    h->events[(h->first + h->count++) % h->room] = (struct event){text, size, key};
    h->bytes += size;
    drop_old(h);
    for (size_t i = 0; i < STREAMS; i++) {
        if (h->streams[i] && h->streams[i]->suspended) {
            h->streams[i]->suspended = false;
            MHD_resume_connection(h->streams[i]->connection);
        }
    }
    return 0;
}

/* ---- events --------------------------------------------------------------------------------- */

/* Copies "id: 7\ndata: {...}\n\n" from an offset on, as much as fits. */
static size_t copy_event(uint64_t number, const struct event *event, size_t offset, char *to,
                         size_t room)
{
    char head[48];
    const struct {
        const char *at;
        size_t size;
    } parts[] = {
        {head,
         (size_t)snprintf(head, sizeof(head), "id: %llu\ndata: ", (unsigned long long)number)},
        {event->text, event->size},
        {"\n\n", 2},
    };
    size_t copied = 0;

    for (size_t i = 0; i < 3 && copied < room; i++) {
        size_t left = parts[i].size > offset ? parts[i].size - offset : 0;
        size_t size = left < room - copied ? left : room - copied;

        memcpy(to + copied, parts[i].at + (left ? offset : 0), size);
        offset = left ? 0 : offset - parts[i].size;
        copied += size;
    }
    return copied;
}

/* Supplies blocks of events. A reader whose place was dropped is too slow: it starts again. */
static ssize_t read_events(void *ctx, uint64_t position, char *to, size_t room)
{
    struct stream *stream = ctx;
    struct http *h = stream->http;
    const struct event *event = event_of(h, stream->number);
    size_t size;

    (void)position;
    if (!event && stream->number != h->first + h->count)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!event) {
        stream->suspended = true;
        MHD_suspend_connection(stream->connection);
        return 0;
    }
    size = copy_event(stream->number, event, stream->offset, to, room);
    stream->offset += size;
    if (size < room) {
        stream->number++;
        stream->offset = 0;
    }
    return size ? (ssize_t)size : read_events(ctx, position, to, room);
}

static void end_stream(void *ctx)
{
    struct stream *stream = ctx;

    for (size_t i = 0; i < STREAMS; i++) {
        if (stream->http->streams[i] == stream)
            stream->http->streams[i] = NULL;
    }
    free(stream);
}

/* ---- answers -------------------------------------------------------------------------------- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static void add_headers(struct MHD_Response *response, const char *type)
{
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "X-Frame-Options", "DENY");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result;

    if (!response)
        return MHD_NO;
    add_headers(response, PLAIN);
    MHD_add_response_header(response, "Content-Security-Policy", "default-src 'none'");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET");
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* Returns where a reader that had this event goes on: after it, if that is still there. */
static uint64_t place_after(const struct http *h, const char *last)
{
    uint64_t number;

    if (last && !number_parse(last, 0, UINT64_MAX - 1, &number) &&
        (event_of(h, number + 1) || (h->count && number + 1 == h->first + h->count)))
        return number + 1;
    return h->first;
}

static enum MHD_Result answer_events(struct http *h, struct MHD_Connection *connection)
{
    struct MHD_Response *response;
    struct stream *stream;
    enum MHD_Result result;
    size_t place = 0;

    while (place < STREAMS && h->streams[place])
        place++;
    if (place == STREAMS)
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many pages are open\n");
    stream = calloc(1, sizeof(*stream));
    if (!stream)
        return MHD_NO;
    *stream = (struct stream){
        .http = h,
        .connection = connection,
        .number = place_after(h, header(connection, "Last-Event-ID")),
    };
    response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_events, stream, end_stream);
    if (!response) {
        free(stream);
        return MHD_NO;
    }
    h->streams[place] = stream;
    add_headers(response, "text/event-stream");
    result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_page(struct http *h, struct MHD_Connection *connection)
{
    return MHD_queue_response(connection, MHD_HTTP_OK, h->page);
}

/* ---- who may ----------------------------------------------------------------------------------
 */

static bool may(const struct http *h, struct MHD_Connection *connection)
{
    return guard_equal(MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token"),
                       h->token) ||
           guard_equal(MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, h->cookie_name),
                       h->cookie);
}

static struct guest *guest_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static enum MHD_Result answer(void *ctx, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    struct http *h = ctx;
    const char *host = header(connection, "Host"), *length = header(connection, "Content-Length");
    bool page = !strcmp(url, "/");
    static char begun;

    (void)version;
    (void)upload;
    if (strcmp(method, "GET"))
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
    if (*upload_size || (length && strcmp(length, "0")) || header(connection, "Transfer-Encoding"))
        return refuse(connection, MHD_HTTP_BAD_REQUEST, "a request with a body\n");
    /* An answer to the first call would close the connection, for a body could still come. */
    if (!*state) {
        *state = &begun;
        return MHD_YES;
    }
    if (!guard_host(host))
        return refuse(connection, MHD_HTTP_MISDIRECTED_REQUEST,
                      "this page answers to localhost, 127.0.0.1 and [::1] only\n");
    if (!guard_origin(header(connection, "Origin"), host) ||
        !guard_site(header(connection, "Sec-Fetch-Site"), page))
        return refuse(connection, MHD_HTTP_FORBIDDEN, "a request of another page\n");
    if (!may(h, connection))
        return refuse(connection, MHD_HTTP_FORBIDDEN,
                      "open the address that prcb serve printed, with its token\n");
    if (guest_of(connection))
        guest_of(connection)->known = true;
    if (page)
        return answer_page(h, connection);
    if (!strcmp(url, "/events"))
        return answer_events(h, connection);
    return refuse(connection, MHD_HTTP_NOT_FOUND, "not found\n");
}

/* ---- connections ------------------------------------------------------------------------------
 */

/* Strangers may come as fast as they like: the oldest of them leaves its place to the next, who may
 * be the owner of the token and says so at once. */
static void make_place(struct http *h)
{
    struct guest *oldest = NULL;
    size_t open = 0;

    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct guest *guest = &h->guests[i];

        open += guest->fd >= 0;
        if (guest->fd >= 0 && !guest->known && !guest->leaves &&
            (!oldest || guest->number < oldest->number))
            oldest = guest;
    }
    if (open <= CONNECTIONS - NEWCOMERS || !oldest)
        return;
    shutdown(oldest->fd, SHUT_RDWR);
    oldest->leaves = true;
}

static void notice(void *ctx, struct MHD_Connection *connection, void **state,
                   enum MHD_ConnectionNotificationCode code)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct http *h = ctx;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*state)
            ((struct guest *)*state)->fd = -1;
        return;
    }
    for (size_t i = 0; info && i < CONNECTIONS && !*state; i++) {
        if (h->guests[i].fd < 0) {
            h->guests[i] = (struct guest){
                .fd = info->connect_fd, .since = now_s(), .number = ++h->guests_so_far};
            *state = &h->guests[i];
        }
    }
    make_place(h);
}

/* Ends strangers' connections: a client that shows no token and sends a byte now and then must
 * not keep others out, and libmicrohttpd ends a connection for silence only. */
static void end_strangers(struct http *h)
{
    time_t now = now_s();

    for (size_t i = 0; i < CONNECTIONS; i++) {
        const struct guest *guest = &h->guests[i];

        if (guest->fd >= 0 && !guest->known && now - guest->since >= TOKEN_SECONDS)
            shutdown(guest->fd, SHUT_RDWR);
    }
}

static bool any_stranger(const struct http *h)
{
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (h->guests[i].fd >= 0 && !h->guests[i].known)
            return true;
    }
    return false;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static int make_secret(char *ret, size_t digits)
{
    unsigned char bytes[HTTP_TOKEN / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return -EIO;
    text_hex(bytes, digits / 2, ret);
    return 0;
}

static int make_page(struct http *h)
{
    char *text = NULL, policy[1024], cookie[160];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return -ENOMEM;
    fprintf(out, "%s%s<script type=\"application/octet-stream\" id=\"live\"></script>\n%s",
            page_part_head, page_part_middle, page_part_tail);
    if (fclose(out)) {
        free(text);
        return -ENOMEM;
    }
    h->page = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    if (!h->page) {
        free(text);
        return -ENOMEM;
    }
    snprintf(policy, sizeof(policy), "%s; connect-src 'self'; frame-ancestors 'none'",
             page_part_policy);
    snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; HttpOnly; SameSite=Strict", h->cookie_name,
             h->cookie);
    add_headers(h->page, "text/html; charset=utf-8");
    MHD_add_response_header(h->page, "Content-Security-Policy", policy);
    MHD_add_response_header(h->page, "Set-Cookie", cookie);
    return 0;
}

int http_open(int listening, const char *token, uint64_t history_frames, struct http **ret)
{
    struct http *h = calloc(1, sizeof(*h));
    int result;

    if (!h)
        return -ENOMEM;
    for (size_t i = 0; i < CONNECTIONS; i++)
        h->guests[i].fd = -1;
    h->history = history_frames;
    h->token = strdup(token);
    /* Browsers keep cookies by host, not by port: the cookie of another server on this host has
     * another name. */
    memcpy(h->cookie_name, "prcb_", 5);
    result = h->token ? make_secret(h->cookie_name + 5, 16) : -ENOMEM;
    if (!result)
        result = make_secret(h->cookie, HTTP_TOKEN);
    if (!result)
        result = make_page(h);
    if (!result) {
        h->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                                     answer, h, MHD_OPTION_LISTEN_SOCKET, listening,
                                     MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
                                     MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
                                     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_EACH,
                                     MHD_OPTION_NOTIFY_CONNECTION, notice, h, MHD_OPTION_END);
        result = h->daemon ? 0 : -EINVAL;
    }
    if (result)
        http_close(h);
    else
        *ret = h;
    return result;
}

void http_close(struct http *h)
{
    if (!h)
        return;
    /* libmicrohttpd would wait for connections that sleep. */
    for (size_t i = 0; i < STREAMS; i++) {
        if (h->streams[i] && h->streams[i]->suspended)
            MHD_resume_connection(h->streams[i]->connection);
    }
    if (h->daemon)
        MHD_stop_daemon(h->daemon);
    if (h->page)
        MHD_destroy_response(h->page);
    while (h->count)
        drop_first(h);
    free(h->events);
    free(h->token);
    free(h);
}

int http_fd(const struct http *h)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    return info ? info->epoll_fd : -1;
}

int http_timeout(const struct http *h)
{
    unsigned MHD_LONG_LONG ms;
    int most = any_stranger(h) ? 1000 : -1;

    if (MHD_get_timeout(h->daemon, &ms) != MHD_YES)
        return most;
    return most >= 0 && ms > (unsigned)most ? most : ms > 60000 ? 60000 : (int)ms;
}

void http_run(struct http *h)
{
    end_strangers(h);
    MHD_run(h->daemon);
}
