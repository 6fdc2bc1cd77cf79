/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `drystone fit`: the change that makes a program fit a card, found by dry runs.
 *
 * The program runs with changes that drystone.fit makes in its process (python/drystone/fit);
 * fit_search.h decides which to try.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/output.h"
#include "base/report.h"
#include "base/term.h"
#include "dryrun/card_file.h"
#include "fit/fit_patch.h"
#include "fit/fit_report.h"
#include "run/run_package.h"

struct values {
    const char *card, *output;
    uint64_t memory;
    int64_t gpus, steps, patience, world_size, rank, runs, apply, patch;
    struct option_list vary;
    bool values, json;
};

static const struct option_spec specs[] = {
    {"card", 0, "CARD", OPTION_STRING, offsetof(struct values, card),
     .help = "the card to fit: a name, or the beginning of one, of drystone estimate "
             "--list, or a FILE.json; default h100-80"},
    {"memory", 0, "SIZE", OPTION_SIZE, offsetof(struct values, memory),
     .help =
         "the total that the card's driver reports, where it is not that of the table"},
    {"gpus", 0, "N", OPTION_INT, offsetof(struct values, gpus),
     .help = "how many of them this machine has; default 1", .min = 1, .max = 16},
    {"world-size", 0, "N", OPTION_INT, offsetof(struct values, world_size),
     .help = "the program is one rank of a job of N, whose other ranks are not there",
     .min = 1, .max = 1000000},
    {"rank", 0, "RANK", OPTION_INT, offsetof(struct values, rank),
     .help = "the rank to run; default 0", .max = 1000000,
     .needs = {"world-size", "for --world-size alone"}},
    {"steps", 0, "N", OPTION_INT, offsetof(struct values, steps),
     .help = "end each run after N optimizer steps; default: as drystone dry-run does",
     .min = 1, .max = 1000000},
    {"patience", 0, "SECONDS", OPTION_INT, offsetof(struct values, patience),
     .help = "end a run that makes no progress for so long; default 120", .min = 1,
     .max = 1000000},
    {"values", 0, NULL, OPTION_FLAG, offsetof(struct values, values),
     .help = "do operations of at most 65536 elements, on the CPU"},
    {"vary", 0, "NAME=LIST", OPTION_LIST, offsetof(struct values, vary),
     .help =
         "values that {NAME} may have in the program's words: NAME=16,8,4; the first is "
         "the program as it is; several lists move together"},
    {"runs", 0, "N", OPTION_INT, offsetof(struct values, runs),
     .help = "run the program at most N times; default 15", .min = 1,
     .max = FIT_RUNS_MAX},
    {"apply", 0, "NUMBER", OPTION_INT, offsetof(struct values, apply),
     .help = "run the program with this change of a search before; nothing runs dry",
     .min = 1, .max = FIT_RUNS_MAX},
    {"patch", 0, "NUMBER", OPTION_INT, offsetof(struct values, patch),
     .help = "print a diff of the program's script that makes this change; nothing runs",
     .min = 1, .max = FIT_RUNS_MAX},
    {"output", 'o', "OUT", OPTION_STRING, offsetof(struct values, output),
     .help = "where the result goes, and where --apply and --patch read it; default "
             "fit.json"},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print the result as JSON, schema drystone.fit/1, see drystone-fit(1)"},
};

static const char about_text[] =
    "Runs a PyTorch program dry, as drystone dry-run does, and where it does not fit the "
    "card, "
    "runs it again with changes: settings of the allocator, checkpointed layers, smaller "
    "pieces of a batch, and others. Prints those with which it fits, and what they cost. "
    "The program stays as it is: changes are made in its process.";

/* Find the package's hook, which makes the changes. */
static int
find_package(struct run_machine *machine)
{
    run_package_find(machine);
    if (machine->hook[0])
        return EXIT_FINE;
    return report_failure("fit", NULL, EXIT_MACHINE,
                          "the Python package, which makes changes, is not there");
}

