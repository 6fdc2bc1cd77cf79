/* SPDX-License-Identifier: Apache-2.0 */
/* See tui_run.h. */
#include "tui/tui_run.h"

#include <string.h>

#include "base/command.h"
#include "base/report.h"

#ifdef HAVE_TERMINAL
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

#include "tui/terminal.h"
#include "tui/tui.h"
#include "view/answers.h"
#endif

#ifdef HAVE_TERMINAL

static void
take_key(struct tui *tui, struct terminal *terminal)
{
    int x = 0, y = 0;
    int key = terminal_get_key(terminal, TERMINAL_WAIT_EVER, &x, &y);
    if (key == TUI_KEY_GONE)
        tui->is_over = true;
    else if (key == TUI_KEY_CLICK)
        tui_click(tui, x, y);
    else if (key != TUI_KEY_RESIZE && key != TUI_KEY_NONE)
        tui_press(tui, key);
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
loop(struct tui *tui, struct terminal *terminal)
{
    bool is_fine = true;
    while (is_fine && !tui->is_over) {
        struct grid grid;
        int width, height;
        terminal_get_size(terminal, &width, &height);
        tui_resize(tui, width, height);
        is_fine = grid_init(&grid, tui->width, tui->height) && tui_draw(tui, &grid);
        if (is_fine)
            terminal_show(terminal, &grid);
        grid_finish(&grid);
        const char *path = tui_wants_verdict(tui);
        if (is_fine && path)
            tui_set_verdict(tui, make_verdict(path));
        else if (is_fine)
            take_key(tui, terminal);
    }
    return is_fine;
}

int
tui_run(struct view *view)
{
    struct tui tui;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return report_failure(
            "view", NULL, EXIT_USAGE,
            "a terminal is needed; `drystone explain` and `drystone top` "
            "print text");
    setlocale(LC_CTYPE, "");
    tui_init(&tui, view);
    tui.has_blocks = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    struct terminal *terminal = terminal_open();
    int code = terminal ? EXIT_FINE
                        : report_failure("view", NULL, EXIT_MACHINE,
                                         "TERM=%s: the terminal is not known",
                                         getenv("TERM") ? getenv("TERM") : "");
    bool is_fine = !terminal || loop(&tui, terminal);
    terminal_close(terminal);
    if (!is_fine)
        code = report_memory("view", NULL);
    tui_finish(&tui);
    return code;
}

#else

int
tui_run(struct view *view)
{
    (void)view;
    return report_failure("view", NULL, EXIT_MACHINE,
                          "this build has no terminal view, which ncurses is needed for; "
                          "`drystone explain` and `drystone top` print text");
}

#endif
