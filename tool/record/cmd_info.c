/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone info`: tell what a file contains and how far to trust it. */
#include "base/command.h"
#include "base/report.h"
#include "record/info_report.h"
#include "record/load.h"

struct values {
    bool json;
};

static const struct option_spec specs[] = {
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.info/1, see drystone-info(1)"},
};

static const char about_text[] =
    "FILE is a PyTorch memory snapshot (a pickle or its JSON), a plain trace, a log of "
    "RMM or a CSV of lifetimes, packed by gzip or zstd or not; - is standard input. "
    "Nothing in it is executed.";

static int
show(const char *path, const struct values *values)
{
    struct dry_trace *trace = NULL;
    struct info_report r = {.path = path};
    int code = load_trace("info", path, &trace, &r.input);
    if (code != EXIT_FINE)
        return code;
    r.trace = trace;
    r.view = dry_trace_get_view(trace);
    if (!info_collect(&r.info, trace))
        code = report_failure("info", path, EXIT_MACHINE, "no memory to count");
    else
        code = values->json ? info_report_print_json(&r) : info_report_print(&r);
    info_finish(&r.info);
    dry_trace_destroy(trace);
    return code;
}

static int
run(int argc, char **argv)
{
    struct values values = {0};
    struct option_list files;
    int code;
    if (options_parse(&command_info, argc, argv, &values, &files, &code)) {
        code = options_expect_one_file(&command_info, &files);
        if (code == EXIT_FINE)
            code = show(files.values[0], &values);
    }
    options_finish(&command_info, &values, &files);
    return code;
}

const struct command command_info = {
    .name = "info",
    .summary = "what is in a snapshot or trace and how far it can be trusted",
    .usage = "[options] FILE",
    .about = about_text,
    .examples = "drystone info snapshot.pickle\n"
                "drystone info --json snapshot.pickle.gz | jq .trust\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
