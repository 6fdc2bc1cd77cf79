/* SPDX-License-Identifier: Apache-2.0 */
/* See exporter.h. */
#include "exporter/exporter.h"

#include "base/now.h"

bool
exporter_init(struct exporter *exporter, const struct exporter_options *options)
{
    *exporter = (struct exporter){.bounds = options->bounds};
    exporter->watch = watch_create(&options->watch);
    return exporter->watch;
}

void
exporter_finish(struct exporter *exporter)
{
    watch_destroy(exporter->watch);
    exporter->watch = NULL;
}

/* Add the counts of programs that ended: they may have ended since the last scrape, and
   their own series are gone. */
static void
count_ended(struct exporter *e)
{
    for (size_t i = 0; i < e->watch->process_count; i++) {
        const struct watch_process *p = e->watch->processes[i];
        if (p->state != WATCH_ENDED)
            continue;
        e->counts.ended_programs++;
        for (size_t n = 0; n < p->source_count; n++) {
            e->counts.ended_retries += p->sources[n].published.figures.retries;
            e->counts.ended_ooms += p->sources[n].published.figures.ooms;
        }
    }
}

bool
exporter_sample(struct exporter *exporter, double age_s)
{
    double begun = (double)now_ns(CLOCK_MONOTONIC) / 1e9;
    if (exporter->counts.samples > 0 && begun - exporter->sampled_s < age_s)
        return false;
    (void)watch_sample(exporter->watch); /* if memory ran out, the watch is incomplete */
    count_ended(exporter);
    exporter->sampled_s = (double)now_ns(CLOCK_MONOTONIC) / 1e9;
    exporter->counts.sample_seconds = exporter->sampled_s - begun;
    exporter->counts.samples++;
    return true;
}
