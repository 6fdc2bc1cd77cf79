/* SPDX-License-Identifier: Apache-2.0 */

/*
 * make_snapshot EVENTS OUT [oom]: write a snapshot as a long training run leaves it, as
 * large as asked; with "oom" the run ends out of memory.
 *
 * A step is a fixed list of requests, taken in order (forward), given back in reverse
 * (backward), and repeated. Three sizes of request keep three places, so that PyTorch's
 * allocator has no choice and every address can be said in advance:
 *
 *     small   512 B to 8 KiB, from one segment of 2 MiB, one behind the other
 *     middle  1.5 to 1.75 MiB, from one segment of 20 MiB, one behind the other
 *     large   24 MiB upwards, each of a size of its own, each its own whole segment
 *
 * Frees come in reverse, so the memory behind a small or middle block is always one free
 * block. Large sizes are all different and larger than the two segments, so the best fit
 * of each is its own. The first step takes the segments; the last one stops after its
 * forward half, so that something is alive at the end.
 *
 * The encoding is that of Python's pickle.dump over PyTorch's object. The C++ side makes
 * a new list of frames for each alloc, and one that a free's two events share; frame
 * dicts and strings are shared. Everything is memoised, frames are 64 KiB, batches 1,000.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_COUNT 400u
#define FRAME_COUNT 1000u
#define OUTER_COUNT 24u /* the frames that all stacks share: main, the loop, the step */
#define STACK_MIN 36u
#define STACK_MAX 100u
#define STACK_COUNT (2 * REQUEST_COUNT) /* who takes, who gives back */
#define BUFFER_BYTES ((size_t)1 << 20)
#define FRAME_BYTES ((size_t)64 << 10)
#define BATCH 1000u
#define SMALL_SEGMENT (UINT64_C(2) << 20)
#define MIDDLE_SEGMENT (UINT64_C(20) << 20)
#define BASE UINT64_C(0x7f3c00000000)
#define START_US INT64_C(1721000000000000)
/* In sum the OOM's bytes fit: the two shared segments have 8 MiB left between them. */
#define OOM_FREE (UINT64_C(60) << 20)
#define OOM_REQUEST (UINT64_C(64) << 20)
#define NOT_YET UINT32_MAX

enum size_class { SMALL, MIDDLE, LARGE };

struct request {
    enum size_class size_class;
    uint64_t size, rounded, address;
};

enum word {
    W_SEGMENTS,
    W_DEVICE_TRACES,
    W_SETTINGS,
    W_ANNOTATIONS,
    W_DEVICE,
    W_ADDRESS,
    W_TOTAL_SIZE,
    W_ALLOCATED_SIZE,
    W_ACTIVE_SIZE,
    W_REQUESTED_SIZE,
    W_STREAM,
    W_SEGMENT_TYPE,
    W_LARGE,
    W_SMALL,
    W_POOL_ID,
    W_EXPANDABLE,
    W_FRAMES,
    W_BLOCKS,
    W_SIZE,
    W_STATE,
    W_INACTIVE,
    W_ACTIVE,
    W_ACTION,
    W_ADDR,
    W_TIME_US,
    W_CONTEXT,
    W_NO_CONTEXT,
    W_METADATA,
    W_NO_METADATA,
    W_NAME,
    W_FILENAME,
    W_LINE,
    W_ALLOC,
    W_FREE_REQUESTED,
    W_FREE_COMPLETED,
    W_SEGMENT_ALLOC,
    W_OOM,
    W_DEVICE_FREE,
    W_CONF,
    W_MAX_SPLIT,
    W_GC,
    W_EXPANDABLE_SEGMENTS,
    WORD_COUNT,
};

