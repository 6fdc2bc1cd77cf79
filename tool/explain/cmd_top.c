/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone top`: the owners of the memory; with --free, free memory and what pins it. */
#include <string.h>

#include <drystone/categories.h>
#include <drystone/owners.h>
#include <drystone/steps.h>

#include "base/command.h"
#include "base/report.h"
#include "base/rows.h"
#include "explain/frag_report.h"
#include "explain/top_report.h"
#include "record/study.h"

#define FREE_ROWS 10

struct values {
    const char *at, *by;
    int64_t device, rows;
    bool is_inverted, has_stacks, is_free, has_map, json;
};

#define OF_OWNERS .refuses = {{"free", "for owners, without --free"}}

static const struct option_spec specs[] = {
    {"at", 'a', "WHEN", OPTION_STRING, offsetof(struct values, at),
     .help = "oom, peak, end, or the number of an event: the state after it; default: "
             "the OOM if there is one, else the peak"},
    {"by", 'b', "KEY", OPTION_STRING, offsetof(struct values, by),
     .help = "line (the default), function, module, stack, category, size or step",
     OF_OWNERS},
    {"inverted", 'i', NULL, OPTION_FLAG, offsetof(struct values, is_inverted),
     .help = "by the outermost frame of the user's code instead of the innermost",
     OF_OWNERS},
    {"stacks", 's', NULL, OPTION_FLAG, offsetof(struct values, has_stacks),
     .help = "also show the stack of each owner's largest allocation", OF_OWNERS},
    {"free", 0, NULL, OPTION_FLAG, offsetof(struct values, is_free),
     .help = "instead of owners, what is stranded, pool by pool, and what pins it"},
    {"map", 0, NULL, OPTION_FLAG, offsetof(struct values, has_map),
     .help = "draw every segment, not only those that pin most",
     .needs = {"free", "for --free alone"}},
    {"rows", 'n', "N", OPTION_INT, offsetof(struct values, rows),
     .help = "how many owners, or pools and pinning segments, 0 for all; default 20, of "
             "--free 10; --json has all where none is given",
     .max = NO_MAX},
    {"device", 'd', "N", OPTION_INT, offsetof(struct values, device),
     .help = "the device; default: one that ran out of memory, else the one with the "
             "most events",
     .max = NO_MAX},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.top/1, with --free drystone.top-free/1, see "
             "drystone-top(1)"},
};

static const char about_text[] =
    "Sums up the active memory at one moment by the line of the user's code that asked "
    "for it. Active memory includes blocks that wait for a stream. With --free it shows "
    "how much was active then, how much the allocator would give back by itself, and "
    "how much was stranded, pool by pool; and the segments that little pins, best "
    "first, with a map of each.";

struct session {
    struct values values;
    const char *path;
    enum dry_owner_key key;
    struct study study;
    struct dry_steps *steps;
    struct dry_categories *categories;
    struct dry_owners *owners;
    struct dry_state *state; /* for --free; else NULL */
};

static int
find_key(struct session *s)
{
    const char *by = s->values.by ? s->values.by : "line";
    for (unsigned i = 0; i < DRY_OWNER_KEY_COUNT; i++) {
        if (strcmp(by, dry_owner_key_name((enum dry_owner_key)i)) == 0) {
            s->key = (enum dry_owner_key)i;
            return EXIT_FINE;
        }
    }
    return report_usage("top",
                        "--by %s: expected line, function, module, stack, category, "
                        "size or step",
                        by);
}

static int
check_usage(struct session *s, const struct option_list *operands)
{
    int code = options_expect_one_file(&command_top, operands);
    return code == EXIT_FINE ? find_key(s) : code;
}

/* Compute steps and categories only if the key needs them, because both cost time. */
static enum dry_status
classify(struct session *s, const struct dry_timeline *timeline, struct dry_error *err)
{
    if (s->key != DRY_OWNER_STEP && s->key != DRY_OWNER_CATEGORY)
        return DRY_OK;
    enum dry_status status = dry_steps_create(timeline, NULL, &s->steps, err);
    if (status == DRY_OK && s->key == DRY_OWNER_CATEGORY)
        status = dry_categories_create(timeline, s->steps, NULL, &s->categories, err);
    return status;
}

static int
find_owners(struct session *s, uint32_t moment)
{
    const struct dry_timeline *timeline = s->study.devices[s->study.main].timeline;
    struct dry_error err;
    enum dry_status status = classify(s, timeline, &err);
    struct dry_owners_options options;
    dry_owners_options_init(&options);
    options.key = s->key;
    options.moment = moment;
    options.is_inverted = s->values.is_inverted;
    options.steps = s->steps;
    options.categories = s->categories;
    if (status == DRY_OK)
        status = dry_owners_create(timeline, &options, &s->owners, &err);
    return status == DRY_OK ? EXIT_FINE : report_error("top", s->path, &err);
}

static int
report(struct session *s, uint32_t moment)
{
    const struct dry_timeline_view *view =
        dry_timeline_get_view(s->study.devices[s->study.main].timeline);
    struct top_report r = {
        .file = s->path,
        .study = &s->study,
        .device = s->study.main,
        .moment = moment_describe(view, s->values.at, moment),
        .owners = s->owners,
        .key = s->key,
        .is_inverted = s->values.is_inverted,
        .has_stacks = s->values.has_stacks,
        .row_limit = rows_limit(s->values.rows, s->values.json),
    };
    if (s->values.json)
        return top_report_print_json(&r);
    if (!top_report_print(&r))
        return report_failure("top", s->path, EXIT_MACHINE, "no memory for the table");
    return EXIT_FINE;
}

static int
report_free(struct session *s, uint32_t moment)
{
    const struct dry_timeline *timeline = s->study.devices[s->study.main].timeline;
    struct dry_error err;
    if (dry_state_create(timeline, moment, &s->state, &err) != DRY_OK)
        return report_error("top", s->path, &err);
    struct frag_report r = {
        .file = s->path,
        .trace = s->study.subject,
        .is_simulated = s->study.is_simulated,
        .timeline = timeline,
        .state = s->state,
        .moment = moment_describe(dry_timeline_get_view(timeline), s->values.at, moment),
        .owners = s->owners,
        .row_max = s->values.rows == ROWS_NOT_GIVEN ? FREE_ROWS
                                                    : rows_limit(s->values.rows, false),
        .has_map = s->values.has_map,
    };
    if (s->values.json)
        return frag_report_print_json("top", &r);
    if (!frag_report_print(&r))
        return report_memory("top", s->path);
    return EXIT_FINE;
}

static int
read_and_report(struct session *s)
{
    uint32_t moment;
    int code = study_open(&s->study, "top", s->path, s->values.device);
    if (code == EXIT_FINE)
        code = study_find_moment(&s->study, s->study.main, s->values.at, &moment);
    if (code == EXIT_FINE)
        code = find_owners(s, moment);
    if (code == EXIT_FINE)
        code = s->values.is_free ? report_free(s, moment) : report(s, moment);
    return code;
}

static int
run(int argc, char **argv)
{
    struct session s = {.values = {.device = STUDY_EVERY_DEVICE, .rows = ROWS_NOT_GIVEN}};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_top, argc, argv, &s.values, &operands, &code)) {
        code = check_usage(&s, &operands);
        if (code == EXIT_FINE) {
            s.path = operands.values[0];
            code = read_and_report(&s);
        }
    }
    dry_state_destroy(s.state);
    dry_owners_destroy(s.owners);
    dry_categories_destroy(s.categories);
    dry_steps_destroy(s.steps);
    study_close(&s.study);
    options_finish(&command_top, &s.values, &operands);
    return code;
}

const struct command command_top = {
    .name = "top",
    .summary = "who holds the memory, by line and more; --free: what pins the rest",
    .usage = "[options] FILE",
    .about = about_text,
    .examples = "drystone top run.pickle\n"
                "drystone top run.pickle --at end --by module\n"
                "drystone top run.pickle --by category\n"
                "drystone top run.pickle --stacks -n 3\n"
                "drystone top run.pickle --free\n"
                "drystone top run.pickle --free --at end --map\n"
                "drystone top run.pickle --json | jq '.owners[:5]'\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
