/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone view`: the browser where there is a display, else the terminal. */
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"

#define FILES_MAX 64

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
run(int argc, char **argv)
{
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_view, argc, argv, NULL, &operands, &code)) {
        char name[] = "view", open[] = "--open", end[] = "--";
        char *words[FILES_MAX + 3] = {name};
        int count = 1;
        if (operands.count == 0 || operands.count > FILES_MAX) {
            code = report_usage("view", "%zu files are given; 1 to %d are expected",
                                operands.count, FILES_MAX);
        } else {
            if (has_display())
                words[count++] = open;
            words[count++] = end;
            memcpy(words + count, operands.values, operands.count * sizeof *words);
            count += (int)operands.count;
            code = has_display() ? command_serve.run(count, words)
                                 : command_tui.run(count, words);
        }
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
