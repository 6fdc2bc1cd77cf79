/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone pages`: which page sizes this machine has, what prevents their use, and how
   to fix that. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "base/report.h"
#include "base/root.h"
#include "base/term.h"
#include "machine/doctor_files.h"
#include "machine/doctor_report.h"
#include "machine/need.h"
#include "machine/pages_bench.h"
#include "machine/pages_measure.h"

#define JOURNAL "/var/lib/drystone/pages.journal"
#define NEEDS_MAX 4096
#define WORD_MAX 256

struct values {
    struct option_list needs, env;
    const char *purpose, *root, *journal;
    uint64_t page_bytes;
    int64_t node, pid; /* 0: no process */
    bool all, apply, undo, yes, bench;
    struct pages_measure measure; /* shared with --bench; has --json for both */
};

#define OF_BENCH .needs = {"bench", "for --bench alone"}
#define WITHOUT_BENCH "for looking, without --bench"
#define NOT_FOR_BENCH .refuses = {{"bench", WITHOUT_BENCH}}

static const struct option_spec specs[] = {
    {"purpose", 0, "PURPOSE", OPTION_STRING, offsetof(struct values, purpose),
     .help = "training, inference (both on a GPU) or cpu; default: training",
     NOT_FOR_BENCH},
    {"need", 0, "WHAT", OPTION_LIST, offsetof(struct values, needs),
     .help = "memory to be had in huge pages: shape and type, '1024,1024,1024 float32', "
             "or a size, 4GiB; several apart by ';' or by giving it again",
     NOT_FOR_BENCH},
    {"node", 0, "N", OPTION_INT, offsetof(struct values, node),
     .help = "the node that it shall lie on; default: any", .min = DRY_DOCTOR_ANY_NODE,
     .max = INT32_MAX, NOT_FOR_BENCH},
    {"page-size", 0, "SIZE", OPTION_SIZE, offsetof(struct values, page_bytes),
     .help = "of the pages it shall have; default: the kernel's default, mostly 2MiB",
     NOT_FOR_BENCH},
    {"env", 0, "NAME=VALUE", OPTION_LIST, offsetof(struct values, env),
     .help = "a variable of the program that will run, beside those of this command; may "
             "be given several times",
     NOT_FOR_BENCH},
    {"pid", 0, "N", OPTION_INT, offsetof(struct values, pid),
     .help = "look at process N, which runs: its limits, its malloc, and the variables "
             "it was started with instead of those of this command",
     .min = 1, .max = INT32_MAX, NOT_FOR_BENCH},
    {"all", 0, NULL, OPTION_FLAG, offsetof(struct values, all),
     .help = "show what is good too", NOT_FOR_BENCH},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, measure.json),
     .help = "print JSON, schema drystone.pages/2, with --bench drystone.pages-bench/1, "
             "see drystone-pages(1)",
     .refuses = {{"apply undo", "for looking: it does not go with --apply or --undo"}}},
    {"root", 0, "DIR", OPTION_STRING, offsetof(struct values, root),
     .help = "read another machine's /sys and /proc from below DIR, and no environment",
     .refuses = {{"bench", "for looking: another machine cannot be measured"}}},
    {"apply", 0, NULL, OPTION_FLAG, offsetof(struct values, apply),
     .help = "after showing them and asking, write the values that mend; of ID... alone, "
             "if any are given",
     .refuses = {{"undo", "the opposite of --undo: expected one of them"},
                 {"bench", WITHOUT_BENCH}}},
    {"undo", 0, NULL, OPTION_FLAG, offsetof(struct values, undo),
     .help = "go back to what was there before --apply", NOT_FOR_BENCH},
    {"yes", 'y', NULL, OPTION_FLAG, offsetof(struct values, yes),
     .help = "do not ask, for scripts", NOT_FOR_BENCH},
    {"journal", 0, "FILE", OPTION_STRING, offsetof(struct values, journal),
     .help = "what --apply writes and --undo reads; default: " JOURNAL ", below DIR",
     NOT_FOR_BENCH},
    {"bench", 0, NULL, OPTION_FLAG, offsetof(struct values, bench),
     .help = "measure what pages and malloc give here; about three minutes, in which "
             "nothing else should run"},
    {"bytes", 0, "SIZE", OPTION_SIZE, offsetof(struct values, measure.bytes),
     .help = "of each kind of pages; default 1GiB", .min = PAGES_MEASURE_BYTES_MIN,
     .max = PAGES_MEASURE_BYTES_MAX, OF_BENCH},
    {"rounds", 0, "N", OPTION_INT, offsetof(struct values, measure.rounds),
     .help = "medians of so many; default 7", .min = 1, .max = BENCH_ROUNDS_MAX,
     OF_BENCH},
    {"only", 0, "WHAT", OPTION_STRING, offsetof(struct values, measure.only),
     .help = "pages or malloc alone", OF_BENCH},
    {"here", 0, NULL, OPTION_FLAG, offsetof(struct values, measure.here),
     .help = "of --only malloc: that of this process alone", OF_BENCH},
};

static const char about_text[] =
    "Lists the kinds and sizes of pages that this machine has, and the pools of huge "
    "ones. Reads what the machine allows, from /sys and /proc, and says what of it "
    "stands in the way of large tensors in host memory: what is, what should be, why, "
    "the command that mends it, how to undo that, how to make it last. With ID... only "
    "these. Changes nothing unless --apply says so. --bench measures what pages give "
    "here: filling, random loads, locking, giving back; and what a tensor's memory "
    "costs under each malloc that 'drystone run' sets up.";

struct session {
    struct values values;
    struct dry_doctor_options options;
    const char *root;
    char *journal; /* path of the journal; owned */
    uint64_t *needs;
    struct dry_doctor_variable *variables;
    char **texts; /* copies of the variables; owned */
    size_t text_count;
    struct dry_doctor *doctor;
    struct dry_topology *topology;
    struct option_list operands;
};

/* --- the command line --------------------------------------------------------------------- */

static int
read_purpose(struct session *s)
{
    const char *purpose = s->values.purpose;
    for (unsigned i = 0; purpose && i < DRY_DOCTOR_PURPOSE_COUNT; i++) {
        if (strcmp(dry_doctor_purpose_name((enum dry_doctor_purpose)i), purpose) == 0) {
            s->options.purpose = (enum dry_doctor_purpose)i;
            return EXIT_FINE;
        }
    }
    return purpose ? report_usage("pages",
                                  "--purpose %s: expected training, inference or cpu",
                                  purpose)
                   : EXIT_FINE;
}

/* Read one --need; several in one option are separated by semicolons. */
static int
read_need(struct session *s, const char *text, size_t length)
{
    char one[WORD_MAX];
    const char *wrong = "it is too long";
    if (s->options.need_count == NEEDS_MAX)
        return report_usage("pages", "--need: %d regions are the most", NEEDS_MAX);
    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (length < sizeof one) {
        memcpy(one, text, length);
        one[length] = '\0';
        wrong = need_parse(one, &s->needs[s->options.need_count]);
    }
    if (wrong)
        return report_usage("pages", "--need '%.*s': %s", (int)length, text, wrong);
    s->options.need_count++;
    return EXIT_FINE;
}

static int
read_needs(struct session *s)
{
    int code = EXIT_FINE;
    s->needs = calloc(NEEDS_MAX, sizeof *s->needs);
    if (!s->needs)
        return report_memory("pages", NULL);
    s->options.needs_bytes = s->needs;
    for (size_t i = 0; i < s->values.needs.count && code == EXIT_FINE; i++) {
        const char *at = s->values.needs.values[i];
        while (code == EXIT_FINE) {
            size_t length = strcspn(at, ";");
            code = read_need(s, at, length);
            if (!at[length])
                break;
            at += length + 1;
        }
    }
    return code;
}

static size_t
count_variables(void)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    return count;
}

/* Add a variable "NAME=VALUE"; a text without '=' is ignored. */
static bool
add_variable(struct session *s, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return true;
    char *copy = strdup(text);
    if (!copy)
        return false;
    copy[equals - text] = '\0';
    s->texts[s->text_count++] = copy;
    s->variables[s->options.variable_count++] =
        (struct dry_doctor_variable){copy, copy + (equals - text) + 1};
    return true;
}

/* Collect the environment to examine. Ours counts only for programs that this shell would
   start: not on another machine, not in a running process. */
static int
read_variables(struct session *s)
{
    bool has_ours = !s->values.root && !s->options.process;
    size_t ours = has_ours ? count_variables() : 0;
    size_t given = s->values.env.count;
    s->texts = calloc(ours + given + 1, sizeof *s->texts);
    s->variables = calloc(ours + given + 1, sizeof *s->variables);
    if (!s->texts || !s->variables)
        return report_memory("pages", NULL);
    for (size_t i = 0; i < ours; i++)
        if (!add_variable(s, environ[i]))
            return report_memory("pages", NULL);
    for (size_t i = 0; i < given; i++) {
        if (!strchr(s->values.env.values[i], '='))
            return report_usage("pages", "--env %s: expected NAME=VALUE",
                                s->values.env.values[i]);
        if (!add_variable(s, s->values.env.values[i]))
            return report_memory("pages", NULL);
    }
    if (has_ours || given)
        s->options.variables = s->variables;
    return EXIT_FINE;
}

static int
read_journal_name(struct session *s)
{
    const char *name = s->values.journal ? s->values.journal : JOURNAL;
    const char *root = s->values.journal ? "" : s->root;
    size_t capacity = strlen(root) + strlen(name) + 1;
    s->journal = malloc(capacity);
    if (!s->journal)
        return report_memory("pages", NULL);
    snprintf(s->journal, capacity, "%s%s", root, name);
    return EXIT_FINE;
}

static int
check_values(const struct values *v)
{
    if (v->page_bytes & (v->page_bytes - 1))
        return report_usage("pages", "--page-size: expected a power of two, like 2MiB");
    if (v->journal && !*v->journal)
        return report_usage("pages", "--journal: expected a file's name");
    return root_check("pages", v->root);
}

static int
read_values(struct session *s)
{
    int code = check_values(&s->values);
    s->root = s->values.root ? s->values.root : "";
    s->options.root = s->root;
    s->options.node = (int32_t)s->values.node;
    s->options.page_bytes = s->values.page_bytes;
    s->options.process = s->values.pid;
    if (code == EXIT_FINE)
        code = read_purpose(s);
    if (code == EXIT_FINE)
        code = read_needs(s);
    if (code == EXIT_FINE)
        code = read_variables(s);
    return code == EXIT_FINE ? read_journal_name(s) : code;
}

/* --- what is shown ------------------------------------------------------------------------ */

/* Check that each operand is the ID of a finding. */
static int
check_ids(const struct session *s)
{
    for (size_t i = 0; i < s->operands.count; i++) {
        struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
        struct suggestion like = {.word = s->operands.values[i]};
        bool is_there = false;
        for (size_t j = 0; j < dry_doctor_get_finding_count(s->doctor); j++) {
            dry_doctor_get_finding(s->doctor, j, &f);
            suggestion_consider(&like, f.id);
            is_there = is_there || strcmp(f.id, like.word) == 0;
        }
        if (!is_there)
            return report_usage("pages", "there is no finding '%s'%s%s%s", like.word,
                                like.best ? "; did you mean '" : "",
                                like.best ? like.best : "", like.best ? "'?" : "");
    }
    return EXIT_FINE;
}

static struct doctor_report
make_report(const struct session *s)
{
    return (struct doctor_report){
        .doctor = s->doctor,
        .topology = s->topology ? dry_topology_get_view(s->topology) : NULL,
        .purpose = s->options.purpose,
        .root = s->root,
        .process = s->options.process,
        .needs_bytes = s->needs,
        .need_count = s->options.need_count,
        .ids = s->operands.values,
        .id_count = s->operands.count,
        .shows_good = s->values.all,
    };
}

static int
show(const struct session *s)
{
    struct doctor_report r = make_report(s);
    int code = EXIT_FINE;
    if (s->values.measure.json)
        code = doctor_report_print_json(&r);
    else if (!doctor_report_print(&r))
        code = report_memory("pages", NULL);
    if (code == EXIT_FINE && doctor_report_count(&r, DRY_DOCTOR_WRONG))
        code = EXIT_FOUND;
    return code;
}

/* --- what is changed ---------------------------------------------------------------------- */

/* Ask the user to confirm. Returns EXIT_FINE if the answer is yes. */
static int
ask(const struct session *s, const char *question)
{
    char answer[16] = "";
    if (s->values.yes)
        return EXIT_FINE;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return report_usage("pages", "nobody is there to be asked; --yes does it");
    printf("%s [y/N] ", question);
    fflush(stdout);
    if (!fgets(answer, sizeof answer, stdin) || (answer[0] != 'y' && answer[0] != 'Y')) {
        printf("nothing was changed\n");
        return EXIT_FOUND;
    }
    return EXIT_FINE;
}

/* Collect the changes of the chosen findings, as journal entries. */
static int
collect(const struct session *s, struct journal *changes)
{
    struct doctor_report r = make_report(s);
    struct dry_error err;
    for (size_t i = 0; i < dry_doctor_get_finding_count(s->doctor); i++) {
        struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
        dry_doctor_get_finding(s->doctor, i, &f);
        for (size_t j = 0; j < f.change_count && doctor_report_has(&r, f.id); j++) {
            struct dry_doctor_change c = DRY_INIT(struct dry_doctor_change);
            dry_doctor_get_change(s->doctor, f.first_change + j, &c);
            if (journal_add(changes, f.id, c.path, c.old_value, c.new_value, &err) !=
                DRY_OK)
                return report_error("pages", NULL, &err);
        }
    }
    return EXIT_FINE;
}

static void
print_entries(const struct journal *journal, bool is_back)
{
    for (size_t i = 0; i < journal->count; i++) {
        const struct journal_entry *e =
            &journal->entries[is_back ? journal->count - 1 - i : i];
        printf("%s: %s\n  %s -> %s\n", e->id, e->path,
               is_back ? e->new_value : e->old_value,
               is_back ? e->old_value : e->new_value);
    }
}

static int
open_journal(const struct session *s, struct doctor_files *files, struct journal *journal)
{
    struct dry_error err;
    doctor_files_init(files, s->root, s->journal);
    if (doctor_files_read_journal(files, journal, &err) != DRY_OK)
        return report_error("pages", s->journal, &err);
    return EXIT_FINE;
}

static void
print_counts(const struct apply_count *counts, const char *done)
{
    printf("%zu %s, %zu refused, %zu left alone\n", counts->done, done, counts->refused,
           counts->left);
}

static void
print_way_back(const struct session *s)
{
    printf("to go back: drystone pages --undo");
    if (*s->root) {
        printf(" --root ");
        term_print_text(stdout, s->root, strlen(s->root));
    }
    if (s->values.journal) {
        printf(" --journal ");
        term_print_text(stdout, s->journal, strlen(s->journal));
    }
    putchar('\n');
}

static int
write_changes(const struct session *s, const struct journal *changes)
{
    struct doctor_files files;
    struct journal journal = {0};
    struct apply_count counts;
    int code = open_journal(s, &files, &journal);
    if (code == EXIT_FINE)
        code = ask(s, "write these?");
    if (code == EXIT_FINE) {
        code = apply_changes(&files.table, &journal, changes->entries, changes->count,
                             stdout, &counts);
        print_counts(&counts, "written");
        if (journal.count)
            print_way_back(s);
    }
    journal_finish(&journal);
    return code;
}

static int
apply(const struct session *s)
{
    struct journal changes = {0};
    int code = collect(s, &changes);
    if (code == EXIT_FINE && changes.count == 0) {
        printf("there is nothing that a write mends\n");
    } else if (code == EXIT_FINE) {
        print_entries(&changes, false);
        code = write_changes(s, &changes);
    }
    journal_finish(&changes);
    return code;
}

static int
undo(const struct session *s)
{
    struct doctor_files files;
    struct journal journal = {0};
    struct apply_count counts;
    int code = open_journal(s, &files, &journal);
    if (code == EXIT_FINE && journal.count == 0) {
        printf("there is nothing to undo\n");
    } else if (code == EXIT_FINE) {
        print_entries(&journal, true);
        code = ask(s, "go back to these?");
        if (code == EXIT_FINE) {
            code = apply_undo(&files.table, &journal, stdout, &counts);
            print_counts(&counts, "undone");
        }
    }
    journal_finish(&journal);
    return code;
}

/* --- the command -------------------------------------------------------------------------- */

static int
examine(struct session *s)
{
    struct dry_error err;
    if (dry_doctor_create(&s->options, &s->doctor, &err) != DRY_OK) {
        bool is_refused = err.status == DRY_ERR_SYSTEM &&
                          (err.os_errno == EACCES || err.os_errno == EPERM);
        return is_refused ? report_failure("pages", NULL, EXIT_MACHINE, "%s", err.text)
                          : report_error("pages", NULL, &err);
    }
    int code = check_ids(s);
    if (code != EXIT_FINE)
        return code;
    if (s->values.apply)
        return apply(s);
    struct dry_topology_options options;
    dry_topology_options_init(&options);
    options.root = s->root;
    if (dry_topology_create(&options, &s->topology, &err) != DRY_OK)
        return report_error("pages", NULL, &err);
    return show(s);
}

static void
finish(struct session *s)
{
    dry_topology_destroy(s->topology);
    dry_doctor_destroy(s->doctor);
    for (size_t i = 0; i < s->text_count; i++)
        free(s->texts[i]);
    free(s->texts);
    free(s->variables);
    free(s->needs);
    free(s->journal);
}

static int
read_and_run(struct session *s)
{
    int code = read_values(s);
    if (code != EXIT_FINE)
        return code;
    if (s->values.undo && s->operands.count)
        return report_usage("pages", "--undo goes back with all, not with '%s' alone",
                            s->operands.values[0]);
    return s->values.undo ? undo(s) : examine(s);
}

static int
run(int argc, char **argv)
{
    struct session s = {.values = {.node = DRY_DOCTOR_ANY_NODE,
                                   .measure = {.bytes = UINT64_C(1) << 30, .rounds = 7}}};
    int code;
    dry_doctor_options_init(&s.options);
    if (options_parse(&command_pages, argc, argv, &s.values, &s.operands, &code)) {
        if (!s.values.bench)
            code = read_and_run(&s);
        else if (s.operands.count)
            code = report_usage("pages", "--bench measures all, not '%s' alone",
                                s.operands.values[0]);
        else
            code = pages_measure_run(&s.values.measure);
    }
    finish(&s);
    options_finish(&command_pages, &s.values, &s.operands);
    return code;
}

const struct command command_pages = {
    .name = "pages",
    .summary = "memory pages of this machine, what slows memory, and what mends it",
    .usage = "[options] [ID...]",
    .about = about_text,
    .examples = "drystone pages\n"
                "drystone pages --need '1024,1024,1024 float32' --node 0\n"
                "drystone pages --purpose cpu --env MALLOC_CONF=thp:always\n"
                "drystone pages --pid 4321\n"
                "drystone pages --apply thp-enabled\n"
                "drystone pages --undo\n"
                "drystone pages --bench --bytes 4GiB --rounds 15 --json\n"
                "drystone run --malloc jemalloc -- drystone pages --bench --only malloc "
                "--here\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
