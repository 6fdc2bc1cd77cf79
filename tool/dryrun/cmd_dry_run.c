/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `drystone dry-run`: the memory use of a training script, without a GPU.
 *
 * A single run is a trial (trial.h), reported by dry_report.h. With --vary, --find or
 * several ranks, each run is a row of a series (series.h).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/output.h"
#include "base/report.h"
#include "dryrun/card_file.h"
#include "dryrun/dry_report.h"
#include "dryrun/find.h"
#include "dryrun/series.h"
#include "dryrun/vary.h"

#define RANKS_MAX 64
#define TOKENS_MAX 10000000 /* the most of a prompt, and of an answer */
#define FIND_LAST 65536     /* upper bound of --find NAME without a range */

struct values {
    struct option_list vary;
    const char *card, *output, *find, *rank, *until, *svg, *request;
    uint64_t memory, host;
    int64_t gpus, steps, events, patience, world_size;
    bool bracket, values, write, quiet, json;
};

static const char of_one[] = "for a single run";

static const struct option_spec specs[] = {
    {"card", 0, "CARD", OPTION_STRING, offsetof(struct values, card),
     .help = "the card to run on: a name, or the beginning of one, of drystone estimate "
             "--list, or a FILE.json; default h100-80"},
    {"memory", 0, "SIZE", OPTION_SIZE, offsetof(struct values, memory),
     .help =
         "the total that the card's driver reports, 79.19GiB, where it is not that of "
         "the table"},
    {"host", 0, "SIZE", OPTION_SIZE, offsetof(struct values, host),
     .help = "the memory that the host has for the program, 46GiB; one that takes more "
             "does not fit",
     .min = 1},
    {"gpus", 0, "N", OPTION_INT, offsetof(struct values, gpus),
     .help = "how many of them this machine has; default 1", .min = 1, .max = 16},
    {"vary", 0, "NAME=LIST", OPTION_LIST, offsetof(struct values, vary),
     .help =
         "run once for each value, BATCH=8,16,32, with {BATCH} in the program's words "
         "replaced; several give all combinations",
     .refuses = {{"find", "for one series, and --find makes another"}}},
    {"find", 0, "NAME", OPTION_STRING, offsetof(struct values, find),
     .help =
         "search the largest whole number for {NAME} that fits; NAME=LOW..HIGH bounds "
         "it, default 1..65536"},
    {"world-size", 0, "N", OPTION_INT, offsetof(struct values, world_size),
     .help = "the program is one rank of a job of N, whose other ranks are not there",
     .min = 1, .max = 1000000},
    {"rank", 0, "LIST", OPTION_STRING, offsetof(struct values, rank),
     .help = "the ranks to run, 0,8,255, each alone; default 0",
     .needs = {"world-size", "for --world-size alone"}},
    {"steps", 0, "N", OPTION_INT, offsetof(struct values, steps),
     .help =
         "end after N optimizer steps; default: end loops whose steps repeat, and go on "
         "to the program's end",
     .min = 1, .max = 1000000},
    {"until", 0, "WHERE", OPTION_STRING, offsetof(struct values, until),
     .help = "end the program in its second `epoch`, or at its `end`; default end",
     .refuses = {{"steps", "for a program without --steps"}}},
    {"patience", 0, "SECONDS", OPTION_INT, offsetof(struct values, patience),
     .help =
         "end a program that makes no step, no new peak and no sign of life for so long, "
         "and name its line; default 120",
     .min = 1, .max = 1000000},
    {"values", 0, NULL, OPTION_FLAG, offsetof(struct values, values),
     .help = "do operations of at most 65536 elements, on the CPU: for programs whose "
             "sizes depend on numbers they compute"},
    {"write", 0, NULL, OPTION_FLAG, offsetof(struct values, write),
     .help = "let the program change and remove files that were there before the run; "
             "else it gets copies of them"},
    {"request", 0, "PROMPT,ANSWER", OPTION_STRING, offsetof(struct values, request),
     .help = "let a serving engine that is ready serve one request, of these lengths in "
             "tokens; its memory is in the peak"},
    {"events", 0, "N", OPTION_INT, offsetof(struct values, events),
     .help = "keep the last N events of the trace; default 4000000", .min = 1000,
     .max = 100000000},
    {"bracket", 0, NULL, OPTION_FLAG, offsetof(struct values, bracket),
     .help = "run twice more, with streams that lag until somebody waits (done anyway if "
             "blocks are used by several), and with addresses in the other order",
     .refuses = {{"vary find", of_one}}},
    {"output", 'o', "OUT", OPTION_STRING, offsetof(struct values, output),
     .help = "where the snapshot goes; default dry-run.pickle"},
    {"svg", 0, "OUT", OPTION_STRING, offsetof(struct values, svg),
     .help = "memory over the value that --vary, --find or --rank varies, as a picture"},
    {"quiet", 'q', NULL, OPTION_FLAG, offsetof(struct values, quiet),
     .help =
         "hide the program's own output, and show progress, as several runs always do"},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help =
         "print JSON, schema drystone.dry-run/1, see drystone-dry-run(1); the program's "
         "own output goes to standard error"},
};