/* --- the search --------------------------------------------------------------------------- */

static int
report(const struct values *v, const struct fit_work *work)
{
    json_t *root = fit_report_make_json(work);
    size_t ranked[FIT_RUNS_MAX];
    int code = root ? EXIT_FINE : report_memory("fit", NULL), printed;
    if (code == EXIT_FINE)
        code = output_write_text("fit", v->output,
                                 json_out_dump(json_incref(root), JSON_INDENT(1)));
    if (v->json && root)
        printed = json_out_print("fit", json_incref(root));
    else
        printed =
            fit_report_print(work, v->output) ? EXIT_FINE : report_memory("fit", NULL);
    json_decref(root);
    code = code == EXIT_FINE ? printed : code;
    bool is_found = work->fits || fit_search_rank(&work->search, ranked) > 0;
    return code == EXIT_FINE && !is_found ? EXIT_FOUND : code;
}

static int
search(const struct values *v, const struct option_list *arguments,
       const struct vary *vary, const struct run_machine *machine,
       const struct card_file *file, const struct dry_card *card)
{
    struct fit_work *work = calloc(1, sizeof *work);
    if (!work)
        return report_memory("fit", NULL);
    work->request = (struct launch_request){
        .command = "fit",
        .card = card,
        .device_count = (int)v->gpus,
        .has_values = v->values,
        .step_max = v->steps,
        .event_max = 4000000,
        .patience_s = v->patience,
        .world_size = v->world_size,
        .rank = v->rank,
        .package = machine->hook,
    };
    work->words = arguments;
    work->vary = vary;
    work->speed = file->speed;
    int code = fit_work_run(work, (int)v->runs);
    if (code == EXIT_FINE)
        code = report(v, work);
    fit_work_finish(work);
    free(work);
    return code;
}

/* --- a change for real -------------------------------------------------------------------- */

static int
run_program(const struct option_list *arguments)
{
    char **argv = calloc(arguments->count + 1, sizeof *argv);
    if (!argv)
        return report_memory("fit", NULL);
    for (size_t i = 0; i < arguments->count; i++)
        /* the cast is safe: execvp() does not modify the words */
        argv[i] = (char *)(uintptr_t)arguments->values[i];
    execvp(argv[0], argv);
    int code = report_failure("fit", argv[0], EXIT_MACHINE, "%s", strerror(errno));
    free(argv);
    return code;
}

/* Copy the program's words, with the values of a row. */
static int
fill_words(const struct option_list *arguments, const json_t *row,
           struct option_list *filled)
{
    const char *name;
    json_t *value;
    bool is_filled = vary_fill_one("", "", arguments, filled);
    json_object_foreach(json_object_get(row, "words"), name, value)
    {
        struct option_list last = *filled;
        const char *text = json_string_value(value);
        if (!is_filled || !text || !vary_is_name(name, strlen(name)))
            continue;
        is_filled = vary_fill_one(name, text, &last, filled);
        vary_free(&last);
    }
    return is_filled ? EXIT_FINE : report_memory("fit", NULL);
}

/* Become the program, with the changes of a row. */
static int
apply(const struct option_list *arguments, const struct run_machine *machine,
      const json_t *row)
{
    const char *rest = getenv("PYTHONPATH"),
               *label = json_string_value(json_object_get(row, "change"));
    char *variable = fit_offers_make_variable(
        json_incref(json_object_get(row, "changes")), false, false);
    size_t size = strlen(machine->hook) + (rest ? strlen(rest) : 0) + 2;
    char *path = malloc(size);
    struct option_list filled;
    int code = variable && path ? EXIT_FINE : report_memory("fit", NULL);
    if (code == EXIT_FINE)
        code = fill_words(arguments, row, &filled);
    if (code == EXIT_FINE) {
        snprintf(path, size, "%s%s%s", machine->hook, rest && *rest ? ":" : "",
                 rest ? rest : "");
        setenv("DRYSTONE_FIT", variable, 1);
        setenv("PYTHONPATH", path, 1);
        fprintf(stderr, "drystone: with ");
        term_print_text(stderr, label, strlen(label));
        fprintf(stderr, "\n");
        code = run_program(&filled);
        vary_free(&filled);
    }
    free(variable);
    free(path);
    return code;
}

