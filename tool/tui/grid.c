/* SPDX-License-Identifier: Apache-2.0 */
/* See grid.h. */
#include "tui/grid.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define TEXT_BYTES 256

bool
grid_init(struct grid *grid, int width, int height)
{
    size_t count = (size_t)width * (size_t)height;
    *grid = (struct grid){width, height, calloc(count + 1, sizeof *grid->cells)};
    for (size_t i = 0; grid->cells && i < count; i++)
        grid->cells[i].text[0] = ' ';
    return grid->cells != NULL;
}

void
grid_finish(struct grid *grid)
{
    free(grid->cells);
    *grid = (struct grid){0};
}

/* Take one character off the text. Invalid UTF-8 and characters that are not one column
   wide become '?'. */
static void
take_character(const char **text, char to[5])
{
    mbstate_t state = {0};
    wchar_t wide = 0;
    size_t length = mbrtowc(&wide, *text, strnlen(*text, 4), &state);
    if (length == 0 || length > 4 || wcwidth(wide) != 1) {
        memcpy(to, "?", 2);
        *text += length > 4 || length == 0 ? 1 : length;
        return;
    }
    memcpy(to, *text, length);
    to[length] = '\0';
    *text += length;
}

int
grid_put(struct grid *grid, int x, int y, enum grid_style style, const char *text)
{
    for (; *text; x++) {
        struct grid_cell cell = {.style = (unsigned char)style};
        take_character(&text, cell.text);
        if (x >= 0 && x < grid->width && y >= 0 && y < grid->height)
            grid->cells[(size_t)y * (size_t)grid->width + (size_t)x] = cell;
    }
    return x;
}

static int
count_characters(const char *text)
{
    int count = 0;
    char unused[5];
    for (; *text; count++)
        take_character(&text, unused);
    return count;
}

int
grid_put_cut(struct grid *grid, int x, int y, int width, enum grid_style style,
             const char *text)
{
    int count = count_characters(text), head = (width - 2) / 2, at = 0;
    if (width < 3)
        return x;
    if (count <= width)
        return grid_put(grid, x, y, style, text);
    for (int i = 0; *text; i++) {
        char one[5];
        take_character(&text, one);
        bool is_cut = i >= head && i < count - (width - 2 - head);
        if (i == head)
            at = grid_put(grid, x + at, y, style, "..") - x;
        if (!is_cut)
            at = grid_put(grid, x + at, y, style, one) - x;
    }
    return x + at;
}

int
grid_format(struct grid *grid, int x, int y, enum grid_style style, const char *format,
            ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return grid_put(grid, x, y, style, text);
}
