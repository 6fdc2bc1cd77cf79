/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone demo`: an OOM, why it came, a change, and that the change helps. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <drystone/replay.h>

#include "base/command.h"
#include "base/output.h"
#include "base/report.h"
#include "base/table.h"
#include "base/term.h"
#include "replay/demo_step.h"

struct values {
    const char *out;
    int64_t steps;
    uint64_t capacity;
    bool yes;
};

static const struct option_spec specs[] = {
    {"output", 'o', "OUT", OPTION_STRING, offsetof(struct values, out),
     .help = "where the snapshot goes; default drystone-demo.pickle. The HTML file goes "
             "beside it"},
    {"steps", 0, "N", OPTION_INT, offsetof(struct values, steps),
     .help = "training steps, 2 to 1000; default 6", .min = 2, .max = 1000},
    {"capacity", 0, "SIZE", OPTION_SIZE, offsetof(struct values, capacity),
     .help = "bytes the simulated device has for PyTorch; default 13800MiB, on which the "
             "program runs out of memory; on 24GiB it does not",
     .min = 1 << 30},
    {"yes", 'y', NULL, OPTION_FLAG, offsetof(struct values, yes),
     .help = "overwrite files without asking"},
};

static const char about_text[] =
    "Trains a 12-layer transformer of 124 million weights on the simulated device: "
    "forward, backward and Adam, with one longer batch in the middle, at which memory "
    "runs out. Writes what the allocator did as a PyTorch snapshot, explains it, runs "
    "the program once more with the change that helps, and writes the snapshot's view "
    "as an HTML file.";

/* GPT-2 small in float32. */
static const struct demo_model model = {
    .layers = 12,
    .hidden = 768,
    .heads = 12,
    .sequence = 512,
    .batch = 8,
    .vocabulary = 50257,
};
#define DEVICE_BYTES (UINT64_C(13800) << 20)
/* `drystone explain` proposes this change first. */
#define CHANGE "expandable_segments:True"

struct session {
    struct values values;
    char *out, *page; /* paths of the snapshot and of the HTML file */
    struct term term;
    struct dry_trace *requests;
    struct dry_replay *replay; /* program of the requests */
};

/* --- files -------------------------------------------------------------------------------- */

/* Make the path of the HTML file: OUT with .html for .pickle. Returns NULL if memory ran
   out. */
static char *
make_page_path(const char *out)
{
    static const char end[] = ".pickle";
    size_t length = strlen(out), kept = length, capacity = length + sizeof ".html";
    if (length >= sizeof end && strcmp(out + length - strlen(end), end) == 0)
        kept = length - strlen(end);
    char *path = malloc(capacity);
    if (path)
        snprintf(path, capacity, "%.*s.html", (int)kept, out);
    return path;
}

/* Ask before a file is overwritten. Returns EXIT_FINE if it may be. */
static int
ask_to_replace(const struct session *s, const char *path)
{
    struct stat about;
    char answer[16] = "";
    if (s->values.yes || stat(path, &about) != 0 || !S_ISREG(about.st_mode))
        return EXIT_FINE;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return report_usage("demo", "%s is there already; --yes overwrites it", path);
    printf("%s is there already; overwrite it? [y/N] ", path);
    fflush(stdout);
    bool is_read = fgets(answer, sizeof answer, stdin) != NULL;
    return is_read && (answer[0] == 'y' || answer[0] == 'Y') ? EXIT_FINE : EXIT_FOUND;
}

static int
write_snapshot(const struct dry_trace *trace, const char *path)
{
    struct output out;
    struct dry_error err;
    int code = output_open(&out, "demo", path);
    if (code != EXIT_FINE)
        return code;
    struct dry_sink sink = output_sink(&out);
    enum dry_status status = dry_trace_write(trace, &sink, &err);
    return output_close(&out, status, &err);
}

/* --- the program -------------------------------------------------------------------------- */

static enum dry_status
make_program(struct session *s, struct dry_error *err)
{
    struct demo_model m = model;
    m.steps = (uint32_t)s->values.steps;
    enum dry_status status = demo_make_requests(&m, &s->requests, err);
    return status == DRY_OK ? dry_replay_create(s->requests, NULL, &s->replay, err)
                            : status;
}

static struct dry_run_options
on_device(const struct session *s, const char *conf)
{
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.capacity_bytes = s->values.capacity;
    options.conf = conf;
    return options;
}

/* Write the snapshot that PyTorch would have recorded of the program. */
static int
record(struct session *s)
{
    struct dry_trace *recorded = NULL;
    struct dry_error err;
    struct dry_run_options options = on_device(s, NULL);
    enum dry_status status = make_program(s, &err);
    if (status == DRY_OK)
        status = dry_replay_record(s->replay, &options, &recorded, &err);
    int code = status == DRY_OK ? write_snapshot(recorded, s->out)
                                : report_error("demo", NULL, &err);
    dry_trace_destroy(recorded);
    return code;
}

static enum dry_status
add_run(const struct session *s, struct table *t, const char *conf, struct dry_error *err)
{
    char text[TERM_NUMBER_BYTES];
    struct dry_run run;
    struct dry_run_options options = on_device(s, conf);
    enum dry_status status = dry_replay_run(s->replay, &options, &run, err);
    if (status != DRY_OK)
        return status;
    table_add(t, *conf ? conf : "default");
    table_add(t, run.oom ? "runs out of memory" : "runs to its end");
    table_add(t, term_format_bytes(run.reserved_peak_bytes, text));
    return DRY_OK;
}

/* Run the whole program again, without and with the change. */
static int
show_change(const struct session *s)
{
    struct table t;
    struct dry_error err;
    printf("\n");
    term_print_wrapped(s->term.out, "The program again, with the change:", 0,
                       s->term.width);
    printf("\n");
    table_init(&t, "=settings <result >reserved");
    t.is_bounded = true;
    enum dry_status status = add_run(s, &t, "", &err);
    if (status == DRY_OK)
        status = add_run(s, &t, CHANGE, &err);
    if (status != DRY_OK) {
        table_finish(&t);
        return report_error("demo", NULL, &err);
    }
    return table_print(&t, &s->term) ? EXIT_FINE : report_memory("demo", NULL);
}

/* --- what is shown ------------------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static void
say(const struct session *s, int column, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("%*s", column ? column - 2 : 0, "");
    term_print_wrapped(s->term.out, text, column, s->term.width);
}

static int
explain(const struct session *s)
{
    char name[] = "explain";
    char *words[] = {name, s->out, NULL};
    say(s, 0, "$ drystone explain %s", s->out);
    return command_explain.run(2, words);
}

static int
write_page(const struct session *s)
{
    char name[] = "view", option[] = "-o";
    char *words[] = {name, s->out, option, s->page, NULL};
    printf("\n");
    say(s, 0, "$ drystone view %s -o %s", s->out, s->page);
    fflush(stdout); /* `view` redirects the file behind it for a while */
    return command_view.run(4, words);
}

static void
say_where_to_go(const struct session *s)
{
    const char *path = s->out;
    printf("\n");
    say(s, 0,
        "Open %s in a browser. Next, with this snapshot or one of your own:", s->page);
    say(s, 4, "drystone view %s", path);
    say(s, 4, "drystone top %s", path);
    say(s, 4, "drystone replay %s -c max_split_size_mb:64", path);
    say(s, 4, "drystone run --on-oom oom.pickle -- python train.py");
}

static int
show(struct session *s)
{
    char text[TERM_NUMBER_BYTES];
    say(s, 0,
        "A transformer of 124 million weights, %lld training steps, on a simulated "
        "device of %s. The snapshot that PyTorch would have written is in %s.",
        (long long)s->values.steps, term_format_bytes(s->values.capacity, text), s->out);
    printf("\n");
    int code = explain(s);
    if (code <= EXIT_FOUND)
        code = show_change(s);
    if (code == EXIT_FINE)
        code = write_page(s);
    if (code == EXIT_FINE)
        say_where_to_go(s);
    return code;
}

static int
run_demo(const struct values *values)
{
    struct session s = {.values = *values,
                        .out = strdup(values->out),
                        .page = make_page_path(values->out)};
    term_init(&s.term, stdout);
    bool has_paths = s.out && s.page;
    int code = has_paths ? ask_to_replace(&s, s.out) : report_memory("demo", NULL);
    if (has_paths && code == EXIT_FINE)
        code = ask_to_replace(&s, s.page);
    if (code == EXIT_FINE)
        code = record(&s);
    if (code == EXIT_FINE)
        code = show(&s);
    dry_replay_destroy(s.replay);
    dry_trace_destroy(s.requests);
    free(s.page);
    free(s.out);
    return code;
}

static int
run(int argc, char **argv)
{
    struct values values = {
        .out = "drystone-demo.pickle", .steps = 6, .capacity = DEVICE_BYTES};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_demo, argc, argv, &values, &operands, &code))
        code = operands.count ? report_usage("demo", "expected no operands")
               : strcmp(values.out, "-") == 0
                   ? report_usage("demo", "--output -: expected the name of a file")
                   : run_demo(&values);
    options_finish(&command_demo, &values, &operands);
    return code;
}

const struct command command_demo = {
    .name = "demo",
    .summary = "an OOM on a simulated run, why it came, and what helps",
    .usage = "[options]",
    .about = about_text,
    .examples = "drystone demo\ndrystone demo --capacity 24GiB -o run.pickle\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
