/* SPDX-License-Identifier: BSD-2-Clause */
#include "processors_view.h"

void processors_lack(struct prcb_processors *v, uint64_t members, const char *why)
{
    for (int i = 0; i < MEMBERS; i++) {
        if ((members & (1ull << i)) && !v->absent[i])
            v->absent[i] = why;
    }
    v->present &= ~members;
}

void parts_never_back(const struct parts *last, struct parts *now, enum part live)
{
    uint64_t owed = 0;
    bool back = now->wall < last->wall;

    for (int i = 0; i < PARTS; i++)
        back |= now->ns[i] < last->ns[i];
    if (__builtin_expect(!back, 1))
        return;
    if (now->wall < last->wall) {
        now->ns[live] += last->wall - now->wall;
        now->wall = last->wall;
    }
    for (int i = 0; i < PARTS; i++) {
        if (now->ns[i] < last->ns[i]) {
            owed += last->ns[i] - now->ns[i];
            now->ns[i] = last->ns[i];
        }
    }
    for (int i = 0; owed && i < PARTS; i++) {
        uint64_t grown = now->ns[i] - last->ns[i], taken = grown < owed ? grown : owed;

        now->ns[i] -= taken;
        owed -= taken;
    }
}
