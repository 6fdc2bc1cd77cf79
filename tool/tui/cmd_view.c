/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone view`: show a recording in the browser, in the terminal, or write a page. */
#include "base/command.h"
#include "base/output.h"
#include "base/report.h"
#include "tui/tui_run.h"
#include "view/series_in.h"
#include "view/view_report.h"
#include "view/view_serve.h"

#define DEFAULT_BYTES (UINT64_C(5) << 20)
#define LEAST_BYTES (INT64_C(256) << 10)

struct values {
    struct view_report report;
    const char *series;
    int64_t port;
    bool is_terminal;
};

#define OF_PAGE .needs = {"output", "for the file that --output writes"}

static const struct option_spec specs[] = {
    {"port", 0, "N", OPTION_INT, offsetof(struct values, port),
     .help = "the port on 127.0.0.1; default: any that is free", .min = 1, .max = 65535,
     .refuses = {{"output terminal", "for the browser"}}},
    {"output", 'o', "OUT", OPTION_STRING, offsetof(struct values, report.output),
     .help = "write one HTML file that opens anywhere; - is standard output",
     .refuses = {{"terminal", "an HTML file, which no terminal shows"}}},
    {"max-size", 0, "SIZE", OPTION_SIZE, offsetof(struct values, report.max_bytes),
     .help = "bytes of that file at most; default 5MiB. It says what was left out",
     .min = LEAST_BYTES, OF_PAGE},
    {"quick", 0, NULL, OPTION_FLAG, offsetof(struct values, report.is_quick),
     .help = "leave out what other settings would do, which takes replays", OF_PAGE},
    {"series", 0, "FILE", OPTION_STRING, offsetof(struct values, series),
     .help = "show the runs of a dry run, which `drystone dry-run` wrote as JSON: "
             "memory over the value that varies",
     .refuses = {{"terminal", "for the page"}}},
    {"terminal", 0, NULL, OPTION_FLAG, offsetof(struct values, is_terminal),
     .help = "show it in the terminal; ? tells the keys"},
};

static const char about_text[] =
    "Shows the verdict, the timeline, the memory map, who holds the memory, the steps, "
    "other settings, and the events of FILE. In a browser it has every event and every "
    "moment: it listens on 127.0.0.1 and answers only who knows the address it prints, "
    "which is another one each time. It opens that where DISPLAY or WAYLAND_DISPLAY is "
    "set, and ends with ^C. From another machine: "
    "ssh -L 8000:127.0.0.1:8000 HOST drystone view --port 8000 FILE. "
    "The file that --output writes fetches nothing and sends nothing. Several "
    "recordings, or devices of one, can be compared. In the terminal 80 columns and 24 "
    "rows are enough, and no colours are needed.";

static int
check_usage(const struct values *v, const struct option_list *operands)
{
    int code =
        view_expect_files(&command_view, operands,
                          v->is_terminal ? "is the keyboard" : "cannot be read twice");
    for (size_t i = 0; code == EXIT_FINE && v->report.output && i <= operands->count;
         i++) {
        const char *input = i < operands->count ? operands->values[i] : v->series;
        if (input && output_is_input(v->report.output, input))
            code = report_usage("view", "%s is both read and written", input);
    }
    return code;
}

static int
show(struct view *view, const struct values *v)
{
    if (v->is_terminal)
        return tui_run(view);
    return v->report.output ? view_report_write(view, &v->report)
                            : view_serve(view, (uint16_t)v->port);
}

static int
run(int argc, char **argv)
{
    struct values values = {.report.max_bytes = DEFAULT_BYTES};
    struct option_list operands = {0};
    struct view view = {0};
    int code;
    if (options_parse(&command_view, argc, argv, &values, &operands, &code)) {
        code = check_usage(&values, &operands);
        if (code == EXIT_FINE)
            code = view_open(&view, "view", operands.values, operands.count);
        if (code == EXIT_FINE && values.series)
            code = series_in_read("view", values.series, &view.series);
        if (code == EXIT_FINE)
            code = show(&view, &values);
    }
    json_decref(view.series);
    view_close(&view);
    options_finish(&command_view, &values, &operands);
    return code;
}

const struct command command_view = {
    .name = "view",
    .summary = "look at it: in the browser, in one HTML file, or in the terminal",
    .usage = "[options] FILE...",
    .about = about_text,
    .examples = "drystone view oom.pickle\n"
                "drystone view rank*.pickle --port 8000\n"
                "drystone view rank0.pickle rank1.pickle -o ranks.html\n"
                "drystone view run.pickle -o run.html --quick --max-size 2MiB\n"
                "drystone view --series runs.json dry-run-*.pickle\n"
                "drystone view oom.pickle --terminal\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
