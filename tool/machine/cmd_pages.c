/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone pages`: what pages this machine has, and what they and malloc give. */
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "base/root.h"
#include "machine/pages_bench.h"
#include "machine/pages_report.h"

#define BYTES_MIN (INT64_C(16) << 20)
#define BYTES_MAX (INT64_C(32) << 30) /* words are counted in 32 bits */

struct values {
    uint64_t bytes;
    int64_t rounds;
    const char *only, *root;
    bool here, json;
};

static const struct option_spec specs[] = {
    {"bytes", 0, "SIZE", OPTION_SIZE, offsetof(struct values, bytes),
     .help = "bench: of each kind of pages; default 1GiB", .min = BYTES_MIN,
     .max = BYTES_MAX},
    {"rounds", 0, "N", OPTION_INT, offsetof(struct values, rounds),
     .help = "bench: medians of so many; default 7", .min = 1, .max = BENCH_ROUNDS_MAX},
    {"only", 0, "WHAT", OPTION_STRING, offsetof(struct values, only),
     .help = "bench: pages or malloc alone"},
    {"here", 0, NULL, OPTION_FLAG, offsetof(struct values, here),
     .help = "bench --only malloc: that of this process alone"},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schemas drystone.pages/1 and drystone.pages-bench/1, see "
             "drystone-pages(1)"},
    {"root", 0, "DIR", OPTION_STRING, offsetof(struct values, root),
     .help = "list what the machine has whose /sys and /proc lie there"},
};

static const char about_text[] =
    "Lists the kinds and sizes of pages that this machine has, and the pools of huge "
    "ones. 'bench' measures what they give here: filling, random loads, locking, giving "
    "back; and what a tensor's memory costs under each malloc that 'drystone run' sets "
    "up. It takes about three minutes; nothing else should run.";

static int
measure(const struct values *v, const struct dry_topology_view *view)
{
    struct bench b = {
        .bytes = v->bytes,
        .rounds = (uint32_t)v->rounds,
        .thread_count = view->allowed_cpu_count ? view->allowed_cpu_count : 1,
    };
    bool has_pages = !v->only || strcmp(v->only, "pages") == 0;
    bool has_mallocs = !v->only || strcmp(v->only, "malloc") == 0;
    int code = EXIT_FINE;
    progress_begin(&b.progress, "measuring",
                   bench_count_steps(&b, has_pages, has_mallocs));
    if (has_pages)
        code = bench_measure_pages(&b);
    if (code == EXIT_FINE && has_mallocs)
        code = bench_measure_mallocs(&b);
    progress_end(&b.progress);
    if (code != EXIT_FINE)
        return code;
    return v->json ? pages_report_bench_json(&b, view) : pages_report_bench(&b, view);
}

static int
measure_here(bool is_json)
{
    double ns[BENCH_SIZES];
    int code = bench_measure_malloc(ns);
    return code == EXIT_FINE ? pages_report_here(ns, is_json) : code;
}

static int
look(const struct values *v, bool is_bench)
{
    struct dry_topology_options options;
    struct dry_topology *topology;
    struct dry_error err;
    dry_topology_options_init(&options);
    options.root = v->root;
    if (dry_topology_create(&options, &topology, &err) != DRY_OK)
        return report_error("pages", NULL, &err);
    const struct dry_topology_view *view = dry_topology_get_view(topology);
    int code = is_bench  ? measure(v, view)
               : v->json ? pages_report_list_json(view, v->root)
                         : pages_report_list(view, v->root);
    dry_topology_destroy(topology);
    return code;
}

static int
check(const struct values *v, const struct option_list *words, bool *is_bench)
{
    *is_bench = words->count > 0;
    if (words->count > 1 || (*is_bench && strcmp(words->values[0], "bench") != 0))
        return report_usage("pages", "expected nothing, or 'bench'");
    if (v->only && strcmp(v->only, "pages") != 0 && strcmp(v->only, "malloc") != 0)
        return report_usage("pages", "--only '%s': expected pages or malloc", v->only);
    if (v->here && (!v->only || strcmp(v->only, "malloc") != 0))
        return report_usage("pages", "--here is for --only malloc");
    if (!*is_bench && (v->only || v->here))
        return report_usage("pages", "--only is for 'bench'");
    if (*is_bench && *v->root)
        return report_usage("pages", "--root: another machine cannot be measured");
    return root_check("pages", v->root);
}

static int
run(int argc, char **argv)
{
    struct values values = {.bytes = UINT64_C(1) << 30, .rounds = 7, .root = ""};
    struct option_list words = {0};
    bool is_bench;
    int code;
    if (options_parse(&command_pages, argc, argv, &values, &words, &code)) {
        code = check(&values, &words, &is_bench);
        if (code == EXIT_FINE)
            code = values.here ? measure_here(values.json) : look(&values, is_bench);
    }
    options_finish(&command_pages, &values, &words);
    return code;
}

const struct command command_pages = {
    .name = "pages",
    .summary = "what pages of memory this machine has, and what they give",
    .usage = "[bench] [options]",
    .about = about_text,
    .examples = "drystone pages\n"
                "drystone pages bench\n"
                "drystone pages bench --bytes 4GiB --rounds 15 --json\n"
                "drystone run -m jemalloc -- drystone pages bench --only malloc --here\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
