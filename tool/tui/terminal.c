/* SPDX-License-Identifier: Apache-2.0 */
/* See terminal.h. */
#include "tui/terminal.h"

#include <curses.h>
#include <poll.h>
#include <stdlib.h>
#include <term.h>
#include <unistd.h>

struct terminal {
    SCREEN *screen;
};

bool
terminal_is_able(void)
{
    int error;
    char move[] = "cup";
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
        setupterm(NULL, STDOUT_FILENO, &error) != OK)
        return false;
    const char *sequence = tigetstr(move);
    bool is_able = sequence && sequence != (const char *)-1;
    (void)del_curterm(cur_term);
    return is_able;
}

static void
set_up(void)
{
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    mousemask(BUTTON1_CLICKED | BUTTON1_PRESSED, NULL);
    if (!getenv("NO_COLOR") && has_colors()) {
        start_color();
        use_default_colors();
        init_pair(1, COLOR_RED, -1);
    }
}

struct terminal *
terminal_open(void)
{
    struct terminal *terminal = calloc(1, sizeof *terminal);
    if (terminal)
        terminal->screen = newterm(NULL, stdout, stdin);
    if (!terminal || !terminal->screen) {
        free(terminal);
        return NULL;
    }
    set_up();
    return terminal;
}

void
terminal_close(struct terminal *terminal)
{
    if (!terminal)
        return;
    endwin();
    delscreen(terminal->screen);
    free(terminal);
}

void
terminal_get_size(const struct terminal *terminal, int *width, int *height)
{
    (void)terminal;
    *width = COLS;
    *height = LINES;
}

/* --- showing ------------------------------------------------------------------------------ */

static chtype
get_attribute(unsigned char style)
{
    switch (style) {
    case GRID_BOLD:
        return A_BOLD;
    case GRID_DIM:
        return A_DIM;
    case GRID_REVERSE:
        return A_REVERSE;
    case GRID_ALARM:
        return has_colors() ? COLOR_PAIR(1) | A_BOLD : A_BOLD;
    default:
        return A_NORMAL;
    }
}

void
terminal_show(struct terminal *terminal, const struct grid *grid)
{
    (void)terminal;
    erase();
    for (int y = 0; y < grid->height && y < LINES; y++) {
        for (int x = 0; x < grid->width && x < COLS; x++) {
            const struct grid_cell *c =
                &grid->cells[(size_t)y * (size_t)grid->width + (size_t)x];
            attrset((int)get_attribute(c->style));
            /* writing the last cell would scroll the screen */
            if (y < LINES - 1 || x < COLS - 1)
                mvaddstr(y, x, c->text);
        }
    }
    refresh();
}

/* --- keys --------------------------------------------------------------------------------- */

static int
get_meaning(int key)
{
    switch (key) {
    case KEY_LEFT:
        return TUI_KEY_LEFT;
    case KEY_RIGHT:
        return TUI_KEY_RIGHT;
    case KEY_UP:
        return TUI_KEY_UP;
    case KEY_DOWN:
        return TUI_KEY_DOWN;
    case KEY_PPAGE:
        return TUI_KEY_PAGE_UP;
    case KEY_NPAGE:
        return TUI_KEY_PAGE_DOWN;
    case KEY_HOME:
        return TUI_KEY_HOME;
    case KEY_END:
        return TUI_KEY_END;
    case KEY_ENTER:
    case '\n':
    case '\r':
        return TUI_KEY_ENTER;
    case 27:
        return TUI_KEY_ESCAPE;
    case KEY_BACKSPACE:
    case 127:
    case 8:
        return TUI_KEY_BACKSPACE;
    case KEY_RESIZE:
        return TUI_KEY_RESIZE;
    default:
        return key < 0x100 ? key : TUI_KEY_NONE;
    }
}

/* Timeout for the remaining bytes of an escape sequence. */
#define SEQUENCE_MS 100
/* Poll interval when waiting without limit: a resize between check and poll() is noticed
   after this. */
#define PATIENCE_MS 500

/* Wait for input. *key is ERR if nothing came in time. False: the input is closed. */
static bool
wait_and_get(int wait_ms, int *key)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    int ready = poll(&input, 1, wait_ms);
    *key = ERR;
    if (ready == 0)
        return true;
    if (ready > 0 && !(input.revents & POLLIN))
        return false;
    timeout(ready > 0 ? SEQUENCE_MS : 0); /* no input: a signal, perhaps for a new size */
    *key = getch();
    return *key != ERR || ready < 0;
}

int
terminal_get_key(struct terminal *terminal, int wait_ms, int *x, int *y)
{
    MEVENT mouse;
    bool is_for_ever = wait_ms == TERMINAL_WAIT_EVER, is_there = true;
    (void)terminal;
    timeout(0);
    int key = getch();
    if (key == ERR)
        is_there = wait_and_get(is_for_ever ? PATIENCE_MS : wait_ms, &key);
    while (key == ERR && is_there && is_for_ever)
        is_there = wait_and_get(PATIENCE_MS, &key);
    if (key == ERR)
        return is_there ? TUI_KEY_NONE : TUI_KEY_GONE;
    if (key != KEY_MOUSE)
        return get_meaning(key);
    if (getmouse(&mouse) != OK)
        return TUI_KEY_NONE;
    *x = mouse.x;
    *y = mouse.y;
    return TUI_KEY_CLICK;
}