static const char *const words[WORD_COUNT] = {
    "segments",
    "device_traces",
    "allocator_settings",
    "external_annotations",
    "device",
    "address",
    "total_size",
    "allocated_size",
    "active_size",
    "requested_size",
    "stream",
    "segment_type",
    "large",
    "small",
    "segment_pool_id",
    "is_expandable",
    "frames",
    "blocks",
    "size",
    "state",
    "inactive",
    "active_allocated",
    "action",
    "addr",
    "time_us",
    "compile_context",
    "N/A",
    "user_metadata",
    "",
    "name",
    "filename",
    "line",
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "oom",
    "device_free",
    "PYTORCH_CUDA_ALLOC_CONF",
    "max_split_size",
    "garbage_collection_threshold",
    "expandable_segments",
};

struct maker {
    FILE *out;
    unsigned char *buffer;
    size_t used;          /* of the pickle's current frame */
    uint32_t memo;        /* next number */
    uint64_t random;      /* xorshift64*, fixed seed: the file is the same everywhere */
    uint64_t left, index; /* events to write, written */
    int64_t time_us;
    uint32_t words[WORD_COUNT]; /* memo numbers */
    uint32_t frames[FRAME_COUNT];
    uint32_t files[FRAME_COUNT / 16 + 1];
    struct request requests[REQUEST_COUNT];
    uint16_t stacks[STACK_COUNT][STACK_MAX];
    unsigned depths[STACK_COUNT];
    uint32_t pool;
    bool has_small, has_middle; /* their segment is there */
    bool has_oom;               /* the trace ends in one */
};

static uint64_t
draw(struct maker *m, uint64_t below)
{
    m->random ^= m->random >> 12;
    m->random ^= m->random << 25;
    m->random ^= m->random >> 27;
    return (m->random * UINT64_C(2685821657736338717) >> 33) % below;
}

/* --- pickle --- */

static void
flush(struct maker *m)
{
    unsigned char head[9] = {0x95};
    uint64_t length = m->used;
    memcpy(head + 1, &length, sizeof length);
    if (fwrite(head, 1, sizeof head, m->out) != sizeof head ||
        fwrite(m->buffer, 1, m->used, m->out) != m->used) {
        perror("make_snapshot");
        exit(1);
    }
    m->used = 0;
}

static void
put(struct maker *m, const void *bytes, size_t count)
{
    memcpy(m->buffer + m->used, bytes, count);
    m->used += count;
}

static void
op(struct maker *m, unsigned opcode)
{
    m->buffer[m->used++] = (unsigned char)opcode;
}

static uint32_t
memoize(struct maker *m)
{
    op(m, 0x94);
    return m->memo++;
}

static void
get(struct maker *m, uint32_t index)
{
    op(m, index < 256 ? 'h' : 'j');
    put(m, &index, index < 256 ? 1 : 4);
}

static void
text(struct maker *m, const char *bytes, uint32_t *memo)
{
    if (*memo != NOT_YET) {
        get(m, *memo);
        return;
    }
    size_t length = strlen(bytes);
    op(m, 0x8c);
    op(m, (unsigned)length);
    put(m, bytes, length);
    *memo = memoize(m);
}

static void
word(struct maker *m, enum word which)
{
    text(m, words[which], &m->words[which]);
}

