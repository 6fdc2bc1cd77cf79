/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in pickle_run.h. Cost: a comparison of bytes for a known run, a lookup per
 * fetch for a new one. Memory: RUN_BYTES_KEPT and the table of sets.
 */
#include "trace/pickle/pickle_run.h"

#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle.h"
#include "trace/pickle/pickle_object.h"

#define RUN_BYTES_KEPT ((size_t)4 << 20)
#define HEAD_BYTES 16u /* the begin of a run, hashed to choose its set */
#define SET_COUNT 1024u
#define SET_RUNS 8u
#define RUN_COUNT (SET_COUNT * SET_RUNS)

/* --- known runs --------------------------------------------------------------------------- */

/* Compare a run with the bytes at `p`. Each ends with APPENDS, so none is a prefix. */
static bool
is_run(const struct dryi_pickle_runs *r, const struct dryi_pickle_run *run,
       const unsigned char *p, size_t count)
{
    return run->era == r->era && run->length <= count &&
           memcmp(p, r->bytes + run->from, run->length) == 0;
}

static struct dryi_pickle_run *
find_set(const struct dryi_pickle_runs *r, const unsigned char *p)
{
    uint64_t words[HEAD_BYTES / sizeof(uint64_t)];
    memcpy(words, p, sizeof words);
    uint64_t hash = dryi_mix64(words[0] ^ dryi_mix64(words[1]));
    return r->runs + hash % SET_COUNT * SET_RUNS;
}

static struct dryi_pickle_run *
find_run(struct dryi_pickle_runs *r, const unsigned char *p, size_t count)
{
    if (r->last && r->last->next != DRY_NONE &&
        is_run(r, &r->runs[r->last->next], p, count))
        return &r->runs[r->last->next];
    struct dryi_pickle_run *set = find_set(r, p);
    for (size_t i = 0; i < SET_RUNS; i++)
        if (is_run(r, &set[i], p, count))
            return &set[i];
    return NULL;
}

static void
note_run(struct dryi_pickle_runs *r, struct dryi_pickle_run *run)
{
    if (r->last)
        r->last->next = (uint32_t)(run - r->runs);
    r->last = run;
}

void
dryi_run_forget(struct dryi_pickle_walk *w)
{
    w->runs.era++;
    w->runs.byte_count = 0;
    w->runs.last = NULL;
}

/*
 * Store a run. A set's slots are overwritten in turn: if that drops a frequent run, it is
 * stored again soon.
 */
static enum dry_status
keep_run(struct dryi_pickle_walk *w, const unsigned char *p, size_t length,
         uint32_t stack)
{
    struct dryi_pickle_runs *r = &w->runs;
    if (r->byte_count + length > RUN_BYTES_KEPT)
        dryi_run_forget(w);
    if (!dryi_memory_grow(&w->memory, &r->bytes, &r->byte_capacity,
                          r->byte_count + length, 1))
        return dryi_fail_memory(w->err, "the stacks");
    struct dryi_pickle_run *run = find_set(r, p) + r->turn++ % SET_RUNS;
    *run = (struct dryi_pickle_run){.from = (uint32_t)r->byte_count,
                                    .length = (uint32_t)length,
                                    .stack = stack,
                                    .next = DRY_NONE,
                                    .era = r->era};
    memcpy(r->bytes + r->byte_count, p, length);
    r->byte_count += length;
    note_run(r, run);
    return DRY_OK;
}

/* --- new runs ----------------------------------------------------------------------------- */

/*
 * Read the frames of the run at `p` into w->frame_ids. Returns its bytes, 0 if it is not
 * a whole run of frames.
 */
static size_t
read_run(struct dryi_pickle_walk *w, const unsigned char *p, size_t count,
         size_t *frame_count)
{
    const unsigned char *at = p,
                        *end =
                            p + (count < DRYI_RUN_BYTES_MAX ? count : DRYI_RUN_BYTES_MAX);
    size_t frames = 0;
    while (end - at > (ptrdiff_t)DRYI_RUN_LOOKAHEAD_BYTES && *at != DRYI_OP_APPENDS) {
        bool is_long = *at == DRYI_OP_LONG_BINGET;
        size_t index = is_long ? dryi_pickle_u32(at + 1) : at[1];
        if ((!is_long && *at != DRYI_OP_BINGET) || index >= w->memo_count ||
            !dryi_value_is(w->memo[index], DRYI_VALUE_FRAME))
            return 0;
        w->frame_ids[frames++] = (uint32_t)dryi_value_payload(w->memo[index]);
        at += is_long ? 5 : 2;
    }
    *frame_count = frames;
    return end > at && *at == DRYI_OP_APPENDS ? (size_t)(at - p) + 1 : 0;
}

