/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any text as a row of a store, and as a search. A row that is taken is judged beside copies
 * of itself: no number in it brings the judge down.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "fleet/fleet_judge.h"
#include "fleet/fleet_settings.h"

#define RANKS 9u

static void
judge_row(const struct fleet_row *row)
{
    struct fleet_judgement j;
    struct fleet_row rows[RANKS];
    struct fleet_rank ranks[RANKS];
    size_t files[FLEET_DECIDERS_MAX];
    for (uint32_t i = 0; i < RANKS; i++) {
        rows[i] = *row;
        rows[i].hash += i;
        rows[i].line_count -= rows[i].line_count && i == 4 ? 1 : 0;
        ranks[i] = (struct fleet_rank){"x", i * (row->device % 5 + 1), &rows[i]};
    }
    if (fleet_judge(&j, ranks, RANKS))
        fleet_settings_choose(&j, files);
    fleet_judge_finish(&j);
}

static void
decide_search(const struct fleet_search *search)
{
    const struct dry_candidate *proposals[FLEET_PROPOSALS_MAX];
    struct fleet_search searches[] = {*search, *search};
    struct fleet_decision decision;
    searches[1].candidate_count /= 2;
    fleet_settings_propose(searches, 2, proposals);
    fleet_settings_decide(searches, 2, &decision);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fleet_row row;
    struct fleet_search search;
    struct dry_error err;
    if (fleet_row_read((const char *)data, size, &row, &err) == DRY_OK)
        judge_row(&row);
    fleet_row_finish(&row);
    if (fleet_settings_read((const char *)data, size, &search, &err) == DRY_OK)
        decide_search(&search);
    fleet_settings_finish(&search);
    return 0;
}
