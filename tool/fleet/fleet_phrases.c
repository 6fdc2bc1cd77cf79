/* SPDX-License-Identifier: Apache-2.0 */
/* The idea is in fleet_phrases.h. Sentences state facts and do not guess causes. */
#include "fleet/fleet_phrases.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/term.h"
#include "fleet/rank_name.h"

void
fleet_phrase_rank(const struct fleet_judgement *j, size_t file,
                  char text[FLEET_WHO_BYTES])
{
    uint32_t rank = j->ranks[file].rank;
    if (rank != RANK_UNKNOWN) {
        snprintf(text, FLEET_WHO_BYTES, "rank %" PRIu32, rank);
        return;
    }
    const char *slash = strrchr(j->ranks[file].path, '/');
    const char *name = slash ? slash + 1 : j->ranks[file].path;
    term_make_printable(text, FLEET_WHO_BYTES, name, strlen(name));
}

/* Append the ranks from `first` to `last`. False: the text would be too long. */
static bool
add_run(char text[FLEET_RANKS_BYTES], size_t *used, uint32_t first, uint32_t last)
{
    char run[32];
    if (first == last)
        snprintf(run, sizeof run, "%s%" PRIu32, *used ? ", " : "", first);
    else
        snprintf(run, sizeof run, "%s%" PRIu32 "-%" PRIu32, *used ? ", " : "", first,
                 last);
    size_t length = strlen(run);
    if (*used + length > 24) {
        memcpy(text + *used, " ...", 5);
        return false;
    }
    memcpy(text + *used, run, length + 1);
    *used += length;
    return true;
}

void
fleet_phrase_ranks(const struct fleet_judgement *j, const struct fleet_group *g,
                   char text[FLEET_RANKS_BYTES])
{
    uint32_t first = j->ranks[g->members[0]].rank;
    uint32_t last = j->ranks[g->members[g->count - 1]].rank, begin = first;
    size_t used = 0;
    snprintf(text, FLEET_RANKS_BYTES, "unknown");
    if (last == RANK_UNKNOWN)
        return;
    if (g->layout == FLEET_LAYOUT_EVERY) {
        snprintf(text, FLEET_RANKS_BYTES, "%" PRIu32 "-%" PRIu32 " by %" PRIu32, first,
                 last, g->stride);
        return;
    }
    for (size_t i = 1; i <= g->count; i++) {
        uint32_t before = j->ranks[g->members[i - 1]].rank;
        bool is_end = i == g->count || j->ranks[g->members[i]].rank != before + 1;
        if (is_end && !add_run(text, &used, begin, before))
            return;
        if (is_end && i < g->count)
            begin = j->ranks[g->members[i]].rank;
    }
}

/* --- findings ----------------------------------------------------------------------------- */

static void
say_of_rank(const struct fleet_judgement *j, const struct fleet_finding *f,
            char text[FLEET_TEXT_BYTES])
{
    char bytes[TERM_NUMBER_BYTES], usual[TERM_NUMBER_BYTES];
    const struct fleet_row *row = j->ranks[f->file].row;
    term_format_bytes(f->bytes, bytes);
    term_format_bytes(f->usual, usual);
    switch (f->kind) {
    case FLEET_FINDING_OOM:
        snprintf(text, FLEET_TEXT_BYTES,
                 "ran out of memory: asked for %s; the verdict is %s", bytes,
                 dry_cause_name(row->cause));
        break;
    case FLEET_FINDING_LEAK:
        snprintf(text, FLEET_TEXT_BYTES, "grows by %s a step, most of its group does not",
                 bytes);
        break;
    case FLEET_FINDING_MORE:
    case FLEET_FINDING_LESS:
        snprintf(text, FLEET_TEXT_BYTES, "holds %s, the median of its group %s", bytes,
                 usual);
        break;
    case FLEET_FINDING_PEAK:
        snprintf(
            text, FLEET_TEXT_BYTES,
            "has a peak of %s, the median of its group %s, and no one line tells why",
            bytes, usual);
        break;
    case FLEET_FINDING_ALONE:
        snprintf(text, FLEET_TEXT_BYTES, "holds alike with no other rank; its peak is %s",
                 bytes);
        break;
    case FLEET_FINDING_DEVICE:
        snprintf(text, FLEET_TEXT_BYTES,
                 "was recorded on device %" PRIu64
                 ", the other ranks' rule says %" PRIu64,
                 f->bytes, f->usual);
        break;
    case FLEET_FINDING_OTHER_DEVICE:
        snprintf(text, FLEET_TEXT_BYTES,
                 "holds %s on device %" PRIu32 ", too, besides its own %" PRIu32, bytes,
                 row->others[0].device, row->device);
        break;
    case FLEET_FINDING_RETRIES:
        snprintf(text, FLEET_TEXT_BYTES,
                 "was full: %" PRIu64 " request%s served on a retry alone", f->bytes,
                 f->bytes == 1 ? " was" : "s were");
        break;
    case FLEET_FINDING_GROUP:
    case FLEET_FINDING_GROWS:
        text[0] = '\0'; /* never about a single rank */
        break;
    }
}

void
fleet_phrase_finding(const struct fleet_judgement *j, const struct fleet_finding *f,
                     char text[FLEET_TEXT_BYTES])
{
    char bytes[TERM_NUMBER_BYTES], usual[TERM_NUMBER_BYTES], ranks[FLEET_RANKS_BYTES];
    if (f->file != FLEET_NONE) {
        say_of_rank(j, f, text);
        return;
    }
    fleet_phrase_ranks(j, &j->groups[f->group], ranks);
    term_format_bytes(f->bytes, bytes);
    term_format_bytes(f->usual, usual);
    if (f->kind == FLEET_FINDING_GROUP)
        snprintf(text, FLEET_TEXT_BYTES,
                 "(ranks %s) reserves %s at its peak, the median of the groups %s", ranks,
                 bytes, usual);
    else
        snprintf(text, FLEET_TEXT_BYTES,
                 "(ranks %s) grows in most of its ranks, by up to %s a step", ranks,
                 bytes);
}

/* --- layout ------------------------------------------------------------------------------- */

void
fleet_phrase_layout(const struct fleet_judgement *j, char text[FLEET_TEXT_BYTES])
{
    size_t runs = 0, every = 0, large = 0;
    for (size_t g = 0; g < j->group_count; g++) {
        large += j->groups[g].count > 1;
        runs += j->groups[g].layout == FLEET_LAYOUT_RUN;
        every += j->groups[g].layout == FLEET_LAYOUT_EVERY;
    }
    text[0] = '\0';
    if (j->group_count == 1 && large == 1)
        snprintf(
            text, FLEET_TEXT_BYTES,
            "All ranks hold alike, as data-parallel ranks do, and tensor-parallel ones "
            "with equal shards: what they hold does not tell these apart.");
    else if (large > 1 && runs == large)
        snprintf(text, FLEET_TEXT_BYTES,
                 "Each group is a run of ranks, as pipeline stages are. Stages that hold "
                 "alike are one group.");
    else if (large > 1 && every == large)
        snprintf(text, FLEET_TEXT_BYTES,
                 "Each group is ranks that lie evenly apart, as the ranks of one "
                 "tensor-parallel or expert-parallel place do.");
}
