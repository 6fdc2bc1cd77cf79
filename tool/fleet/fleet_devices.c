/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find the rule that assigns ranks to devices, and the ranks that break it. Either rank r
 * is on device r modulo n (n ranks a host), or all ranks are on one device, because each
 * process sees only its own. Also find the first failure by the clocks of the hosts.
 */
#include <stdlib.h>

#include "fleet/fleet_inside.h"
#include "fleet/rank_name.h"

#define RANKS_MIN 4                              /* known ranks that a rule needs */
#define A_HOST_MAX 64                            /* devices of a host */
#define WALL_CLOCK_US UINT64_C(1000000000000000) /* September 2001: less is since boot */

/* --- devices ------------------------------------------------------------------------------ */

static bool
is_known(const struct fleet_judgement *j, size_t file)
{
    return j->members[file].use == FLEET_USED && j->ranks[file].rank != RANK_UNKNOWN;
}

/* Count the ranks whose device is `device`; if `a_host` is set, rank modulo a_host. */
static size_t
count_right(const struct fleet_judgement *j, uint32_t a_host, uint32_t device)
{
    size_t count = 0;
    for (size_t i = 0; i < j->count; i++) {
        uint32_t expected = a_host ? j->ranks[i].rank % a_host : device;
        count += is_known(j, i) && j->ranks[i].row->device == expected;
    }
    return count;
}

/* Return the most common device among the first A_HOST_MAX known ranks. */
static uint32_t
find_usual_device(const struct fleet_judgement *j)
{
    uint32_t best = 0;
    size_t best_count = 0, tried = 0;
    for (size_t i = 0; i < j->count && tried < A_HOST_MAX; i++) {
        if (!is_known(j, i))
            continue;
        tried++;
        size_t count = count_right(j, 0, j->ranks[i].row->device);
        if (count > best_count) {
            best = j->ranks[i].row->device;
            best_count = count;
        }
    }
    return best;
}

/* Find the rule that most ranks follow. At least nine of ten ranks must follow it. */
static uint32_t
find_rule(struct fleet_judgement *j)
{
    uint32_t device = find_usual_device(j);
    size_t best = count_right(j, 0, device), known = 0;
    for (size_t i = 0; i < j->count; i++)
        known += is_known(j, i);
    for (uint32_t n = 2; n <= A_HOST_MAX; n++) {
        size_t count = count_right(j, n, 0);
        if (count > best) {
            best = count;
            j->devices_a_host = n;
        }
    }
    j->has_device_rule = known >= RANKS_MIN && best * 10 >= known * 9;
    return device;
}

static bool
add_devices(struct fleet_judgement *j)
{
    uint32_t device = find_rule(j);
    for (size_t i = 0; i < j->count && j->has_device_rule; i++) {
        uint32_t rule = j->devices_a_host;
        struct fleet_finding finding = {.kind = FLEET_FINDING_DEVICE,
                                        .file = i,
                                        .group = j->members[i].group,
                                        .bytes = j->ranks[i].row->device,
                                        .usual = rule ? j->ranks[i].rank % rule : device,
                                        .line = ""};
        if (is_known(j, i) && finding.bytes != finding.usual &&
            !fleet_judge_add(j, &finding))
            return false;
    }
    return true;
}

/* Report a second device as a mistake only if fewer than half of the ranks have one. */
static bool
add_others(struct fleet_judgement *j)
{
    size_t with = 0;
    for (size_t i = 0; i < j->count; i++)
        with += j->members[i].use == FLEET_USED && j->ranks[i].row->other_count > 0;
    for (size_t i = 0; i < j->count && with * 2 < j->used_count; i++) {
        const struct fleet_row *row = j->ranks[i].row;
        struct fleet_finding finding = {.kind = FLEET_FINDING_OTHER_DEVICE,
                                        .file = i,
                                        .group = j->members[i].group,
                                        .line = ""};
        if (j->members[i].use != FLEET_USED || row->other_count == 0)
            continue;
        finding.bytes = row->others[0].reserved_bytes;
        if (!fleet_judge_add(j, &finding))
            return false;
    }
    return true;
}

/* --- the first failure -------------------------------------------------------------------- */

static void
find_first_failure(struct fleet_judgement *j)
{
    bool all_timed = true;
    for (size_t i = 0; i < j->count; i++) {
        const struct fleet_oom *oom = &j->ranks[i].row->oom;
        if (j->members[i].use == FLEET_USED && oom->is_there)
            all_timed &= oom->has_time && oom->time_us >= WALL_CLOCK_US;
    }
    for (size_t i = 0; i < j->count; i++) {
        const struct fleet_oom *oom = &j->ranks[i].row->oom;
        if (j->members[i].use != FLEET_USED || !oom->is_there)
            continue;
        if (j->first_failure == FLEET_NONE ||
            (all_timed && oom->time_us < j->ranks[j->first_failure].row->oom.time_us))
            j->first_failure = i;
    }
    j->is_first_by_clock = all_timed && j->first_failure != FLEET_NONE;
}

bool
fleet_judge_devices(struct fleet_judgement *j)
{
    find_first_failure(j);
    return add_devices(j) && add_others(j);
}