static const char about_text[] =
    "Runs a PyTorch program unchanged on a machine without a GPU, and tells whether its "
    "memory fits the card, and every other card. PyTorch's own allocator decides; "
    "kernels "
    "do nothing, so numbers the program computes are zeros. It needs a torch built with "
    "CUDA, but none of NVIDIA's libraries.";

struct session {
    struct values values;
    struct card_file card;
    struct launch_request request;
};

static const int outcome_codes[] = {[TRIAL_FITS] = EXIT_FINE,
                                    [TRIAL_FITS_NOT] = EXIT_FOUND,
                                    [TRIAL_FITS_NOT_HOST] = EXIT_FOUND,
                                    [TRIAL_NOT_KNOWN] = EXIT_INPUT};

/* --- one run ------------------------------------------------------------------------------ */

static int
print_report(const struct session *s, const struct dry_report *r)
{
    if (!s->values.json)
        return dry_report_print(r) ? EXIT_FINE : report_memory("dry-run", NULL);
    json_t *root = dry_report_make_json(r);
    if (!root || json_object_set_new(root, "schema", json_string("drystone.dry-run/1"))) {
        json_decref(root);
        return report_memory("dry-run", NULL);
    }
    return json_out_print("dry-run", root);
}

enum again { AGAIN_LATE, AGAIN_OTHER_ORDER, AGAIN_BOUNDLESS, AGAIN_COUNT };

/* Run the program again with one condition changed, to bound what that condition does to
   the peak. */
static int
run_again(const struct session *s, enum again what, struct trial trials[AGAIN_COUNT])
{
    static const char *const titles[] = {[AGAIN_LATE] = "running with late events",
                                         [AGAIN_OTHER_ORDER] = "running the other way",
                                         [AGAIN_BOUNDLESS] = "running without end"};
    struct launch_request *request = &trials[what].launch.request;
    *request = s->request;
    request->output = LAUNCH_OUTPUT_HIDDEN;
    request->is_late = what == AGAIN_LATE;
    request->is_other_order = what == AGAIN_OTHER_ORDER;
    request->is_boundless = what == AGAIN_BOUNDLESS;
    request->title = titles[what];
    return trial_run(&trials[what]);
}

/* Keep the snapshots. The main process's is the output file; the others get their rank or
   process number in the name. */
static int
keep_snapshots(const struct trial *t, const char *output)
{
    int code = trial_keep_snapshot("dry-run", trial_main(t), output);
    for (size_t i = 0; i < t->facts.process_count && code == EXIT_FINE; i++) {
        const struct facts_process *p = &t->facts.processes[i];
        char label[40];
        if (i == t->facts.main || !p->snapshot)
            continue;
        if (p->rank == NO_NUMBER)
            snprintf(label, sizeof label, "process%zu", i);
        else
            snprintf(label, sizeof label, "rank%lld", (long long)p->rank);
        char *name = trial_name_snapshot(output, label);
        code = name ? trial_keep_snapshot("dry-run", p, name)
                    : report_memory("dry-run", NULL);
        free(name);
    }
    return code;
}

/* Make the runs that bound the first one, as far as they are wanted. The first that fails ends
   them, and the report says so: it does not take the answer away that is there. */
static int
run_more(const struct session *s, struct dry_report *report,
         struct trial again[AGAIN_COUNT])
{
    const struct trial *first = report->trial;
    const struct {
        bool is_wanted;
        const char *row;
        const struct trial **trial;
    } runs[AGAIN_COUNT] = {
        [AGAIN_LATE] = {s->values.bracket || first->verdict.has_deferred, "late",
                        &report->late},
        [AGAIN_OTHER_ORDER] = {s->values.bracket, "other way", &report->other_order},
        /* an engine would fill any memory, so a run without a limit tells nothing */
        [AGAIN_BOUNDLESS] = {trial_has_oom(first) && !trial_find_engine(first), "needs",
                             &report->boundless},
    };
    int code = EXIT_FINE;
    for (enum again i = 0; i < AGAIN_COUNT && code == EXIT_FINE; i++) {
        if (!runs[i].is_wanted)
            continue;
        code = run_again(s, i, again);
        if (code == EXIT_FINE) {
            *runs[i].trial = &again[i];
        } else {
            report->unfinished = runs[i].row;
            report->reason =
                code == EXIT_INTERRUPTED ? "this run was interrupted" : "this run failed";
        }
    }
    return code;
}

