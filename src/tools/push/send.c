/* SPDX-License-Identifier: BSD-2-Clause */
#include "send.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "array.h"
#include "error.h"
#include "otlp.h"
#include "read_file.h"

#define CONNECT_MS        10000L
#define REQUEST_MS        30000L
#define ANSWER_MOST       65536u
#define ASKED_MOST        86400
#define CERTIFICATES_MOST (4u << 20)

struct sender {
    struct sender_options options;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    curl_mime *form;
    char *base; /* where requests go */
    char *body; /* of the request, if it is not the parcel's */
    char *certificates;
    size_t certificates_size;
    char said[CURL_ERROR_SIZE];
    char *answer;
    size_t answer_size, answer_room;
    bool busy;
};

static const struct {
    const char *path, *type; /* type NULL: a form, which has its own */
} forms[] = {
    [PUSH_OTLP] = {"/v1development/profiles", "Content-Type: application/x-protobuf"},
    [PUSH_PYROSCOPE] = {"/ingest", NULL},
    [PUSH_PARCA] = {"/profiles/writeraw", "Content-Type: application/json"},
};

/* Pyroscope takes types that it does not know only if it is told what they are. */
static const char types[] = "{\"off_cpu\": {\"units\": \"nanoseconds\", \"display-name\": "
                            "\"off_cpu\", \"aggregation\": \"sum\", \"cumulative\": false}, "
                            "\"cpu\": {\"units\": \"nanoseconds\", \"display-name\": \"cpu\", "
                            "\"aggregation\": \"sum\", \"cumulative\": false}}";

/* ---- opening --------------------------------------------------------------------- */

/* A URL without a path gets the usual one. */
static int find_base(struct sender *s, struct prcb_error *err)
{
    const char *url = s->options.url, *host = strstr(url, "://");
    size_t length = strlen(url);
    CURLU *parsed = curl_url();
    char *scheme = NULL;
    CURLUcode code = CURLUE_OUT_OF_MEMORY;
    bool fits, bare;

    if (parsed)
        code = curl_url_set(parsed, CURLUPART_URL, url, 0);
    if (!code)
        code = curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0);
    fits = !code && host && (!strcmp(scheme, "http") || !strcmp(scheme, "https")) &&
           !strpbrk(url, "?#");
    curl_free(scheme);
    curl_url_cleanup(parsed);
    if (!fits)
        return prcb_fail(err, -EINVAL,
                         "--to %s: must be http://HOST[:PORT] or https://..., "
                         "and no query",
                         url);
    while (length && url[length - 1] == '/')
        length--;
    bare = !memchr(host + 3, '/', length - (size_t)(host + 3 - url));
    if (asprintf(&s->base, "%.*s%s", (int)length, url, bare ? forms[s->options.form].path : "") < 0)
        s->base = NULL;
    return s->base ? 0 : prcb_fail(err, -ENOMEM, "out of memory");
}

static int add_header(struct sender *s, const char *line)
{
    struct curl_slist *more = curl_slist_append(s->headers, line);

    if (!more)
        return -ENOMEM;
    s->headers = more;
    return 0;
}

/* A line a header; lines with '#' first and empty ones are left out. */
static int add_headers(struct sender *s, struct prcb_error *err)
{
    char *lines = strdup(s->options.headers), *at = lines, *line;
    int result = lines ? 0 : -ENOMEM;

    if (!result && forms[s->options.form].type)
        result = add_header(s, forms[s->options.form].type);
    if (!result)
        result = add_header(s, "Expect:"); /* no pause before the body */
    while (!result && (line = strsep(&at, "\n"))) {
        line[strcspn(line, "\r")] = '\0';
        if (!*line || *line == '#')
            continue;
        if (!strchr(line, ':'))
            result = prcb_fail(err, -EINVAL, "--headers: a line is no header: it has no colon");
        else
            result = add_header(s, line);
    }
    free(lines);
    return result == -ENOMEM ? prcb_fail(err, result, "out of memory") : result;
}

/* Read now, with the rights of who started it: those of the sender may not do. */
static int read_certificates(struct sender *s, struct prcb_error *err)
{
    int result = *s->options.ca ? read_file(s->options.ca, CERTIFICATES_MOST, &s->certificates,
                                            &s->certificates_size)
                                : 0;

    return result ? prcb_fail(err, result, "--ca %s: %s", s->options.ca, strerror(-result)) : 0;
}

/* False: this libcurl (with GnuTLS) reads the file itself, at each connection. */
static bool trust(struct sender *s)
{
    struct curl_blob blob = {.data = s->certificates, .len = s->certificates_size};

    return !s->certificates || !curl_easy_setopt(s->easy, CURLOPT_CAINFO_BLOB, &blob);
}

