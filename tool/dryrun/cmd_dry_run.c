/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `drystone dry-run`: the memory of a training script, without a GPU.
 *
 * The program runs as it is, on a CUDA that is not there (launch.h); what it leaves behind is
 * read (facts.h), replayed (verdict.h) and told (dry_report.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/output.h"
#include "base/report.h"
#include "dryrun/dry_report.h"

struct values {
    const char *card, *output;
    int64_t gpus, steps, events;
    bool bracket, json;
};

static const struct option_spec specs[] = {
    {"card", 'c', "NAME", OPTION_STRING, offsetof(struct values, card),
     .help = "the card to run on; default h100-80. drystone estimate --list names all"},
    {"gpus", 'g', "N", OPTION_INT, offsetof(struct values, gpus),
     .help = "how many of them this machine has; default 1", .min = 1, .max = 16},
    {"steps", 0, "N", OPTION_INT, offsetof(struct values, steps),
     .help =
         "end after N optimiser steps; default: when steps repeat, or when the program "
         "ends",
     .min = 1, .max = 1000000},
    {"events", 0, "N", OPTION_INT, offsetof(struct values, events),
     .help = "keep the last N events of history; default 4000000", .min = 1000,
     .max = 100000000},
    {"bracket", 0, NULL, OPTION_FLAG, offsetof(struct values, bracket),
     .help = "run once more with streams that lag until somebody waits: the other end of "
             "what a real card can do"},
    {"output", 'o', "FILE", OPTION_STRING, offsetof(struct values, output),
     .help = "where the snapshot goes; default dry-run.pickle"},
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
    struct launch launch, late_launch;
    struct facts facts, late;
    struct dry_verdict verdict;
    int status;
};

/* --- the snapshot ------------------------------------------------------------------------- */

static enum dry_status
copy_all(FILE *from, const struct dry_sink *sink, struct dry_error *err)
{
    char bytes[1 << 16];
    size_t count;
    while ((count = fread(bytes, 1, sizeof bytes, from)) > 0) {
        if (sink->write(sink->self, bytes, count, err) != DRY_OK)
            return DRY_ERR_SYSTEM;
    }
    return DRY_OK;
}

static int
copy_snapshot(const char *from, const char *to)
{
    struct output out;
    struct dry_error err;
    FILE *in = fopen(from, "rb");
    if (!in)
        return report_failure("dry-run", NULL, EXIT_INPUT,
                              "the program left no snapshot: this torch cannot make one");
    int code = output_open(&out, "dry-run", to);
    if (code == EXIT_FINE) {
        struct dry_sink sink = output_sink(&out);
        code = output_close(&out, copy_all(in, &sink, &err), &err);
    }
    fclose(in);
    return code;
}

/* --- the work ----------------------------------------------------------------------------- */

static int
run_late(struct session *s)
{
    s->late_launch = s->launch;
    s->late_launch.folder[0] = '\0';
    s->late_launch.preload = NULL;
    s->late_launch.is_late = true;
    int status;
    int code = launch_begin(&s->late_launch);
    if (code == EXIT_FINE)
        code = launch_run(&s->late_launch, &status);
    return code == EXIT_FINE ? facts_read(&s->late, "dry-run", s->late_launch.out) : code;
}

static int
report(struct session *s)
{
    const struct dry_report r = {
        .launch = &s->launch,
        .facts = &s->facts,
        .verdict = &s->verdict,
        .snapshot = s->values.output,
        .status = s->status,
        .late = s->values.bracket ? &s->late : NULL,
    };
    int code = EXIT_FINE;
    if (s->values.json)
        code = dry_report_print_json(&r);
    else if (!dry_report_print(&r))
        code = report_failure("dry-run", NULL, EXIT_MACHINE, "no memory");
    static const int codes[] = {[DRY_FITS] = EXIT_FINE,
                                [DRY_FITS_NOT] = EXIT_FOUND,
                                [DRY_NOT_KNOWN] = EXIT_INPUT};
    return code == EXIT_FINE ? codes[dry_report_outcome(&r)] : code;
}

static int
look_at(struct session *s)
{
    int code = facts_read(&s->facts, "dry-run", s->launch.out);
    if (code != EXIT_FINE)
        return code;
    if (s->facts.process_count == 0)
        return report_failure("dry-run", s->launch.words->values[0], EXIT_INPUT,
                              "the program ended with status %d before it used a GPU",
                              s->status);
    const struct facts_process *p = &s->facts.processes[s->facts.main];
    code = copy_snapshot(p->snapshot, s->values.output);
    if (code == EXIT_FINE)
        code = dry_verdict_make(&s->verdict, "dry-run", p->snapshot);
    if (code == EXIT_FINE && s->values.bracket)
        code = run_late(s);
    return code == EXIT_FINE ? report(s) : code;
}

static int
dry_run(struct session *s, const struct option_list *words)
{
    s->launch = (struct launch){
        .command = "dry-run",
        .words = words,
        .card = dry_card_find(s->values.card),
        .device_count = (int)s->values.gpus,
        .step_max = s->values.steps,
        .event_max = (uint64_t)s->values.events,
        .is_output_for_error = s->values.json,
    };
    if (!s->launch.card)
        return report_usage("dry-run", "--card %s: no card of drystone estimate --list",
                            s->values.card);
    int code = launch_begin(&s->launch);
    if (code == EXIT_FINE)
        code = launch_run(&s->launch, &s->status);
    return code == EXIT_FINE ? look_at(s) : code;
}

static int
run(int argc, char **argv)
{
    struct session s = {
        .values = {
            .card = "h100-80", .output = "dry-run.pickle", .gpus = 1, .events = 4000000}};
    struct option_list words = {0};
    int code;
    if (options_parse(&command_dry_run, argc, argv, &s.values, &words, &code)) {
        code = words.count > 0 ? dry_run(&s, &words)
                               : report_usage("dry-run", "no program is given");
    }
    dry_verdict_finish(&s.verdict);
    facts_finish(&s.facts);
    facts_finish(&s.late);
    launch_finish(&s.launch);
    launch_finish(&s.late_launch);
    options_finish(&command_dry_run, &s.values, &words);
    return code;
}

const struct command command_dry_run = {
    .name = "dry-run",
    .summary = "the memory of a training script, without a GPU",
    .usage = "[options] [--] PROGRAM [ARGUMENT...]",
    .about = about_text,
    .examples = "drystone dry-run -- python train.py --batch 32\n"
                "drystone dry-run --card a100-40 -- python train.py\n"
                "drystone dry-run --gpus 4 -- torchrun --nproc-per-node 4 train.py\n"
                "drystone dry-run --steps 3 --json -- python train.py >memory.json\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .stops_at_operand = true,
    .run = run,
};