static int
report_trial(const struct session *s, const struct trial *trial)
{
    struct dry_report report = {.trial = trial};
    struct trial again[AGAIN_COUNT] = {0};
    int code = EXIT_FINE, kept = EXIT_FINE;
    if (trial_main(trial)->snapshot) {
        kept = keep_snapshots(trial, s->values.output);
        report.snapshot = kept == EXIT_FINE ? s->values.output : NULL;
    }
    code = run_more(s, &report, again);
    int printed = print_report(s, &report);
    code = code == EXIT_FINE ? printed : code;
    if (code == EXIT_FINE && s->request.prompt_tokens > 0 && !trial_find_engine(trial))
        code = report_failure("dry-run", NULL, EXIT_INPUT,
                              "--request: no serving engine was there to serve it");
    for (size_t i = 0; i < AGAIN_COUNT; i++)
        trial_finish(&again[i]);
    code = code == EXIT_FINE ? kept : code;
    return code == EXIT_FINE ? outcome_codes[trial_outcome(trial)] : code;
}

static int
run_once(const struct session *s)
{
    struct trial trial = {.launch = {.request = s->request}};
    trial.launch.request.output = s->values.quiet  ? LAUNCH_OUTPUT_HIDDEN
                                  : s->values.json ? LAUNCH_OUTPUT_ERROR
                                                   : LAUNCH_OUTPUT_THEIRS;
    int code = trial_run(&trial);
    bool has_failed = code != EXIT_FINE || trial_outcome(&trial) == TRIAL_NOT_KNOWN;
    if (s->values.quiet && has_failed && code != EXIT_INTERRUPTED)
        launch_show_output(&trial.launch);
    if (code == EXIT_FINE)
        code = report_trial(s, &trial);
    trial_finish(&trial);
    return code;
}

/* --- several runs ------------------------------------------------------------------------- */

static int
draw_series(const struct session *s, const struct series *series)
{
    struct output out;
    struct writer w;
    struct dry_error err;
    int code = output_open(&out, "dry-run", s->values.svg);
    if (code != EXIT_FINE)
        return code;
    const struct dry_sink sink = output_sink(&out);
    writer_init(&w, &sink, NULL);
    if (!series_write_svg(series, &w))
        writer_fail(&w, DRY_ERR_MEMORY, "memory ran out");
    enum dry_status status = writer_finish(&w, &err);
    return output_close(&out, status, &err);
}

/* Print the series. Returns the exit code of the worst row, or EXIT_FINE if a search
   found a best row. */
static int
report_series(const struct session *s, const struct series *series, size_t best)
{
    int drawn = s->values.svg ? draw_series(s, series) : EXIT_FINE;
    int code = s->values.json               ? series_print_json(series, best)
               : series_print(series, best) ? EXIT_FINE
                                            : report_memory("dry-run", NULL);
    code = code == EXIT_FINE ? drawn : code;
    if (code != EXIT_FINE || best != SIZE_MAX)
        return code;
    for (size_t i = 0; i < series->count; i++) {
        int row = outcome_codes[series->rows[i].outcome];
        code = row > code ? row : code;
    }
    return code;
}

static int
run_vary(const struct session *s)
{
    struct series series = {
        .request = &s->request, .output = s->values.output, .heading = "run"};
    struct vary vary;
    int code = vary_read(&vary, "dry-run", &s->values.vary, s->request.arguments);
    for (size_t i = 0; i < vary.combination_count && code == EXIT_FINE; i++) {
        struct option_list arguments;
        char label[VARY_LABEL_BYTES];
        vary_label(&vary, i, label);
        if (!vary_fill(&vary, i, s->request.arguments, &arguments)) {
            code = report_memory("dry-run", NULL);
            break;
        }
        struct launch_request request = s->request;
        request.arguments = &arguments;
        code = series_run(&series, &request, label);
        vary_free(&arguments);
    }
    if (code == EXIT_FINE)
        code = report_series(s, &series, SIZE_MAX);
    vary_finish(&vary);
    series_finish(&series);
    return code;
}

