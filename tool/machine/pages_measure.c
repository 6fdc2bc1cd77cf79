/* SPDX-License-Identifier: Apache-2.0 */
/* See pages_measure.h. */
#include "machine/pages_measure.h"

#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "machine/pages_bench.h"
#include "machine/pages_report.h"

static int
measure(const struct pages_measure *v, const struct dry_topology_view *view)
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
measure_machine(const struct pages_measure *v)
{
    struct dry_topology_options options;
    struct dry_topology *topology;
    struct dry_error err;
    dry_topology_options_init(&options);
    if (dry_topology_create(&options, &topology, &err) != DRY_OK)
        return report_error("pages", NULL, &err);
    int code = measure(v, dry_topology_get_view(topology));
    dry_topology_destroy(topology);
    return code;
}

int
pages_measure_run(const struct pages_measure *v)
{
    if (v->only && strcmp(v->only, "pages") != 0 && strcmp(v->only, "malloc") != 0)
        return report_usage("pages", "--only '%s': expected pages or malloc", v->only);
    if (v->here && (!v->only || strcmp(v->only, "malloc") != 0))
        return report_usage("pages", "--here is for --only malloc");
    return v->here ? measure_here(v->json) : measure_machine(v);
}
