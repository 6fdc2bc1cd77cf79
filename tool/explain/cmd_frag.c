/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone frag`: what is free and cannot be had, and what holds it. */
#include "base/command.h"
#include "base/report.h"
#include "explain/frag_report.h"
#include "record/study.h"

struct values {
    const char *at;
    int64_t device, rows;
    bool map, json;
};

static const struct option_spec specs[] = {
    {"at", 'a', "WHEN", OPTION_STRING, offsetof(struct values, at),
     .help = "oom, peak, end, or the number of an event; default: the first "
             "out-of-memory, else the peak"},
    {"map", 0, NULL, OPTION_FLAG, offsetof(struct values, map),
     .help = "draw every segment, not only those that pin most"},
    {"device", 'd', "N", OPTION_INT, offsetof(struct values, device),
     .help = "the device; default: the one that ran out of memory, else the busiest",
     .max = NO_MAX},
    {"rows", 'n', "N", OPTION_INT, offsetof(struct values, rows),
     .help = "pools and pinning segments shown; default 10", .min = 1, .max = 1000000},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.frag/1, see drystone-frag(1)"},
};

static const char about_text[] =
    "Shows what the allocator held at a moment: how much was in use, how much it would "
    "give back by itself, and how much was stranded, pool by pool; and the segments that "
    "little pins, best first, with a map of each.";

static int
report(const struct study *study, const struct values *values,
       const struct dry_state *state, const struct dry_owners *owners)
{
    const struct dry_timeline *timeline = study->devices[study->main].timeline;
    struct frag_report r = {
        .file = study->path,
        .trace = study->subject,
        .is_simulated = study->is_simulated,
        .timeline = timeline,
        .state = state,
        .moment =
            moment_describe(dry_timeline_get_view(timeline), values->at, state->moment),
        .owners = owners,
        .row_max = (size_t)values->rows,
        .has_map = values->map,
    };
    if (values->json)
        return frag_report_print_json("frag", &r);
    if (!frag_report_print(&r))
        return report_failure("frag", study->path, EXIT_MACHINE, "no memory");
    return EXIT_FINE;
}

static enum dry_status
look(const struct study *study, uint32_t moment, struct dry_state **state,
     struct dry_owners **owners, struct dry_error *err)
{
    const struct dry_timeline *timeline = study->devices[study->main].timeline;
    struct dry_owners_options options;
    dry_owners_options_init(&options);
    options.moment = moment;
    enum dry_status status = dry_state_create(timeline, moment, state, err);
    return status == DRY_OK ? dry_owners_create(timeline, &options, owners, err) : status;
}

static int
frag_file(const struct values *values, const char *path)
{
    struct study study;
    struct dry_state *state = NULL;
    struct dry_owners *owners = NULL;
    struct dry_error err;
    uint32_t moment;
    int code = study_open(&study, "frag", path, values->device);
    if (code == EXIT_FINE)
        code = study_find_moment(&study, study.main, values->at, &moment);
    if (code == EXIT_FINE) {
        code = look(&study, moment, &state, &owners, &err) == DRY_OK
                   ? report(&study, values, state, owners)
                   : report_error("frag", path, &err);
    }
    dry_owners_destroy(owners);
    dry_state_destroy(state);
    study_close(&study);
    return code;
}

static int
run(int argc, char **argv)
{
    struct values values = {.device = STUDY_EVERY_DEVICE, .rows = 10};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_frag, argc, argv, &values, &operands, &code)) {
        code = options_expect_one_file(&command_frag, &operands);
        if (code == EXIT_FINE)
            code = frag_file(&values, operands.values[0]);
    }
    options_finish(&command_frag, &values, &operands);
    return code;
}

const struct command command_frag = {
    .name = "frag",
    .summary = "what is free and cannot be had, pool by pool, and what pins it",
    .usage = "[options] FILE",
    .about = about_text,
    .examples = "drystone frag run.pickle\n"
                "drystone frag run.pickle --at end --map\n"
                "drystone frag run.pickle --at 12345 --json\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