static int
read_ranks(const struct session *s, int64_t ranks[RANKS_MAX], size_t *count)
{
    const char *at = s->values.rank ? s->values.rank : "0";
    for (*count = 0; *count < RANKS_MAX;) {
        char *end;
        long long rank = strtoll(at, &end, 10);
        if (end == at || rank < 0 || rank >= s->values.world_size ||
            (*end != ',' && *end != '\0'))
            return report_usage("dry-run",
                                "--rank %s: expected numbers from 0 to %lld, apart by "
                                "commas",
                                s->values.rank, (long long)s->values.world_size - 1);
        ranks[(*count)++] = rank;
        if (*end == '\0')
            return EXIT_FINE;
        at = end + 1;
    }
    return report_usage("dry-run", "--rank: more than %d ranks", RANKS_MAX);
}

static int
run_ranks(const struct session *s, const int64_t *ranks, size_t count)
{
    struct series series = {
        .request = &s->request, .output = s->values.output, .heading = "rank"};
    int code = EXIT_FINE;
    for (size_t i = 0; i < count && code == EXIT_FINE; i++) {
        struct launch_request request = s->request;
        char label[32];
        request.rank = ranks[i];
        snprintf(label, sizeof label, "rank %lld", (long long)ranks[i]);
        code = series_run(&series, &request, label);
    }
    if (code == EXIT_FINE)
        code = report_series(s, &series, SIZE_MAX);
    series_finish(&series);
    return code;
}

/* --- the search --------------------------------------------------------------------------- */

struct search {
    char name[64];
    struct find find;
    struct series series;
    size_t best; /* index of a row; SIZE_MAX: no run fits so far */
};

static int
read_search(const struct session *s, struct search *f)
{
    const char *text = s->values.find, *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    uint64_t low = 1, high = FIND_LAST;
    if (!vary_is_name(text, length))
        return report_usage("dry-run", "--find %s: expected NAME or NAME=LOW..HIGH",
                            text);
    snprintf(f->name, sizeof f->name, "%.*s", (int)length, text);
    if (equals) {
        char *end;
        low = strtoull(equals + 1, &end, 10);
        bool has_high = strncmp(end, "..", 2) == 0;
        high = has_high ? strtoull(end + 2, &end, 10) : 0;
        if (*end || low < 1 || high < low || high > UINT32_MAX)
            return report_usage("dry-run",
                                "--find %s: expected NAME=LOW..HIGH, LOW from 1", text);
    }
    if (!vary_has_place(s->request.arguments, f->name))
        return report_usage("dry-run", "--find %s: no word of the program has {%s}", text,
                            f->name);
    f->find = find_begin(low, high);
    return EXIT_FINE;
}

static int
try_number(const struct session *s, struct search *f, uint64_t number)
{
    struct option_list arguments;
    struct launch_request request = s->request;
    char value[32], label[120];
    snprintf(value, sizeof value, "%llu", (unsigned long long)number);
    snprintf(label, sizeof label, "%s=%s", f->name, value);
    if (!vary_fill_one(f->name, value, s->request.arguments, &arguments))
        return report_memory("dry-run", NULL);
    request.arguments = &arguments;
    int code = series_run(&f->series, &request, label);
    vary_free(&arguments);
    if (code != EXIT_FINE)
        return code;
    const struct series_row *row = &f->series.rows[f->series.count - 1];
    if (row->outcome == TRIAL_NOT_KNOWN)
        return report_failure(
            "dry-run", NULL, EXIT_INPUT,
            "%s: the program failed, and not for memory: the search ends", label);
    find_note(&f->find, number, row->outcome == TRIAL_FITS, row->reserved);
    if (row->outcome == TRIAL_FITS)
        f->best = f->series.count - 1;
    return EXIT_FINE;
}

static int
run_find(const struct session *s)
{
    struct search f = {.best = SIZE_MAX,
                       .series = {.request = &s->request,
                                  .output = s->values.output,
                                  .heading = "run",
                                  .has_one_snapshot = true}};
    int code = read_search(s, &f);
    uint64_t number, torch_bytes = trial_torch_bytes(s->request.card, 0);
    while (code == EXIT_FINE && (number = find_next(&f.find, torch_bytes)) != 0) {
        code = try_number(s, &f, number);
        if (f.series.count > 0)
            torch_bytes = f.series.rows[f.series.count - 1].torch_bytes;
    }
    if (code == EXIT_FINE || f.series.count > 1) {
        int reported = report_series(s, &f.series, f.best);
        code = code == EXIT_FINE ? reported : code;
    }
    series_finish(&f.series);
    return code;
}

