/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_keys.h"

#include <stdlib.h>
#include <string.h>

const struct top_action_row top_actions[TOP_ACTIONS] = {
    {NULL, "", NULL, NULL},
#define ACTION(ID, name, keys, section, help) {name, keys, section, help},
#include "top_actions.def"
};

uint32_t top_key_number(const char *word, size_t length)
{
    static const struct {
        const char *word;
        uint32_t number;
    } words[] = {
        {"Up", TOP_KEY_UP},       {"Down", TOP_KEY_DOWN}, {"Left", TOP_KEY_LEFT},
        {"Right", TOP_KEY_RIGHT}, {"PgUp", TOP_KEY_PGUP}, {"PgDn", TOP_KEY_PGDN},
        {"Home", TOP_KEY_HOME},   {"End", TOP_KEY_END},   {"Enter", TOP_KEY_ENTER},
        {"Tab", TOP_KEY_TAB},     {"Esc", TOP_KEY_ESC},   {"Backspace", TOP_KEY_BACKSPACE},
        {"Space", ' '},
    };

    if (length == 1)
        return (unsigned char)*word;
    if (length == 6 && !memcmp(word, "Ctrl-", 5))
        return (uint32_t)word[5] & 0x1f;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i].word) == length && !memcmp(words[i].word, word, length))
            return words[i].number;
    }
    return *word == 'F' ? TOP_KEY_F1 - 1 + (uint32_t)strtoul(word + 1, NULL, 10) : 0;
}

enum top_action top_key_action(uint32_t key)
{
    for (int i = 1; i < TOP_ACTIONS; i++) {
        const char *at = top_actions[i].keys;

        while (*at) {
            size_t length = strcspn(at, " ");

            if (top_key_number(at, length) == key)
                return (enum top_action)i;
            at += length + strspn(at + length, " ");
        }
    }
    return TOP_ACT_NONE;
}

enum top_action top_action_named(const char *name)
{
    for (int i = 1; i < TOP_ACTIONS; i++) {
        if (!strcmp(top_actions[i].name, name))
            return (enum top_action)i;
    }
    return TOP_ACT_NONE;
}