static enum dry_status
prepare(struct dryi_pickle_walk *w)
{
    struct dryi_pickle_runs *r = &w->runs;
    if (!r->runs) {
        r->runs = dryi_memory_zalloc(&w->memory, RUN_COUNT, sizeof *r->runs);
        if (!r->runs)
            return dryi_fail_memory(w->err, "the stacks");
        r->era = 1; /* never-filled runs have era 0 */
    }
    if (!dryi_memory_grow(&w->memory, &w->frame_ids, &w->frame_id_capacity,
                          DRYI_RUN_BYTES_MAX / 2, sizeof *w->frame_ids))
        return dryi_fail_memory(w->err, "a stack");
    return DRY_OK;
}

static enum dry_status
learn_run(struct dryi_pickle_walk *w, const unsigned char *p, size_t count,
          uint32_t *stack, size_t *length)
{
    enum dry_status status = prepare(w);
    size_t frame_count = 0;
    *length = status == DRY_OK ? read_run(w, p, count, &frame_count) : 0;
    if (frame_count == 0)
        *length = 0; /* an empty list: only APPENDS */
    if (*length == 0)
        return status;
    *stack = dryi_intern_put(&w->trace->stacks, w->frame_ids,
                             frame_count * sizeof *w->frame_ids);
    if (*stack == DRYI_INTERN_NONE)
        return dryi_fail_memory(w->err, "a stack");
    return *length < HEAD_BYTES ? DRY_OK : keep_run(w, p, *length, *stack);
}

/* --- taking a run ------------------------------------------------------------------------- */

/* Return true if the opcode at `p` ends the list: its dict's next key, or SETITEMS. */
static bool
is_list_done(const struct dryi_pickle_walk *w, const unsigned char *p)
{
    if (*p == DRYI_OP_SETITEMS || *p == DRYI_OP_SHORT_BINUNICODE ||
        *p == DRYI_OP_BINUNICODE)
        return true;
    if (*p != DRYI_OP_BINGET && *p != DRYI_OP_LONG_BINGET)
        return false;
    size_t index = *p == DRYI_OP_LONG_BINGET ? dryi_pickle_u32(p + 1) : p[1];
    return index < w->memo_count && dryi_value_is(w->memo[index], DRYI_VALUE_STRING);
}

static bool
is_new_list(const struct dryi_pickle_walk *w, uint64_t value)
{
    if (!dryi_value_is(value, DRYI_VALUE_LIST))
        return false;
    const struct dryi_object *list = dryi_object_get(w, value);
    return list->count == 0 && list->row_kind == DRYI_VALUE_NONE && !list->settled &&
           !list->is_shared && !list->is_sealed;
}

enum dry_status
dryi_run_read(struct dryi_pickle_walk *w, const unsigned char *p, size_t count,
              uint32_t *stack, size_t *length)
{
    struct dryi_pickle_run *run = w->runs.runs ? find_run(&w->runs, p, count) : NULL;
    if (!run)
        return learn_run(w, p, count, stack, length);
    note_run(&w->runs, run);
    *length = run->length;
    *stack = run->stack;
    return DRY_OK;
}

enum dry_status
dryi_run_take(struct dryi_pickle_walk *w, bool *taken)
{
    struct dryi_input *in = w->in;
    *taken = false;
    if (w->value_count == w->floor || !is_new_list(w, w->values[w->value_count - 1]))
        return DRY_OK;
    enum dry_status status = DRY_OK;
    if (dryi_input_unread(in) < 1 + DRYI_RUN_BYTES_MAX + DRYI_RUN_LOOKAHEAD_BYTES &&
        !in->is_at_end)
        status = dryi_input_fill(in, 1 + DRYI_RUN_BYTES_MAX + DRYI_RUN_LOOKAHEAD_BYTES,
                                 w->err);
    size_t unread = dryi_input_unread(in);
    if (status != DRY_OK || unread < 1 + HEAD_BYTES + DRYI_RUN_LOOKAHEAD_BYTES)
        return status;
    const unsigned char *p = in->window + in->at + 1;
    size_t count = unread - 1 - DRYI_RUN_LOOKAHEAD_BYTES, length = 0;
    uint32_t stack = 0;
    status = dryi_run_read(w, p, count, &stack, &length);
    if (status != DRY_OK || length == 0 || !is_list_done(w, p + length))
        return status;
    uint64_t *top = &w->values[w->value_count - 1];
    uint64_t value = dryi_value(DRYI_VALUE_STACK, stack);
    status = dryi_object_become(w, *top, value);
    *top = value;
    in->at += 1 + length;
    *taken = true;
    return status;
}

void
dryi_run_finish(struct dryi_pickle_walk *w)
{
    dryi_memory_free(&w->memory, w->runs.runs, w->runs.runs ? RUN_COUNT : 0,
                     sizeof *w->runs.runs);
    dryi_memory_free(&w->memory, w->runs.bytes, w->runs.byte_capacity, 1);
}