/* --- the command -------------------------------------------------------------------------- */

static int
read_request(struct session *s)
{
    const char *text = s->values.request;
    char *end = NULL;
    if (!text)
        return EXIT_FINE;
    int64_t prompt = strtoll(text, &end, 10),
            answer = *end == ',' ? strtoll(end + 1, &end, 10) : 0;
    if (*end || prompt < 1 || answer < 1 || prompt > TOKENS_MAX || answer > TOKENS_MAX)
        return report_usage("dry-run",
                            "--request %s: expected PROMPT,ANSWER, two numbers of tokens "
                            "from 1 to %d",
                            text, TOKENS_MAX);
    s->request.prompt_tokens = prompt;
    s->request.answer_tokens = answer;
    return EXIT_FINE;
}

static int
dry_run(struct session *s, const struct option_list *arguments)
{
    const struct values *v = &s->values;
    s->request = (struct launch_request){
        .command = "dry-run",
        .arguments = arguments,
        .device_count = (int)v->gpus,
        .has_values = v->values,
        .may_write = v->write,
        .step_max = v->steps,
        .event_max = (uint64_t)v->events,
        .patience_s = v->patience,
        .host_bytes = v->host,
        .title = "running",
    };
    bool ends_at_epoch = v->until && strcmp(v->until, "epoch") == 0;
    if (v->until && !ends_at_epoch && strcmp(v->until, "end") != 0)
        return report_usage("dry-run", "--until %s: expected epoch or end", v->until);
    s->request.ends_at_epoch = ends_at_epoch;
    int code =
        card_file_choose(&s->card, "dry-run", v->card, v->memory, &s->request.card);
    if (code == EXIT_FINE)
        code = read_request(s);
    if (code == EXIT_FINE)
        code = output_check("dry-run", v->output);
    if (code == EXIT_FINE && v->svg)
        code = output_check("dry-run", v->svg);
    if (code != EXIT_FINE)
        return code;
    int64_t ranks[RANKS_MAX] = {0};
    size_t count = 1;
    if (v->world_size > 0)
        code = read_ranks(s, ranks, &count);
    bool is_series = v->find || v->vary.count > 0;
    const struct option_misuse misuses[] = {
        {"rank", is_series && count > 1, "a single number with --vary and --find"},
        {"bracket", v->bracket && count > 1, of_one},
        {"svg", v->svg && !is_series && count == 1,
         "for --vary, --find or several ranks"},
    };
    if (code == EXIT_FINE)
        code = options_refuse_misuse(&command_dry_run, misuses, 3);
    if (code != EXIT_FINE)
        return code;
    s->request.world_size = v->world_size;
    s->request.rank = ranks[0];
    if (is_series)
        return v->find ? run_find(s) : run_vary(s);
    return count > 1 ? run_ranks(s, ranks, count) : run_once(s);
}

static int
run(int argc, char **argv)
{
    struct session s = {.values = {.card = "h100-80",
                                   .output = "dry-run.pickle",
                                   .gpus = 1,
                                   .events = 4000000,
                                   .patience = 120}};
    struct option_list arguments = {0};
    int code;
    if (options_parse(&command_dry_run, argc, argv, &s.values, &arguments, &code)) {
        code = arguments.count > 0 ? dry_run(&s, &arguments)
                                   : report_usage("dry-run", "no program is given");
    }
    card_file_finish(&s.card);
    options_finish(&command_dry_run, &s.values, &arguments);
    return code;
}

const struct command command_dry_run = {
    .name = "dry-run",
    .summary = "the memory of a training script, without a GPU",
    .usage = "[options] [--] PROGRAM [ARGUMENT...]",
    .about = about_text,
    .examples =
        "drystone dry-run -- python train.py --batch 32\n"
        "drystone dry-run --card a100-40 -- python train.py\n"
        "drystone dry-run --vary BATCH=8,16,32 --svg x.svg -- python train.py {BATCH}\n"
        "drystone dry-run --find BATCH -- python train.py --batch {BATCH}\n"
        "drystone dry-run --gpus 4 -- torchrun --nproc-per-node 4 train.py\n"
        "drystone dry-run --world-size 256 --rank 0,8,255 -- python train.py\n"
        "drystone dry-run --steps 3 --json -- python train.py >memory.json\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .stops_at_operand = true,
    .run = run,
};
