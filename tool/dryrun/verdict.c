/* SPDX-License-Identifier: Apache-2.0 */
/* The idea stands in verdict.h. Cost: a replay a card, each O(events). */
#include "dryrun/verdict.h"

#include <stdlib.h>

#include "base/command.h"
#include "base/report.h"
#include "record/load.h"

static size_t
count_cards(void)
{
    size_t count = 0;
    while (dry_card_get(count))
        count++;
    return count;
}

static enum dry_status
replay_on(struct dry_replay *replay, struct dry_verdict_card *row, struct dry_error *err)
{
    struct dry_run_options options;
    struct dry_run run;
    dry_run_options_init(&options);
    options.begin_anew = true;
    options.capacity_bytes = row->room;
    enum dry_status status = dry_replay_run(replay, &options, &run, err);
    if (status != DRY_OK)
        return status;
    row->fits = !run.oom;
    row->reserved = run.reserved_peak_bytes;
    row->retries = (uint64_t)run.stats.num_alloc_retries;
    return DRY_OK;
}

static int
replay_cards(struct dry_verdict *v, const char *command, const char *path,
             struct dry_replay *replay)
{
    struct dry_error err;
    v->cards = calloc(count_cards() + 1, sizeof *v->cards);
    if (!v->cards)
        return report_failure(command, path, EXIT_MACHINE, "no memory");
    for (; dry_card_get(v->card_count); v->card_count++) {
        struct dry_verdict_card *row = &v->cards[v->card_count];
        row->card = dry_card_get(v->card_count);
        row->room = row->card->usable_bytes - row->card->context_bytes;
        if (replay_on(replay, row, &err) != DRY_OK)
            return report_error(command, path, &err);
    }
    return EXIT_FINE;
}

int
dry_verdict_make(struct dry_verdict *v, const char *command, const char *path)
{
    struct dry_trace *trace = NULL;
    struct dry_replay *replay = NULL;
    struct progress progress;
    *v = (struct dry_verdict){0};
    int code = load_trace(command, path, &trace, NULL);
    if (code != EXIT_FINE)
        return code;
    progress_begin(&progress, "replaying on other cards", 0);
    const struct load_replay wanted = {.command = command,
                                       .path = path,
                                       .device = LOAD_BUSIEST_DEVICE,
                                       .progress = &progress};
    code = load_replay(&wanted, trace, &replay);
    if (code == EXIT_FINE) {
        v->check = *dry_replay_get_check(replay);
        v->recorded = *dry_replay_get_recorded(replay);
        v->has_oom = v->recorded.oom;
        /* what it would have asked for after a failure nobody knows */
        code = v->has_oom ? EXIT_FINE : replay_cards(v, command, path, replay);
    }
    progress_end(&progress);
    v->recorded.conf = v->recorded.conf_problem = ""; /* theirs, and gone now */
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
    return code;
}

void
dry_verdict_finish(struct dry_verdict *verdict)
{
    free(verdict->cards);
    *verdict = (struct dry_verdict){0};
}
