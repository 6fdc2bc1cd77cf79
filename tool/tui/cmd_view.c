/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone view`: the browser where there is a display, else the terminal. */
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "view/view.h"

static const char about_text[] = "Shows FILE: as `drystone serve --open` where DISPLAY "
                                 "or WAYLAND_DISPLAY is set, else as "
                                 "`drystone tui`.";

static bool
has_display(void)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x && *x) || (wayland && *wayland);
}

static int
show(const struct option_list *files)
{
    char name[] = "view", open[] = "--open", end[] = "--";
    char *words[VIEW_FILES_MAX + 3] = {name};
    int count = 1;
    if (has_display())
        words[count++] = open;
    words[count++] = end;
    memcpy(words + count, files->values, files->count * sizeof *words);
    count += (int)files->count;
    return has_display() ? command_serve.run(count, words)
                         : command_tui.run(count, words);
}

static int
run(int argc, char **argv)
{
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_view, argc, argv, NULL, &operands, &code)) {
        code = view_expect_files(&command_view, &operands, "cannot be read twice");
        if (code == EXIT_FINE)
            code = show(&operands);
    }
    options_finish(&command_view, NULL, &operands);
    return code;
}

const struct command command_view = {
    .name = "view",
    .summary = "look at it: in the browser, or without a display in the terminal",
    .usage = "FILE...",
    .about = about_text,
    .examples = "drystone view oom.pickle\n",
    .run = run,
};
