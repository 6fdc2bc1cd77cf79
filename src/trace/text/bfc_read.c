/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The map that the BFC allocator of TensorFlow and XLA logs when a request fails: each region
 * from the driver, then its chunks by address. Regions become segments, chunks become blocks.
 * The map has no events, streams, pools or stacks.
 *
 * A line is known by a phrase after any prefix of the logger:
 *
 *     BFCAllocator dump for GPU_0_bfc
 *     Next region of size 268435456
 *     InUse at 7f0000000000 of size 256 next 1        (2020 on)
 *     Free  at 0x7f0000000100 next 2 of size 1024     (until 2020; first "Chunk at")
 *
 * A log may hold several dumps; a later one replaces an earlier one. Other lines, and lines
 * that another thread has torn, are passed over: the gap shows in the sums.
 *
 * Cost: O(bytes). Source: tsl/framework/bfc_allocator.cc, DumpMemoryLog().
 */
#include <string.h>

#include "base/fail.h"
#include "trace/model/trace.h"
#include "trace/text/text_read.h"

#define ADDRESS_DIGITS_MAX 16
#define DEVICE_MAX 63

struct bfc {
    struct dryi_text_read *r;
    struct dry_trace_view *view;
    struct dry_trace_segment region; /* address 0: no chunk so far */
    uint64_t region_end, chunk_end;  /* chunk_end: of the last chunk */
    int32_t device;                  /* the latest that a dump's first line named */
    int32_t dump_device;             /* the open dump is of this device */
    bool is_open;                    /* a region has begun, the dump has not ended */
    uint32_t lane;
};

/* Add the region, which ends, to the trace. */
static enum dry_status
end_region(struct bfc *b)
{
    struct dry_trace_segment *s = &b->region;
    if (!b->is_open || s->address == 0)
        return DRY_OK;
    s->block_count = b->view->block_count - s->first_block;
    dryi_trace_sum_blocks(s, &b->r->builder->trace->blocks[s->first_block],
                          s->block_count);
    return dryi_builder_append_segment(b->r->builder, s)
               ? DRY_OK
               : dryi_builder_check(b->r->builder, b->r->err);
}

static enum dry_status
end_dump(struct bfc *b)
{
    enum dry_status status = end_region(b);
    b->is_open = false;
    return status;
}

static enum dry_status
begin_region(struct bfc *b)
{
    uint64_t size;
    if (dryi_text_next_number(&b->r->text, "a size", UINT64_MAX, &size) != DRY_OK)
        return DRY_OK;
    enum dry_status status = end_region(b);
    if (!b->is_open) {
        b->view->dump_count++;
        b->view->segment_count = b->view->block_count = 0;
        b->dump_device = b->device;
    }
    b->is_open = true;
    b->region = (struct dry_trace_segment){.total_size = size,
                                           .lane = b->lane,
                                           .stack = DRY_NONE,
                                           .extra = DRY_NONE,
                                           .first_block = b->view->block_count,
                                           .device = b->dump_device,
                                           .is_large = true,
                                           .expandable_known = true};
    return status;
}

/* Read the name of the allocator whose dump follows: GPU_1_bfc is that of device 1. */
static enum dry_status
name_device(struct bfc *b)
{
    static const char begin[] = "GPU_", end[] = "_bfc";
    const size_t around = sizeof begin - 1 + sizeof end - 1;
    struct dryi_word word, number;
    uint64_t device = 0;
    b->device = 0;
    if (!dryi_text_next_word(&b->r->text, &word) || word.length <= around ||
        memcmp(word.bytes, begin, sizeof begin - 1) != 0 ||
        memcmp(word.bytes + word.length - sizeof end + 1, end, sizeof end - 1) != 0)
        return DRY_OK;
    number = word;
    number.bytes += sizeof begin - 1;
    number.length -= around;
    if (dryi_text_number(&b->r->text, &number, "a device", DEVICE_MAX, &device) == DRY_OK)
        b->device = (int32_t)device;
    return DRY_OK;
}

/* Read an address, with or without 0x. */
static bool
read_address(struct bfc *b, const struct dryi_word *word, uint64_t *address)
{
    char digits[2 + ADDRESS_DIGITS_MAX] = "0x";
    struct dryi_word whole = *word;
    bool has_prefix = word->length > 2 && memcmp(word->bytes, digits, 2) == 0;
    if (!has_prefix && word->length > ADDRESS_DIGITS_MAX)
        return false;
    if (!has_prefix) {
        memcpy(digits + 2, word->bytes, word->length);
        whole.bytes = digits;
        whole.length = word->length + 2;
    }
    return dryi_text_number(&b->r->text, &whole, "an address", UINT64_MAX, address) ==
           DRY_OK;
}

