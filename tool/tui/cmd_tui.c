/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone tui`: the views in a terminal. */
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "view/view.h"

#ifdef HAVE_TERMINAL
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

#include "tui/tui.h"
#include "view/answers.h"
#endif

static const char about_text[] = "Shows FILE in the terminal: the timeline with a "
                                 "cursor, and at the cursor who holds the "
                                 "memory and the memory map; the verdict; ? tells the "
                                 "keys. 80 columns and 24 rows are "
                                 "enough, and no colours are needed.";

#ifdef HAVE_TERMINAL

static chtype
attribute_of(unsigned char style)
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

static void
show(const struct grid *grid)
{
    erase();
    for (int y = 0; y < grid->height && y < LINES; y++) {
        for (int x = 0; x < grid->width && x < COLS; x++) {
            const struct grid_cell *c =
                &grid->cells[(size_t)y * (size_t)grid->width + (size_t)x];
            attrset((int)attribute_of(c->style));
            if (y < LINES - 1 || x < COLS - 1) /* the last cell would scroll the screen */
                mvaddstr(y, x, c->text);
        }
    }
    refresh();
}

static int
meaning_of(int key)
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
    default:
        return key < 0x100 ? key : 0;
    }
}

static void
take_key(struct tui *tui)
{
    int key = getch();
    MEVENT mouse;
    if (key == ERR) /* the terminal is gone */
        tui->is_over = true;
    else if (key == KEY_MOUSE && getmouse(&mouse) == OK)
        tui_click(tui, mouse.x, mouse.y);
    else if (key != KEY_RESIZE)
        tui_press(tui, meaning_of(key));
}

static char *
make_verdict(const char *path)
{
    struct answer answer;
    if (!answer_command(&command_explain, path, false, &answer))
        return NULL;
    char *text = malloc(answer.length + 1);
    if (text) {
        memcpy(text, answer.bytes, answer.length);
        text[answer.length] = '\0';
    }
    free(answer.bytes);
    return text;
}

static bool
loop(struct tui *tui)
{
    bool is_fine = true;
    while (is_fine && !tui->is_over) {
        struct grid grid;
        tui_resize(tui, COLS, LINES);
        is_fine = grid_init(&grid, tui->width, tui->height) && tui_draw(tui, &grid);
        if (is_fine)
            show(&grid);
        grid_finish(&grid);
        const char *path = tui_wants_verdict(tui);
        if (is_fine && path)
            tui_set_verdict(tui, make_verdict(path));
        else if (is_fine)
            take_key(tui);
    }
    return is_fine;
}

static void
set_up_terminal(void)
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

static int
look(struct view *view)
{
    struct tui tui;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return report_failure(
            "tui", NULL, EXIT_USAGE,
            "a terminal is needed; `drystone explain` and `drystone top` "
            "print text");
    setlocale(LC_CTYPE, "");
    tui_init(&tui, view);
    tui.has_blocks = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    SCREEN *screen = newterm(NULL, stdout, stdin);
    int code = screen ? EXIT_FINE
                      : report_failure("tui", NULL, EXIT_MACHINE,
                                       "TERM=%s: the terminal is not known",
                                       getenv("TERM") ? getenv("TERM") : "");
    if (screen) {
        set_up_terminal();
        bool is_fine = loop(&tui);
        endwin();
        delscreen(screen);
        if (!is_fine)
            code = report_failure("tui", NULL, EXIT_MACHINE, "no memory");
    }
    tui_finish(&tui);
    return code;
}

#else

static int
look(struct view *view)
{
    (void)view;
    return report_failure("tui", NULL, EXIT_MACHINE,
                          "this build has no terminal view, which ncurses is needed for; "
                          "`drystone explain` and `drystone top` print text");
}

#endif

static int
run(int argc, char **argv)
{
    struct option_list operands = {0};
    struct view view = {0};
    int code;
    if (options_parse(&command_tui, argc, argv, NULL, &operands, &code)) {
        code = view_expect_files(&command_tui, &operands, "is the keyboard");
        if (code == EXIT_FINE)
            code = view_open(&view, "tui", operands.values, operands.count);
        if (code == EXIT_FINE)
            code = look(&view);
    }
    view_close(&view);
    options_finish(&command_tui, NULL, &operands);
    return code;
}

const struct command command_tui = {
    .name = "tui",
    .summary = "the timeline, owners, map and verdict in the terminal",
    .usage = "FILE...",
    .about = about_text,
    .examples = "drystone tui oom.pickle\n"
                "drystone tui rank0.pickle rank1.pickle\n",
    .run = run,
};
