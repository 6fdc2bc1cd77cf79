/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone steps`: the iterations of a program, and what grows between them. */
#include "base/command.h"
#include "base/options.h"
#include "base/report.h"
#include "base/rows.h"
#include "explain/figures.h"
#include "explain/steps_report.h"
#include "record/study.h"

struct values {
    int64_t device, rows;
    uint64_t capacity;
    struct gate_values gate;
    bool json;
};

static const struct option_spec specs[] = {
    {"device", 'd', "N", OPTION_INT, offsetof(struct values, device),
     .help = "the device; default: the one that ran out of memory, else the busiest",
     .max = NO_MAX},
    {"capacity", 0, "SIZE", OPTION_SIZE, offsetof(struct values, capacity),
     .help = "bytes the device has for PyTorch: 40GiB; default: what the recording "
             "shows, if it ran out of memory",
     .min = 1},
    {"rows", 'n', "N", OPTION_INT, offsetof(struct values, rows),
     .help = "how many steps, and leak suspects, 0 for all; default 12", .max = NO_MAX},
    GATE_OPTIONS(struct values, gate, "peak", .unless = NULL),
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.steps/1, see drystone-steps(1)"},
};

static const char about_text[] =
    "Tells the steps of a training or serving loop apart, by the marks in FILE or by the "
    "code that allocates once a step, and shows each: its peak, what it left behind, "
    "what it asked for. Then what grows from step to step, by the code that asked for "
    "it, and when the device will be full.";

static int
report(const struct study *study, const struct values *values,
       const struct dry_steps *steps, const struct dry_owners *owners)
{
    const struct study_device *d = &study->devices[study->main];
    struct steps_report r = {
        .file = study->path,
        .timeline = d->timeline,
        .steps = steps,
        .owners = owners,
        .capacity = values->capacity != NOT_GIVEN
                        ? values->capacity
                        : dry_replay_get_recorded(d->replay)->capacity_bytes,
        .is_simulated = study->is_simulated,
        .row_max = rows_limit(values->rows, false),
    };
    int code = EXIT_FINE;
    if (values->json)
        code = steps_report_print_json("steps", &r);
    else if (!gate_takes_output(&values->gate) && !steps_report_print(&r))
        code = report_memory("steps", study->path);
    struct steps_totals totals = steps_report_sum(&r);
    if (code == EXIT_FINE && totals.growth_bytes_per_step > 0 && totals.suspects > 0)
        code = EXIT_FOUND;
    return figures_judge_steps(&r, &values->gate, code);
}

static int
show_steps(const struct values *values, const char *path)
{
    struct study study;
    struct dry_steps *steps = NULL;
    struct dry_owners *owners = NULL;
    struct dry_error err;
    int code = study_open(&study, "steps", path, values->device);
    if (code == EXIT_FINE) {
        const struct dry_timeline *timeline = study.devices[study.main].timeline;
        enum dry_status status = dry_steps_create(timeline, NULL, &steps, &err);
        if (status == DRY_OK)
            status = dry_owners_create(timeline, NULL, &owners, &err);
        code = status == DRY_OK ? report(&study, values, steps, owners)
                                : report_error("steps", path, &err);
    }
    dry_owners_destroy(owners);
    dry_steps_destroy(steps);
    study_close(&study);
    return code;
}

static int
run(int argc, char **argv)
{
    struct values values = {
        .device = STUDY_EVERY_DEVICE, .capacity = NOT_GIVEN, .rows = 12};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_steps, argc, argv, &values, &operands, &code)) {
        code = options_expect_one_file(&command_steps, &operands);
        if (code == EXIT_FINE)
            code = figures_check("steps", &values.gate, values.json);
        if (code == EXIT_FINE)
            code = show_steps(&values, operands.values[0]);
    }
    options_finish(&command_steps, &values, &operands);
    return code;
}

const struct command command_steps = {
    .name = "steps",
    .summary = "peak and churn of each step, and what grows from step to step",
    .usage = "[options] FILE",
    .about = about_text,
    .examples = "drystone steps run.pickle\n"
                "drystone steps run.pickle --rows 100\n"
                "drystone steps run.pickle --capacity 80GiB --json\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