static void
integer(struct maker *m, int64_t value)
{
    if (value >= 0 && value < 256) {
        op(m, 'K');
        put(m, &value, 1);
    } else if (value >= 0 && value < 65536) {
        op(m, 'M');
        put(m, &value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        op(m, 'J');
        put(m, &value, 4);
    } else {
        unsigned length = 8;
        while (length > 1 && value >> (8 * length - 9) == 0)
            length--;
        op(m, 0x8a);
        op(m, length);
        put(m, &value, length);
    }
}

static void
item(struct maker *m, enum word key, int64_t value)
{
    word(m, key);
    integer(m, value);
}

static void
word_item(struct maker *m, enum word key, enum word value)
{
    word(m, key);
    word(m, value);
}

static void
begin(struct maker *m, unsigned opcode)
{
    op(m, opcode);
    memoize(m);
    op(m, '(');
}

/* --- frames --- */

static void
frame(struct maker *m, unsigned which)
{
    if (m->frames[which] != NOT_YET) {
        get(m, m->frames[which]);
        return;
    }
    char name[96], file[64];
    snprintf(name, sizeof name, "at::native::layer_%u::operator_%u(at::Tensor const&)",
             which / 16, which);
    snprintf(file, sizeof file, "model/layers/block_%u.py", which / 16);
    op(m, '}');
    m->frames[which] = memoize(m);
    op(m, '(');
    uint32_t name_memo = NOT_YET;
    word(m, W_NAME);
    text(m, name, &name_memo);
    word(m, W_FILENAME);
    text(m, file, &m->files[which / 16]);
    item(m, W_LINE, 10 + which * 7 % 900);
    op(m, 'u');
}

static uint32_t
stack(struct maker *m, unsigned which)
{
    op(m, ']');
    uint32_t memo = memoize(m);
    op(m, '(');
    for (unsigned i = 0; i < m->depths[which]; i++)
        frame(m, m->stacks[which][i]);
    op(m, 'e');
    return memo;
}

static void
draw_stack(struct maker *m, unsigned which)
{
    unsigned depth = STACK_MIN + (unsigned)draw(m, STACK_MAX - STACK_MIN + 1);
    unsigned own = depth - OUTER_COUNT;
    unsigned first = OUTER_COUNT + (unsigned)draw(m, FRAME_COUNT - OUTER_COUNT - own);
    m->depths[which] = depth;
    for (unsigned i = 0; i < own; i++)
        m->stacks[which][i] = (uint16_t)(first + i);
    for (unsigned i = 0; i < OUTER_COUNT; i++)
        m->stacks[which][own + i] = (uint16_t)i;
}

/* --- the step --- */

static void
draw_requests(struct maker *m)
{
    uint64_t small = BASE, middle = BASE + SMALL_SEGMENT;
    uint64_t large = middle + MIDDLE_SEGMENT + (UINT64_C(12) << 20);
    uint64_t large_size = UINT64_C(24) << 20;
    for (unsigned i = 0; i < REQUEST_COUNT; i++) {
        struct request *r = &m->requests[i];
        r->size_class = i % 50 == 1 ? MIDDLE : i % 5 == 0 ? LARGE : SMALL;
        uint64_t *at = &small;
        if (r->size_class == SMALL) {
            r->size = 4 + 4 * draw(m, 2000);
            r->rounded = (r->size + 511) / 512 * 512;
        } else if (r->size_class == MIDDLE) {
            at = &middle;
            r->size = r->rounded = (UINT64_C(3) << 19) + 512 * draw(m, 512);
        } else {
            at = &large;
            r->size = r->rounded = large_size;
            large_size += UINT64_C(2) << 20;
        }
        r->address = *at;
        *at += r->rounded;
    }
    if (small > BASE + SMALL_SEGMENT - 512 ||
        middle > BASE + SMALL_SEGMENT + MIDDLE_SEGMENT - (UINT64_C(2) << 20))
        abort(); /* the plan above no longer holds */
}

static void
event(struct maker *m, enum word action, uint64_t address, uint64_t size)
{
    if (m->index % BATCH == 0) {
        if (m->index)
            op(m, 'e');
        op(m, '(');
    }
    m->index++;
    m->left--;
    begin(m, '}');
    word_item(m, W_ACTION, action);
    item(m, action == W_OOM ? W_DEVICE_FREE : W_ADDR, (int64_t)address);
    item(m, W_SIZE, (int64_t)size);
    item(m, W_STREAM, 0);
    item(m, W_TIME_US, m->time_us);
    word_item(m, W_CONTEXT, W_NO_CONTEXT);
    word_item(m, W_METADATA, W_NO_METADATA);
    word(m, W_FRAMES);
    m->time_us += (int64_t)(1 + draw(m, 20));
}

static void
end_event(struct maker *m)
{
    op(m, 'u');
    if (m->used >= FRAME_BYTES)
        flush(m);
}

static void
take(struct maker *m, unsigned i, bool is_first_step)
{
    const struct request *r = &m->requests[i];
    bool *has = r->size_class == SMALL ? &m->has_small : &m->has_middle;
    if (is_first_step && (r->size_class == LARGE || !*has)) {
        uint64_t size = r->size_class == SMALL    ? SMALL_SEGMENT
                        : r->size_class == MIDDLE ? MIDDLE_SEGMENT
                                                  : r->rounded;
        *has = true;
        event(m, W_SEGMENT_ALLOC, r->address, size);
        stack(m, i);
        end_event(m);
    }
    event(m, W_ALLOC, r->address, r->size);
    stack(m, i);
    end_event(m);
}

static void
give_back(struct maker *m, unsigned i)
{
    const struct request *r = &m->requests[i];
    event(m, W_FREE_REQUESTED, r->address, r->size);
    uint32_t memo = stack(m, REQUEST_COUNT + i);
    end_event(m);
    event(m, W_FREE_COMPLETED, r->address, r->size);
    get(m, memo);
    end_event(m);
}

/*
 * Write steps until the next one would be too many, then a forward half. If asked for, a
 * request follows that fails although it would fit beside the bytes in use. Returns how
 * many requests are alive.
 */
static unsigned
trace(struct maker *m)
{
    bool is_first = true;
    word(m, W_DEVICE_TRACES);
    op(m, ']');
    memoize(m);
    op(m, '(');
    op(m, ']');
    memoize(m);
    unsigned alive = 0;
    while (m->left >= 3 * REQUEST_COUNT + REQUEST_COUNT) {
        for (unsigned i = 0; i < REQUEST_COUNT; i++)
            take(m, i, is_first);
        is_first = false;
        for (unsigned i = REQUEST_COUNT; i-- > 0;)
            give_back(m, i);
    }
    while (alive < REQUEST_COUNT && m->left > 1)
        take(m, alive++, is_first);
    if (m->has_oom) {
        event(m, W_OOM, OOM_FREE, OOM_REQUEST);
        stack(m, 0);
        end_event(m);
    }
    op(m, 'e');
    op(m, 'e');
    return alive;
}

/* --- the end: segments --- */

static void
block(struct maker *m, uint64_t address, uint64_t size, uint64_t requested,
      int stack_index)
{
    begin(m, '}');
    item(m, W_ADDRESS, (int64_t)address);
    item(m, W_SIZE, (int64_t)size);
    item(m, W_REQUESTED_SIZE, (int64_t)requested);
    word_item(m, W_STATE, stack_index < 0 ? W_INACTIVE : W_ACTIVE);
    word(m, W_FRAMES);
    if (stack_index < 0) {
        op(m, ']');
        memoize(m);
    } else {
        stack(m, (unsigned)stack_index);
    }
    op(m, 'u');
    if (m->used >= FRAME_BYTES)
        flush(m);
}

static void
pool_id(struct maker *m)
{
    if (m->pool != NOT_YET) {
        get(m, m->pool);
        return;
    }
    integer(m, 0);
    integer(m, 0);
    op(m, 0x86);
    m->pool = memoize(m);
}

/*
 * Write a segment that holds the alive requests of a class (of LARGE: only number
 * `which`).
 */
static void
segment(struct maker *m, enum size_class size_class, unsigned which, unsigned alive,
        uint64_t address, uint64_t size)
{
    uint64_t used = 0, requested = 0;
    unsigned end = size_class == LARGE ? which + 1 : REQUEST_COUNT;
    for (unsigned i = which; i < end && i < alive; i++) {
        if (m->requests[i].size_class == size_class) {
            used += m->requests[i].rounded;
            requested += m->requests[i].size;
        }
    }
    begin(m, '}');
    item(m, W_DEVICE, 0);
    item(m, W_ADDRESS, (int64_t)address);
    item(m, W_TOTAL_SIZE, (int64_t)size);
    item(m, W_ALLOCATED_SIZE, (int64_t)used);
    item(m, W_ACTIVE_SIZE, (int64_t)used);
    item(m, W_REQUESTED_SIZE, (int64_t)requested);
    item(m, W_STREAM, 0);
    word_item(m, W_SEGMENT_TYPE, size_class == SMALL ? W_SMALL : W_LARGE);
    word(m, W_POOL_ID);
    pool_id(m);
    word(m, W_EXPANDABLE);
    op(m, 0x89);
    word(m, W_FRAMES);
    op(m, ']');
    memoize(m);
    word(m, W_BLOCKS);
    begin(m, ']');
    for (unsigned i = which; i < end && i < alive; i++) {
        const struct request *r = &m->requests[i];
        if (r->size_class == size_class)
            block(m, r->address, r->rounded, r->size, (int)i);
    }
    if (used < size)
        block(m, address + used, size - used, 0, -1);
    op(m, 'e');
    op(m, 'u');
}

static void
segments(struct maker *m, unsigned alive)
{
    word(m, W_SEGMENTS);
    begin(m, ']');
    segment(m, SMALL, 0, alive, BASE, SMALL_SEGMENT);
    segment(m, MIDDLE, 0, alive, BASE + SMALL_SEGMENT, MIDDLE_SEGMENT);
    for (unsigned i = 0; i < REQUEST_COUNT; i++) {
        if (m->requests[i].size_class == LARGE)
            segment(m, LARGE, i, alive, m->requests[i].address, m->requests[i].rounded);
    }
    op(m, 'e');
}

static void
settings(struct maker *m)
{
    static const unsigned char zero[9] = {'G'};
    word(m, W_SETTINGS);
    begin(m, '}');
    word_item(m, W_CONF, W_NO_METADATA);
    item(m, W_MAX_SPLIT, -1);
    word(m, W_GC);
    put(m, zero, sizeof zero);
    word(m, W_EXPANDABLE_SEGMENTS);
    op(m, 0x89);
    op(m, 'u');
    word(m, W_ANNOTATIONS);
    op(m, ']');
    memoize(m);
}

static void
make(struct maker *m)
{
    draw_requests(m);
    for (unsigned i = 0; i < STACK_COUNT; i++)
        draw_stack(m, i);
    fputs("\x80\x04", m->out);
    begin(m, '}');
    unsigned alive = trace(m);
    segments(m, alive);
    settings(m);
    op(m, 'u');
    op(m, '.');
    flush(m);
}

int
main(int argc, char **argv)
{
    bool has_oom = argc == 4 && strcmp(argv[3], "oom") == 0;
    uint64_t count = argc == 3 || has_oom ? strtoull(argv[1], NULL, 10) : 0;
    struct maker *m = calloc(1, sizeof *m);
    FILE *out = count >= 10000 ? fopen(argv[2], "wb") : NULL;
    if (!out || !m) {
        fprintf(stderr, "make_snapshot EVENTS OUT [oom] (10000 events or more)\n");
        free(m);
        return 2;
    }
    m->out = out;
    m->left = count - has_oom;
    m->has_oom = has_oom;
    m->random = 20240229;
    m->time_us = START_US;
    m->pool = NOT_YET;
    memset(m->words, 0xff, sizeof m->words);
    memset(m->frames, 0xff, sizeof m->frames);
    memset(m->files, 0xff, sizeof m->files);
    m->buffer = malloc(BUFFER_BYTES);
    if (!m->buffer)
        return 1;
    make(m);
    free(m->buffer);
    free(m);
    return fclose(out) == 0 ? 0 : 1;
}