bool sender_may_read(struct sender *s)
{
    return trust(s) || !access(s->options.ca, R_OK);
}

int sender_open(const struct sender_options *options, struct sender **ret, struct prcb_error *err)
{
    struct sender *s = calloc(1, sizeof(*s));
    int result;

    if (!s || curl_global_init(CURL_GLOBAL_DEFAULT)) {
        free(s);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    s->options = *options;
    s->multi = curl_multi_init();
    s->easy = curl_easy_init();
    result = s->multi && s->easy ? 0 : prcb_fail(err, -ENOMEM, "out of memory");
    if (!result)
        result = find_base(s, err);
    if (!result)
        result = add_headers(s, err);
    if (!result)
        result = read_certificates(s, err);
    if (result)
        sender_close(s);
    else
        *ret = s;
    return result;
}

/* Ends the request. */
static void end_request(struct sender *s)
{
    if (s->busy)
        curl_multi_remove_handle(s->multi, s->easy);
    s->busy = false;
    curl_mime_free(s->form);
    s->form = NULL;
    free(s->body);
    s->body = NULL;
}

void sender_close(struct sender *s)
{
    if (!s)
        return;
    end_request(s);
    curl_easy_cleanup(s->easy);
    curl_multi_cleanup(s->multi);
    curl_slist_free_all(s->headers);
    free(s->base);
    free(s->certificates);
    free(s->answer);
    free(s);
    curl_global_cleanup();
}

/* ---- a request ------------------------------------------------------------------- */

static size_t take_answer(char *bytes, size_t size, size_t count, void *ctx)
{
    struct sender *s = ctx;

    count *= size;
    if (s->answer_size + count > ANSWER_MOST ||
        array_reserve(s->answer, s->answer_size, s->answer_room, count + 1))
        return 0; /* ends the request */
    array_copy(s->answer + s->answer_size, bytes, count);
    s->answer_size += count;
    return count;
}

static int set_pyroscope(struct sender *s, const struct parcel *parcel, char **ret_url)
{
    char *name = NULL, text[1024];
    curl_mimepart *part;

    snprintf(text, sizeof(text), "%s{host=%s}", s->options.name, s->options.host);
    name = curl_easy_escape(s->easy, text, 0);
    if (!name ||
        asprintf(ret_url, "%s?name=%s&from=%llu&until=%llu&format=pprof&spyName=prcb", s->base,
                 name, (unsigned long long)(parcel->head.from_ns / 1000000000),
                 (unsigned long long)((parcel->head.until_ns + 999999999) / 1000000000)) < 0)
        *ret_url = NULL;
    curl_free(name);
    s->form = curl_mime_init(s->easy);
    if (!*ret_url || !s->form)
        return -ENOMEM;
    part = curl_mime_addpart(s->form);
    if (curl_mime_name(part, "profile") || curl_mime_filename(part, "profile.pb.gz") ||
        curl_mime_data(part, (const char *)parcel->body, parcel->head.size))
        return -ENOMEM;
    part = curl_mime_addpart(s->form);
    if (curl_mime_name(part, "sample_type_config") || curl_mime_filename(part, "types.json") ||
        curl_mime_data(part, types, sizeof(types) - 1))
        return -ENOMEM;
    curl_easy_setopt(s->easy, CURLOPT_MIMEPOST, s->form);
    return 0;
}

static void write_base64(FILE *out, const uint8_t *bytes, uint64_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (uint64_t i = 0; i < size; i += 3) {
        uint32_t left = size - i < 3 ? (uint32_t)(size - i) : 3, word = (uint32_t)bytes[i] << 16;

        word |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        word |= left > 2 ? bytes[i + 2] : 0;
        fputc(digits[word >> 18], out);
        fputc(digits[word >> 12 & 63], out);
        fputc(left > 1 ? digits[word >> 6 & 63] : '=', out);
        fputc(left > 2 ? digits[word & 63] : '=', out);
    }
}

/* Name and host are of characters that JSON takes as they are. */
static int make_parca(struct sender *s, const struct parcel *parcel, size_t *ret_size)
{
    FILE *out = open_memstream(&s->body, ret_size);

    if (!out)
        return -ENOMEM;
    fprintf(out,
            "{\"series\":[{\"labels\":{\"labels\":[{\"name\":\"__name__\",\"value\":\"prcb\"},"
            "{\"name\":\"instance\",\"value\":\"%s\"},{\"name\":\"job\",\"value\":\"%s\"}]},"
            "\"samples\":[{\"rawProfile\":\"",
            s->options.host, s->options.name);
    write_base64(out, parcel->body, parcel->head.size);
    fputs("\"}]}]}", out);
    return fclose(out) ? -ENOMEM : 0;
}

static void set_body(struct sender *s, const void *bytes, size_t size)
{
    curl_easy_setopt(s->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDS, bytes);
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
}

static int set_request(struct sender *s, const struct parcel *parcel)
{
    char *url = NULL;
    size_t size;
    int result = 0;

    if (s->options.form == PUSH_PYROSCOPE) {
        result = set_pyroscope(s, parcel, &url);
    } else if (s->options.form == PUSH_PARCA) {
        result = make_parca(s, parcel, &size);
        if (!result)
            set_body(s, s->body, size);
    } else {
        set_body(s, parcel->body, parcel->head.size);
    }
    if (!result && curl_easy_setopt(s->easy, CURLOPT_URL, url ? url : s->base))
        result = -ENOMEM;
    free(url);
    return result;
}

int sender_begin(struct sender *s, const struct parcel *parcel)
{
    int result;

    curl_easy_reset(s->easy); /* the connection stays */
    s->answer_size = 0;
    *s->said = '\0';
    curl_easy_setopt(s->easy, CURLOPT_ERRORBUFFER, s->said);
    curl_easy_setopt(s->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(s->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(s->easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(s->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(s->easy, CURLOPT_TIMEOUT_MS, REQUEST_MS);
    curl_easy_setopt(s->easy, CURLOPT_USERAGENT, "prcb/" PRCB_VERSION);
    curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(s->easy, CURLOPT_WRITEDATA, s);
    if (!trust(s))
        curl_easy_setopt(s->easy, CURLOPT_CAINFO, s->options.ca);
    result = set_request(s, parcel);
    if (!result && curl_multi_add_handle(s->multi, s->easy))
        result = -ENOMEM;
    s->busy = !result;
    if (result)
        end_request(s);
    return result;
}

void sender_wait(struct sender *s, int fd, int timeout_ms)
{
    struct curl_waitfd wait = {.fd = fd, .events = CURL_WAIT_POLLIN};

    curl_multi_poll(s->multi, fd >= 0 ? &wait : NULL, fd >= 0, timeout_ms, NULL);
}

static void read_otlp(const struct sender *s, struct sender_answer *ret)
{
    struct otlp_answer answer;

    if (!s->answer_size || otlp_read_answer(s->answer, s->answer_size, &answer))
        return; /* JSON, or nothing: the status says that it was taken */
    ret->rejected = answer.rejected;
    memcpy(ret->text, answer.text, sizeof(ret->text));
}

static void read_answer(struct sender *s, CURLcode code, struct sender_answer *ret)
{
    curl_off_t asked = 0;
    char *where = NULL;

    *ret = (struct sender_answer){.code = 0};
    curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &ret->code);
    /* An answer that does not end, or that is cut off, is none; its first line counts alone where
     * it was not taken, so that nobody is asked again and again who said no. */
    if (code && code != CURLE_WRITE_ERROR && ret->code < 300)
        ret->code = 0;
    curl_easy_getinfo(s->easy, CURLINFO_RETRY_AFTER, &asked);
    if (asked > 0)
        ret->asked_ms = (uint64_t)(asked < ASKED_MOST ? asked : ASKED_MOST) * 1000;
    if (ret->code >= 200 && ret->code < 300 && s->options.form == PUSH_OTLP) {
        read_otlp(s, ret);
    } else if (ret->code >= 300 && ret->code < 400) {
        curl_easy_getinfo(s->easy, CURLINFO_REDIRECT_URL, &where);
        snprintf(ret->text, sizeof(ret->text), "it is at %s: give that URL",
                 where ? where : "another place");
    } else if (!ret->code) {
        snprintf(ret->text, sizeof(ret->text), "%s", *s->said ? s->said : curl_easy_strerror(code));
    } else if (ret->code >= 400 && s->answer_size) {
        s->answer[s->answer_size] = '\0'; /* take_answer has left room */
        snprintf(ret->text, sizeof(ret->text), "%.*s", (int)strcspn(s->answer, "\r\n"), s->answer);
    }
}

bool sender_answered(struct sender *s, struct sender_answer *ret)
{
    CURLMsg *message;
    int running;

    if (!s->busy)
        return false;
    curl_multi_perform(s->multi, &running);
    while ((message = curl_multi_info_read(s->multi, &running))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        read_answer(s, message->data.result, ret);
        end_request(s);
        return true;
    }
    return false;
}
