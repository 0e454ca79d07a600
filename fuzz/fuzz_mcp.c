/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a client says to prcb mcp, a message of any bytes: what becomes of it is an answer of one
 * line, or a command line in which no text of the client's is an option, and no name a path.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "mcp_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_json_line(const char *text)
{
    json_object *parsed = json_tokener_parse(text);
    int is = parsed && strchr(text, '\n') == text + strlen(text) - 1;

    json_object_put(parsed);
    return is;
}

/* Every word that begins with '-' is one of the tools' own. */
static void check_words(const struct mcp_message *m)
{
    static const char *const options[] = {
        "--brief", "--for", "-p",     "--unit",       "--container", "--pod",      "--cgroup",
        "-a",      "--top", "--diff", "--per-cgroup", "--chain",     "--critical",
    };

    for (size_t i = 0; i < m->count; i++) {
        int known = m->words[i][0] != '-';

        for (size_t k = 0; k < sizeof(options) / sizeof(*options); k++)
            known |= !strcmp(m->words[i], options[k]);
        assert(known && m->words[i][0]);
    }
    assert(!strcmp(m->words[0], "why") || !strcmp(m->words[0], "stat") ||
           !strcmp(m->words[0], "report") || !strcmp(m->words[0], "dump"));
    assert(strcmp(m->words[0], "why") != 0 || m->words[m->count - 1][0] == '-' ||
           m->words[m->count - 2][0] == '-' || !strchr(m->words[m->count - 1], '/'));
    assert(!m->words[m->count] && m->seconds >= 1 && m->seconds <= 60);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct mcp_message m;

    assert(text);
    memcpy(text, data, size);
    text[size] = '\0';
    assert(!mcp_take(text, size, &m));
    assert(!m.count || !m.answer);
    if (m.count) {
        check_words(&m);
        assert(!mcp_answer(&m, text, size, size % 2));
    }
    assert(!m.answer || is_json_line(m.answer));
    mcp_free(&m);
    free(text);
    return 0;
}
