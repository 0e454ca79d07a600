/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_grid.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "format.h"
#include "text.h"

int top_grid_resize(struct top_grid *grid, int width, int height)
{
    struct top_cell *cells = calloc((size_t)width * (size_t)height + 1, sizeof(*cells));

    if (!cells)
        return -ENOMEM;
    free(grid->cells);
    grid->cells = cells;
    grid->width = width;
    grid->height = height;
    top_grid_clear(grid);
    return 0;
}

void top_grid_deinit(struct top_grid *grid)
{
    free(grid->cells);
    grid->cells = NULL;
}

void top_grid_clear(struct top_grid *grid)
{
    for (int i = 0; i < grid->width * grid->height; i++)
        grid->cells[i] = (struct top_cell){' ', TOP_PLAIN};
    grid->spot_count = 0;
}

/* Returns a character that takes one column or two; all others become '?': controls, marks that
 * combine with what is before them, and characters that this locale does not know. */
static uint32_t shown_code(const struct top_grid *grid, uint32_t code, int *ret_width)
{
    *ret_width = 1;
    if (code >= ' ' && code <= '~')
        return code;
    if (!grid->unicode || text_is_control(code))
        return '?';
    *ret_width = wcwidth((wchar_t)code);
    if (*ret_width == 1 || *ret_width == 2)
        return code;
    *ret_width = 1;
    return '?';
}

static struct top_cell *cell_at(struct top_grid *grid, int y, int x)
{
    return &grid->cells[y * grid->width + x];
}

int top_put(struct top_grid *grid, int y, int x, int room, enum top_role role, const char *text)
{
    int start = x, end = x + room < grid->width ? x + room : grid->width;

    if (y < 0 || y >= grid->height || x < 0)
        return 0;
    while (*text && x < end) {
        uint32_t code = 0xfffd;
        size_t length = text_character(text, &code);
        int width;

        code = shown_code(grid, length ? code : 0, &width);
        text += length ? length : 1;
        if (x + width > end)
            break;
        *cell_at(grid, y, x) = (struct top_cell){code, (uint8_t)role};
        if (width == 2)
            *cell_at(grid, y, x + 1) = (struct top_cell){0, (uint8_t)role};
        x += width;
    }
    return x - start;
}

static int text_columns(const struct top_grid *grid, const char *text)
{
    int columns = 0;

    while (*text) {
        uint32_t code = 0xfffd;
        size_t length = text_character(text, &code);
        int width;

        shown_code(grid, length ? code : 0, &width);
        text += length ? length : 1;
        columns += width;
    }
    return columns;
}

void top_put_right(struct top_grid *grid, int y, int x, int room, enum top_role role,
                   const char *text)
{
    int columns = text_columns(grid, text);

    top_put(grid, y, columns < room ? x + room - columns : x, columns < room ? columns : room, role,
            text);
}

int top_put_lines(struct top_grid *grid, int y, int x, int room, int most, enum top_role role,
                  const char *text)
{
    int lines = 0;

    for (size_t length; *text && lines < most; text += length, lines++) {
        length = format_fits(text, (size_t)room);
        top_putf(grid, y + lines, x, room, role, "%.*s", (int)length, text);
    }
    return lines;
}

int top_putf(struct top_grid *grid, int y, int x, int room, enum top_role role, const char *format,
             ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return top_put(grid, y, x, room, role, text);
}

void top_paint(struct top_grid *grid, int y, int x, int room, enum top_role role)
{
    for (int i = x < 0 ? 0 : x; y >= 0 && y < grid->height && i < x + room && i < grid->width; i++)
        cell_at(grid, y, i)->role = (uint8_t)role;
}

void top_spot(struct top_grid *grid, enum top_spot_kind kind, int y, int x, int end, uint32_t value)
{
    if (grid->spot_count < TOP_SPOTS)
        grid->spots[grid->spot_count++] = (struct top_spot){kind, y, x, end, value};
}

const struct top_spot *top_spot_at(const struct top_grid *grid, int y, int x)
{
    for (int i = 0; i < grid->spot_count; i++) {
        const struct top_spot *spot = &grid->spots[i];

        if (spot->y == y && x >= spot->x && x < spot->end)
            return spot;
    }
    return NULL;
}

static size_t put_utf8(uint32_t code, char *ret)
{
    if (code < 0x80) {
        ret[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        ret[0] = (char)(0xc0 | code >> 6);
        ret[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        ret[0] = (char)(0xe0 | code >> 12);
        ret[1] = (char)(0x80 | (code >> 6 & 0x3f));
        ret[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    ret[0] = (char)(0xf0 | code >> 18);
    ret[1] = (char)(0x80 | (code >> 12 & 0x3f));
    ret[2] = (char)(0x80 | (code >> 6 & 0x3f));
    ret[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

void top_grid_line(const struct top_grid *grid, int y, char *ret, size_t size)
{
    size_t length = 0, end = 0;

    for (int x = 0; x < grid->width && length + 5 <= size; x++) {
        uint32_t code = grid->cells[y * grid->width + x].code;

        if (!code)
            continue;
        length += put_utf8(code, ret + length);
        end = code == ' ' ? end : length;
    }
    ret[end] = '\0';
}