/* Read the number that follows the word `size`. */
static bool
read_size(struct bfc *b, uint64_t *size)
{
    struct dryi_word word;
    while (dryi_text_next_word(&b->r->text, &word)) {
        if (dryi_word_is(&word, "size"))
            return dryi_text_next_number(&b->r->text, "a size", UINT64_MAX, size) ==
                   DRY_OK;
    }
    return false;
}

/* Check that a chunk follows the one before, in its region. */
static enum dry_status
place_chunk(struct bfc *b, const struct dryi_word *word, uint64_t address, uint64_t size)
{
    struct dry_trace_segment *s = &b->region;
    uint64_t end;
    if (s->address == 0) {
        if (__builtin_add_overflow(address, s->total_size, &b->region_end))
            return dryi_text_fail(&b->r->text, word->at,
                                  "its region ends beyond 64 bits of address");
        s->address = b->chunk_end = address;
    }
    if (address < b->chunk_end || __builtin_add_overflow(address, size, &end) ||
        end > b->region_end)
        return dryi_text_fail_word(&b->r->text, word,
                                   "a chunk behind the one before, in its region");
    b->chunk_end = end;
    return DRY_OK;
}

static enum dry_status
take_chunk(struct bfc *b, enum dry_block_state state)
{
    struct dryi_word word;
    uint64_t address, size;
    if (!b->is_open || !dryi_text_next_word(&b->r->text, &word) ||
        !read_address(b, &word, &address) || !read_size(b, &size) || address == 0 ||
        size == 0)
        return DRY_OK;
    enum dry_status status = place_chunk(b, &word, address, size);
    if (status != DRY_OK)
        return status;
    struct dry_trace_block block = {.address = address,
                                    .size = size,
                                    .requested_size = size,
                                    .stack = DRY_NONE,
                                    .extra = DRY_NONE,
                                    .state = state};
    return dryi_builder_append_block(b->r->builder, &block)
               ? DRY_OK
               : dryi_builder_check(b->r->builder, b->r->err);
}

static enum dry_status
take_used(struct bfc *b)
{
    return take_chunk(b, DRY_BLOCK_ACTIVE);
}

static enum dry_status
take_free(struct bfc *b)
{
    return take_chunk(b, DRY_BLOCK_INACTIVE);
}

#define PHRASE_WORDS_MAX 4

static const struct phrase {
    const char *words[PHRASE_WORDS_MAX];
    enum dry_status (*take)(struct bfc *b);
} phrases[] = {
    {{"BFCAllocator", "dump", "for"}, name_device},
    {{"Next", "region", "of", "size"}, begin_region},
    {{"InUse", "at"}, take_used},
    {{"Chunk", "at"}, take_used},
    {{"Free", "at"}, take_free},
    {{"Chunk", "State:"}, end_dump},
    {{"Summary", "of", "in-use", "Chunks"}, end_dump},
};

/* Return true if the phrase stands at the cursor, which then stands behind it. */
static bool
match_phrase(struct dryi_text *t, const struct phrase *phrase)
{
    size_t before = t->at;
    struct dryi_word word;
    for (size_t i = 0; i < PHRASE_WORDS_MAX && phrase->words[i]; i++) {
        if (!dryi_text_next_word(t, &word) || !dryi_word_is(&word, phrase->words[i])) {
            t->at = before;
            return false;
        }
    }
    return true;
}

static enum dry_status
read_line(struct bfc *b)
{
    struct dryi_text *t = &b->r->text;
    struct dryi_word word;
    do {
        for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
            if (match_phrase(t, &phrases[i]))
                return phrases[i].take(b);
        }
    } while (dryi_text_next_word(t, &word));
    return DRY_OK;
}

enum dry_status
dryi_bfc_read(struct dryi_text_read *r)
{
    struct bfc b = {.r = r, .view = &r->builder->trace->view};
    enum dry_status status = dryi_text_add_lane(r, 0, 0, &b.lane);
    while (status == DRY_OK) {
        status = read_line(&b);
        if (status == DRY_OK)
            status = dryi_text_next_line(&r->text);
    }
    if (b.view->dump_count == 0)
        return status == DRY_ERR_FORMAT ? DRY_END : status;
    r->builder->trace->devices[0].device = b.dump_device; /* the reader began device 0 */
    return status == DRY_END ? end_dump(&b) : status;
}
