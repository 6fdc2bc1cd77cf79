/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone run`: start a program with the settings under which its memory is fastest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "base/root.h"
#include "base/term.h"
#include "run/run_plan.h"
#include "run/run_report.h"
#include "run/run_start.h"
#include "run/run_watch.h"

struct values {
    const char *node, *membind, *malloc, *profile, *thp, *omp_threads, *root;
    const char *allocator, *allocator_conf, *on_oom;
    bool interleave, omp_bind, watch, prove, strict, quiet, dry_run, json;
};

#define AT(member) offsetof(struct values, member)

static const struct option_spec specs[] = {
    {"node", 'N', "WHERE", OPTION_STRING, AT(node),
     .help = "where CPUs and memory are bound: a node's number, gpu:K for the node of a "
             "GPU, auto (default), none"},
    {"membind", 0, "HOW", OPTION_STRING, AT(membind),
     .help =
         "prefer (default): memory of other nodes when the node is full; strict: none"},
    {"interleave", 0, NULL, OPTION_FLAG, AT(interleave),
     .help = "spread memory pages over all nodes"},
    {"malloc", 0, "NAME", OPTION_STRING, AT(malloc),
     .help = "auto (default), jemalloc, tcmalloc, mimalloc, glibc, keep"},
    {"profile", 0, "NAME", OPTION_STRING, AT(profile),
     .help = "how malloc keeps memory: balanced (default), throughput, many-workers"},
    {"thp", 0, "HOW", OPTION_STRING, AT(thp),
     .help = "transparent huge pages: auto (default), always, advised, never, keep"},
    {"omp-threads", 0, "N", OPTION_STRING, AT(omp_threads),
     .help = "OpenMP's threads: a number, auto (default): a core each, keep"},
    {"omp-bind", 0, NULL, OPTION_FLAG, AT(omp_bind),
     .help = "bind OpenMP's threads to cores; not for programs that fork workers"},
    {"allocator", 0, "NAME", OPTION_STRING, AT(allocator),
     .help = "PyTorch's allocator on the GPU: paged, ours, or torch, with PyTorch's "
             "decisions"},
    {"allocator-conf", 0, "STR", OPTION_STRING, AT(allocator_conf),
     .help = "its options, see drystone-pool(5)",
     .needs = {"allocator", "for --allocator alone"}},
    {"on-oom", 0, "FILE", OPTION_STRING, AT(on_oom),
     .help =
         "when the GPU's memory runs out: a snapshot to FILE, and the verdict; {rank} "
         "and {pid} are replaced"},
    {"watch", 0, NULL, OPTION_FLAG, AT(watch),
     .help = "PyTorch's memory on the GPU is shown in a live page, see drystone-run(1)"},
    {"prove", 0, NULL, OPTION_FLAG, AT(prove),
     .help = "watch the program, and say afterwards what of this took effect"},
    {"strict", 0, NULL, OPTION_FLAG, AT(strict),
     .help = "with --prove: end with 1 if something did not, and the program with 0",
     .needs = {"prove", "for --prove alone"}},
    {"quiet", 'q', NULL, OPTION_FLAG, AT(quiet), .help = "do not print what is set"},
    {"dry-run", 0, NULL, OPTION_FLAG, AT(dry_run),
     .help = "print what would be set, start nothing"},
    {"json", 0, NULL, OPTION_FLAG, AT(json),
     .help = "with --dry-run: print JSON, schema drystone.run/1, see drystone-run(1)",
     .needs = {"dry-run", "for --dry-run alone"}},
    {"root", 0, "DIR", OPTION_STRING, AT(root),
     .help = "with --dry-run: a folder with another machine's /sys, /proc and libraries",
     .needs = {"dry-run", "for --dry-run alone"}},
};

static const char about_text[] =
    "Starts PROGRAM bound to CPUs and memory near its GPU, with a malloc that keeps "
    "large blocks, with huge pages and a fitting number of threads, and if wanted with "
    "our allocator in PyTorch. What is set already is respected. What is set is printed "
    "on standard error; --prove looks whether it "
    "took effect.";

/* --- the command line --------------------------------------------------------------------- */

/* Return the index of a word in a NULL-terminated list. Returns -1 after an error message
   if the word is not in the list. */
static int
find_word(const char *option, const char *word, const char *const *arguments)
{
    struct suggestion s = {.word = word};
    for (int i = 0; arguments[i]; i++) {
        if (strcmp(word, arguments[i]) == 0)
            return i;
        suggestion_consider(&s, arguments[i]);
    }
    if (s.best)
        report_usage("run", "%s '%s': did you mean '%s'?", option, word, s.best);
    else
        report_usage("run", "%s '%s': expected one of those in the help", option, word);
    return -1;
}

static bool
read_malloc(const char *word, struct run_options *to)
{
    static const char *const arguments[] = {"auto",     "keep",     "glibc", "jemalloc",
                                            "tcmalloc", "mimalloc", NULL};
    int i = find_word("--malloc", word, arguments);
    to->malloc_choice = i <= 0   ? RUN_CHOOSE_AUTO
                        : i == 1 ? RUN_CHOOSE_KEEP
                                 : RUN_CHOOSE_ONE;
    to->malloc = i > 1 ? (enum run_malloc)(RUN_MALLOC_GLIBC + i - 2) : RUN_MALLOC_NONE;
    return i >= 0;
}

static bool
read_omp(const char *word, struct run_options *to)
{
    if (strcmp(word, "auto") == 0 || strcmp(word, "keep") == 0) {
        to->omp_choice = word[0] == 'a' ? RUN_CHOOSE_AUTO : RUN_CHOOSE_KEEP;
        return true;
    }
    char *end;
    errno = 0;
    unsigned long n = strtoul(word, &end, 10);
    if (errno || *end || word[0] < '1' || word[0] > '9' || n > 1000000) {
        report_usage("run", "--omp-threads '%s': expected auto, keep or a number", word);
        return false;
    }
    to->omp_choice = RUN_CHOOSE_ONE;
    to->omp_threads = (uint32_t)n;
    return true;
}

static bool
read_allocator(const struct values *v, struct run_options *to)
{
    static const char *const arguments[] = {"paged", "torch", NULL};
    if (v->allocator && find_word("--allocator", v->allocator, arguments) < 0)
        return false;
    if (v->on_oom && !*v->on_oom) {
        report_usage("run", "--on-oom: a file's name is empty");
        return false;
    }
    to->allocator = v->allocator;
    to->allocator_conf = v->allocator_conf;
    to->on_oom = v->on_oom;
    to->watches = v->watch;
    return true;
}

static bool
read_options(const struct values *v, struct run_options *to)
{
    static const char *const profiles[] = {"balanced", "throughput", "many-workers",
                                           NULL};
    static const char *const thps[] = {"auto",  "always", "advised",
                                       "never", "keep",   NULL};
    static const char *const membinds[] = {"prefer", "strict", NULL};
    int profile = find_word("--profile", v->profile, profiles);
    int thp = profile < 0 ? -1 : find_word("--thp", v->thp, thps);
    int membind = thp < 0 ? -1 : find_word("--membind", v->membind, membinds);
    if (membind < 0 || !read_malloc(v->malloc, to) || !read_omp(v->omp_threads, to) ||
        !read_allocator(v, to))
        return false;
    to->node = v->node;
    to->interleaves = v->interleave;
    to->is_strict = membind == 1;
    to->profile = (enum run_profile)profile;
    to->thp = (enum run_thp)thp;
    to->binds_omp = v->omp_bind;
    return true;
}

static int
check_values(const struct values *v, size_t word_count)
{
    if (word_count == 0 && !v->dry_run)
        return report_usage("run", "no program is given");
    if (v->interleave && strcmp(v->membind, "strict") == 0)
        return report_usage("run",
                            "--interleave and --membind strict exclude each other");
    return root_check("run", v->root);
}

/* --- the work ----------------------------------------------------------------------------- */

static int
start(const struct values *v, struct run_plan *plan, const struct option_list *arguments)
{
    char **argv = calloc(arguments->count + 1, sizeof *argv);
    if (!argv)
        return report_memory("run", NULL);
    for (size_t i = 0; i < arguments->count; i++)
        /* the cast is safe: exec does not modify the words */
        argv[i] = (char *)(uintptr_t)arguments->values[i];
    bool is_strict = plan->memory_mode == RUN_MEMORY_BIND;
    run_apply(plan);
    if (is_strict && plan->memory_mode != RUN_MEMORY_BIND) {
        free(argv);
        return report_failure("run", NULL, EXIT_MACHINE,
                              "--membind strict: the system refuses it");
    }
    if (!v->quiet)
        run_report_plan(plan, stderr);
    int code;
    if (v->prove) {
        code = run_watch(plan, argv, v->strict);
    } else {
        run_set_variables(plan);
        code = run_become(argv);
        report_failure("run", argv[0], (enum exit_code)code, "%s", strerror(errno));
    }
    free(argv);
    return code;
}

static int
plan_and_run(const struct values *v, const struct run_options *options,
             const struct dry_topology *topology, const struct option_list *arguments)
{
    struct run_machine *machine = calloc(1, sizeof *machine);
    struct run_plan *plan = calloc(1, sizeof *plan);
    struct run_refusal refusal;
    int code;
    if (!machine || !plan) {
        code = report_memory("run", NULL);
    } else {
        run_machine_read(machine, topology, v->root);
        run_plan_make(plan, options, machine, &refusal);
        code = refusal.exit_code;
        if (code != EXIT_FINE)
            report_failure("run", NULL, (enum exit_code)code, "%s", refusal.text);
        else if (!v->dry_run)
            code = start(v, plan, arguments);
        else if (v->json)
            code = run_report_json(plan, arguments->values, arguments->count);
        else
            run_report_plan(plan, stdout);
    }
    free(machine);
    free(plan);
    return code;
}

static int
detect_and_run(const struct values *v, const struct run_options *options,
               const struct option_list *arguments)
{
    struct dry_topology_options topology_options;
    struct dry_topology *topology;
    struct dry_error err;
    dry_topology_options_init(&topology_options);
    topology_options.root = v->root;
    if (dry_topology_create(&topology_options, &topology, &err) != DRY_OK)
        return report_error("run", NULL, &err);
    int code = plan_and_run(v, options, topology, arguments);
    dry_topology_destroy(topology);
    return code;
}

static int
run(int argc, char **argv)
{
    struct values values = {
        .node = "auto",
        .membind = "prefer",
        .malloc = "auto",
        .profile = "balanced",
        .thp = "auto",
        .omp_threads = "auto",
        .root = "",
    };
    struct run_options options = {.node = NULL};
    struct option_list arguments = {0};
    int code;
    if (options_parse(&command_run, argc, argv, &values, &arguments, &code)) {
        code = check_values(&values, arguments.count);
        if (code == EXIT_FINE)
            code = read_options(&values, &options)
                       ? detect_and_run(&values, &options, &arguments)
                       : EXIT_USAGE;
    }
    options_finish(&command_run, &values, &arguments);
    return code;
}

const struct command command_run = {
    .name = "run",
    .summary = "start a program near its GPU, with a fast malloc and memory pages",
    .usage = "[options] [--] PROGRAM [ARGUMENTS]",
    .about = about_text,
    .examples = "drystone run -- python train.py\n"
                "drystone run --node gpu:2 --membind strict -- python serve.py\n"
                "drystone run --malloc jemalloc --profile throughput --prove -- ./bench\n"
                "drystone run --allocator paged --on-oom oom.pickle -- python train.py\n"
                "drystone run --watch -- torchrun --nproc-per-node 8 train.py\n"
                "drystone run --dry-run\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .stops_at_operand = true,
    .run = run,
};