/* Use a change of a result before. */
static int
use(const struct values *v, const struct option_list *arguments,
    const struct run_machine *machine)
{
    json_t *row;
    int64_t number = v->apply > 0 ? v->apply : v->patch;
    int code = fit_report_read("fit", v->output, number, &row);
    if (code == EXIT_FINE)
        code = v->apply > 0 ? apply(arguments, machine, row)
                            : fit_patch_print(arguments, row);
    json_decref(row);
    return code;
}

/* Read --vary. Lists move together. */
static int
read_vary(struct vary *vary, const struct option_list *lists,
          const struct option_list *arguments)
{
    int code = vary_read(vary, "fit", lists, arguments);
    for (size_t i = 1; i < vary->name_count && code == EXIT_FINE; i++) {
        if (vary->names[i].count != vary->names[0].count)
            code = report_usage("fit",
                                "--vary %s: expected %zu values, as %s has; it has %zu",
                                vary->names[i].name, vary->names[0].count,
                                vary->names[0].name, vary->names[i].count);
    }
    return code;
}

/* --- the command -------------------------------------------------------------------------- */

static int
fit(const struct values *v, const struct option_list *arguments)
{
    struct run_machine machine;
    struct vary vary = {.name_count = 0};
    struct card_file card = {.json = NULL};
    const struct dry_card *chosen;
    if (arguments->count == 0)
        return report_usage("fit", "no program is given");
    bool uses = v->apply > 0 || v->patch > 0;
    const struct option_misuse misuses[] = {
        {"json", v->json && uses, "for a search"},
        {"vary", v->vary.count > 0 && uses, "for a search"},
        {"patch", v->patch > 0 && v->apply > 0, "not for --apply: expected one of them"},
    };
    int code = options_refuse_misuse(&command_fit, misuses, 3);
    if (code == EXIT_FINE)
        code = find_package(&machine);
    if (code == EXIT_FINE && uses)
        return use(v, arguments, &machine);
    if (code == EXIT_FINE)
        code = read_vary(&vary, &v->vary, arguments);
    if (code == EXIT_FINE && v->world_size > 0 && v->rank >= v->world_size)
        code = report_usage("fit", "--rank %lld: expected less than --world-size",
                            (long long)v->rank);
    if (code == EXIT_FINE)
        code = card_file_choose(&card, "fit", v->card, v->memory, &chosen);
    if (code == EXIT_FINE)
        code = output_check("fit", v->output);
    if (code == EXIT_FINE)
        code = search(v, arguments, &vary, &machine, &card, chosen);
    card_file_finish(&card);
    vary_finish(&vary);
    return code;
}

static int
run(int argc, char **argv)
{
    struct values values = {
        .card = "h100-80", .output = "fit.json", .gpus = 1, .patience = 120, .runs = 15};
    struct option_list arguments = {0};
    int code;
    if (options_parse(&command_fit, argc, argv, &values, &arguments, &code))
        code = fit(&values, &arguments);
    options_finish(&command_fit, &values, &arguments);
    return code;
}

const struct command command_fit = {
    .name = "fit",
    .summary = "the change that makes a program fit, without a GPU",
    .usage = "[options] [--] PROGRAM [ARGUMENT...]",
    .about = about_text,
    .examples = "drystone fit --card rtx4090-24 -- python train.py --batch 16\n"
                "drystone fit --apply 2 -- python train.py --batch 16\n"
                "drystone fit --patch 2 -- python train.py >fit.diff\n"
                "drystone fit --card l4 --runs 8 --json -- python train.py >fit.json\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .stops_at_operand = true,
    .run = run,
};
