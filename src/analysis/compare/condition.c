/* SPDX-License-Identifier: BSD-2-Clause */
#include "condition.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define UNITS_OF_TIME 4

static const struct {
    const char *name;
    double scale;
} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"%", 1}, {"", 1}};

/* Reads what stands in front of the sign. False: it does not fit. */
static bool take_figure(const char *text, const char *sign, struct condition *ret)
{
    const char *at = memchr(text, '@', (size_t)(sign - text));
    size_t figure = (size_t)((at ? at : sign) - text);

    if (!figure || figure >= sizeof(ret->figure) ||
        (at && (sign - at < 2 || (size_t)(sign - at) > sizeof(ret->thread))))
        return false;
    memcpy(ret->figure, text, figure);
    if (at)
        memcpy(ret->thread, at + 1, (size_t)(sign - at) - 1);
    return true;
}

static bool take_change(const char *text, bool counts, struct condition *ret)
{
    char *unit;

    ret->change = strtod(text, &unit);
    if (unit == text || !isfinite(ret->change))
        return false;
    for (size_t i = 0; i < UNITS_OF_TIME + 1 + (counts ? 1 : 0); i++) {
        if (strcmp(unit, units[i].name))
            continue;
        ret->percent = i == UNITS_OF_TIME;
        ret->count = i > UNITS_OF_TIME;
        ret->change *= units[i].scale;
        return true;
    }
    return false;
}

int condition_parse(const char *text, bool counts, struct condition *ret, struct prcb_error *err)
{
    const char *sign = strpbrk(text, "<>");
    struct condition condition = {.less = sign && *sign == '<'};

    if (!sign || !take_figure(text, sign, &condition) || !take_change(sign + 1, counts, &condition))
        return prcb_fail(err, -EINVAL,
                         "--fail-if '%s': FIGURE%s > or < CHANGE in %%, us, ms or s%s, as "
                         "'ready>+10%%'",
                         text, counts ? "" : "[@THREAD]", counts ? ", or a number" : "");
    *ret = condition;
    return 0;
}

bool condition_holds(const struct condition *condition, double from, double change)
{
    if (condition->percent)
        change = from > 0 ? 100 * change / from : change > 0 ? INFINITY : 0;
    return condition->less ? change < condition->change : change > condition->change;
}
