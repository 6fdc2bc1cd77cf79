/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone demo`: replay a simulated training run under several settings. */
#include <stdio.h>

#include <drystone/replay.h>

#include "base/command.h"
#include "base/output.h"
#include "base/report.h"
#include "record/load.h"
#include "replay/demo_step.h"
#include "replay/replay_report.h"

struct values {
    const char *out;
    int64_t steps;
};

static const struct option_spec specs[] = {
    {"output", 'o', "OUT", OPTION_STRING, offsetof(struct values, out),
     .help = "where the snapshot goes; default drystone-demo.pickle"},
    {"steps", 0, "N", OPTION_INT, offsetof(struct values, steps),
     .help = "training steps, 2 to 1000; default 6", .min = 2, .max = 1000},
};

static const char about_text[] =
    "Trains a 12-layer transformer of 124 million weights on the simulated device: "
    "forward, backward and Adam, with one longer batch in the middle. Writes what the "
    "allocator did as a PyTorch snapshot, reads that file back, proves the replay "
    "against it, and runs the same requests under six settings.";

/* GPT-2 small in float32, with a batch that fits a 24 GiB card. */
static const struct demo_model model = {
    .layers = 12,
    .hidden = 768,
    .heads = 12,
    .sequence = 512,
    .batch = 8,
    .vocabulary = 50257,
};
#define DEVICE_BYTES (UINT64_C(24) << 30)

static const char *const settings[] = {
    "expandable_segments:True",
    "max_split_size_mb:128",
    "max_split_size_mb:512",
    "roundup_power2_divisions:4",
    "large_segment_size_mb:64",
    "garbage_collection_threshold:0.8,per_process_memory_fraction:0.95",
};
#define SETTING_COUNT (sizeof settings / sizeof settings[0])

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

/* Write the snapshot that PyTorch would have recorded of the program's requests. */
static int
record(const char *path, int64_t steps)
{
    struct dry_trace *requests = NULL, *recorded = NULL;
    struct dry_replay *replay = NULL;
    struct dry_error err;
    struct demo_model m = model;
    m.steps = (uint32_t)steps;
    enum dry_status status = demo_make_requests(&m, &requests, &err);
    if (status == DRY_OK)
        status = dry_replay_create(requests, NULL, &replay, &err);
    if (status == DRY_OK)
        status = dry_replay_record(replay, NULL, &recorded, &err);
    int code = status == DRY_OK ? write_snapshot(recorded, path)
                                : report_error("demo", NULL, &err);
    dry_replay_destroy(replay);
    dry_trace_destroy(recorded);
    dry_trace_destroy(requests);
    return code;
}

static int
run_settings(struct dry_replay *replay, struct replay_row *rows)
{
    struct dry_run_options options;
    dry_run_options_init(&options);
    struct dry_error err;
    options.find_capacity = true;
    rows[0] = (struct replay_row){.label = "as recorded"};
    enum dry_status status = dry_replay_run(replay, &options, &rows[0].run, &err);
    options.capacity_bytes = DEVICE_BYTES;
    for (size_t i = 0; i < SETTING_COUNT && status == DRY_OK; i++) {
        rows[i + 1] = (struct replay_row){.label = settings[i], .conf = settings[i]};
        options.conf = settings[i];
        status = dry_replay_run(replay, &options, &rows[i + 1].run, &err);
    }
    return status == DRY_OK ? EXIT_FINE : report_error("demo", NULL, &err);
}

static int
show(const char *path)
{
    struct dry_trace *trace = NULL;
    struct dry_replay *replay = NULL;
    struct replay_row rows[SETTING_COUNT + 1];
    int code = load_trace("demo", path, &trace, NULL);
    if (code != EXIT_FINE)
        return code;
    struct dry_error err;
    if (dry_replay_create(trace, NULL, &replay, &err) != DRY_OK)
        code = report_error("demo", path, &err);
    if (code == EXIT_FINE)
        code = run_settings(replay, rows);
    struct replay_report report = {.file = path,
                                   .view = dry_trace_get_view(trace),
                                   .replay = replay,
                                   .rows = rows,
                                   .row_count = SETTING_COUNT + 1,
                                   .finds_capacity = true};
    if (code == EXIT_FINE && !replay_report_print(&report))
        code = report_failure("demo", path, EXIT_MACHINE, "no memory for the table");
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
    return code;
}

static void
say_where_to_go(const char *path)
{
    printf(
        "\nNext, with this file or with one of your own:\n"
        "  drystone explain %s\n"
        "  drystone steps %s\n"
        "  drystone view %s -o demo.html\n"
        "  drystone replay %s -c max_split_size_mb:64 --find-capacity\n"
        "  drystone help\n"
        "To record your own program: torch.cuda.memory._record_memory_history() before\n"
        "the steps, torch.cuda.memory._dump_snapshot(\"run.pickle\") after them.\n",
        path, path, path, path);
}

static int
run_demo(const struct values *values)
{
    int code = record(values->out, values->steps);
    if (code == EXIT_FINE) {
        printf(
            "A transformer of 124 million weights, %lld training steps, on a simulated "
            "device\n"
            "of 24 GiB. The snapshot is in %s.\n\n",
            (long long)values->steps, values->out);
        code = show(values->out);
    }
    if (code == EXIT_FINE)
        say_where_to_go(values->out);
    return code;
}

static int
run(int argc, char **argv)
{
    struct values values = {.out = "drystone-demo.pickle", .steps = 6};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_demo, argc, argv, &values, &operands, &code))
        code = operands.count ? report_usage("demo", "expected no operands")
                              : run_demo(&values);
    options_finish(&command_demo, &values, &operands);
    return code;
}

const struct command command_demo = {
    .name = "demo",
    .summary = "the main job on a training run simulated on the spot",
    .usage = "[options]",
    .about = about_text,
    .examples = "drystone demo\ndrystone demo --steps 40 -o run.pickle\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
