/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone report`: everything about a file in one page that opens anywhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/output.h"
#include "base/report.h"
#include "view/page.h"
#include "view/report_set.h"

#define DEFAULT_BYTES (UINT64_C(5) << 20)
#define LEAST_BYTES (INT64_C(256) << 10)

struct values {
    const char *output;
    uint64_t max_bytes;
    bool is_quick;
};

static const struct option_spec specs[] = {
    {"output", 'o', "OUT", OPTION_STRING, offsetof(struct values, output),
     .help =
         "the page; default: the name of FILE with .html in this folder; - is standard "
         "output"},
    {"max-size", 0, "SIZE", OPTION_SIZE, offsetof(struct values, max_bytes),
     .help = "bytes of the page at most; default 5MiB. The page says what was left out",
     .min = LEAST_BYTES},
    {"quick", 'q', NULL, OPTION_FLAG, offsetof(struct values, is_quick),
     .help = "leave out what other settings would do, which takes replays"},
};

static const char about_text[] =
    "Writes one HTML file: the verdict, the timeline, the memory map, who holds the "
    "memory, "
    "the steps, other settings, and the events of FILE. The page fetches nothing and "
    "sends "
    "nothing. Several files, or devices of one file, can be compared in it.";

struct session {
    struct values values;
    struct view view;
    struct report_set set;
    struct progress progress;
};

static int
write_output(struct session *s, const char *path)
{
    uint64_t written = 0;
    int code = page_write(&view_page, "report", path, &s->set.answers, &written);
    if (code == EXIT_FINE)
        page_say_written(path, written, s->set.sentence_list, s->set.sentence_count);
    return code;
}

/* "oom.pickle.gz" gives "oom.html". */
static char *
default_output(const char *path)
{
    static const char *const endings[] = {".gz", ".zst", ".pickle", ".pkl", ".json"};
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strncmp(name + length - ending, endings[i], ending) == 0)
            length -= ending;
    }
    size_t capacity = length + sizeof ".html";
    char *output = malloc(capacity);
    if (output)
        snprintf(output, capacity, "%.*s.html", (int)length, name);
    return output;
}

static int
check_usage(const struct session *s, const struct option_list *operands)
{
    int code = view_expect_files(&command_report, operands, "cannot be read twice");
    for (size_t i = 0; code == EXIT_FINE && s->values.output && i < operands->count; i++)
        if (output_is_input(s->values.output, operands->values[i]))
            code = report_usage("report", "%s is both read and written",
                                operands->values[i]);
    return code;
}

static int
make_report(struct session *s, const struct option_list *operands, const char *output)
{
    int code = view_open(&s->view, "report", operands->values, operands->count);
    if (code != EXIT_FINE)
        return code;
    s->set = (struct report_set){.view = &s->view,
                                 .progress = &s->progress,
                                 .is_what_if = !s->values.is_quick,
                                 .budget = s->values.max_bytes > view_page.length
                                               ? s->values.max_bytes - view_page.length
                                               : 0};
    progress_begin(&s->progress, "making the report", s->set.budget);
    bool is_fine = report_set_fill(&s->set);
    progress_end(&s->progress);
    if (!is_fine)
        return report_failure("report", NULL, EXIT_MACHINE, "no memory for the report");
    return write_output(s, output);
}

static int
run(int argc, char **argv)
{
    struct session s = {.values = {.max_bytes = DEFAULT_BYTES}};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_report, argc, argv, &s.values, &operands, &code)) {
        code = check_usage(&s, &operands);
        char *chosen = code == EXIT_FINE && !s.values.output
                           ? default_output(operands.values[0])
                           : NULL;
        const char *output = s.values.output ? s.values.output : chosen;
        if (code == EXIT_FINE && !output)
            code = report_failure("report", NULL, EXIT_MACHINE, "no memory");
        if (code == EXIT_FINE)
            code = make_report(&s, &operands, output);
        free(chosen);
    }
    report_set_finish(&s.set);
    view_close(&s.view);
    options_finish(&command_report, &s.values, &operands);
    return code;
}

const struct command command_report = {
    .name = "report",
    .summary = "one page with verdict, timeline, map and owners, to open anywhere",
    .usage = "[options] FILE...",
    .about = about_text,
    .examples = "drystone report oom.pickle -o oom.html\n"
                "drystone report rank0.pickle rank1.pickle -o ranks.html\n"
                "drystone report run.pickle --quick --max-size 2MiB\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
