/* SPDX-License-Identifier: Apache-2.0 */

/* The idea and the cost are in word_set.h. */
#include "trace/anonymize/word_set.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "trace/anonymize/public_text.h"

void
dryi_word_set_init(struct dryi_word_set *words, const struct dry_memory *memory)
{
    *words = (struct dryi_word_set){.memory = dryi_memory_or_default(memory)};
    dryi_intern_init(&words->table, memory);
}

void
dryi_word_set_finish(struct dryi_word_set *words)
{
    dryi_intern_finish(&words->table);
    dryi_memory_free(&words->memory, words->is_public, words->public_capacity, 1);
    words->is_public = NULL;
    words->public_capacity = 0;
}

static unsigned
filter_bit(const char *bytes)
{
    uint32_t head;
    memcpy(&head, bytes, sizeof head);
    return (head * UINT32_C(0x9e3779b1)) >> (32 - DRYI_WORD_SET_FILTER_BITS);
}

bool
dryi_word_set_put(struct dryi_word_set *words, const char *bytes, size_t length)
{
    if (length < DRYI_WORD_BYTES_MIN)
        return true;
    if (length > DRYI_WORD_BYTES_MAX)
        length = DRYI_WORD_BYTES_MAX;
    uint32_t id = dryi_intern_put(&words->table, bytes, length);
    if (id == DRYI_INTERN_NONE ||
        !dryi_memory_grow(&words->memory, &words->is_public, &words->public_capacity,
                          (size_t)id + 1, 1))
        return false;
    words->is_public[id] = 0;
    words->lengths |= UINT64_C(1) << (length - 1);
    unsigned bit = filter_bit(bytes);
    words->filter[bit / 64] |= UINT64_C(1) << bit % 64;
    return true;
}

bool
dryi_word_set_put_all(struct dryi_word_set *words, const char *bytes, size_t length)
{
    bool ok = dryi_word_set_put(words, bytes, length);
    for (size_t at = 0; at < length && ok;) {
        size_t end = at;
        while (end < length && dryi_is_word_char(bytes[end]))
            end++;
        ok = dryi_word_set_put(words, bytes + at, end - at);
        at = end + 1;
    }
    return ok;
}

/* The offset in the text that is being searched. */
struct cursor {
    const char *text;
    size_t length, at;
    uint64_t lengths; /* bit n - 1: length n is still to be tried at this offset */
};

static bool
passes_filter(const struct dryi_word_set *words, const struct cursor *c)
{
    if (c->length - c->at < DRYI_WORD_BYTES_MIN)
        return false;
    unsigned bit = filter_bit(c->text + c->at);
    return words->filter[bit / 64] >> bit % 64 & 1;
}

/* Return the lengths to try here: at least `least`, and within the rest of the text. */
static uint64_t
lengths_at(const struct dryi_word_set *words, const struct cursor *c, size_t least)
{
    size_t left = c->length - c->at;
    uint64_t lengths = words->lengths >> (least - 1) << (least - 1);
    if (left < DRYI_WORD_BYTES_MAX)
        lengths &= (UINT64_C(1) << left) - 1;
    return lengths;
}

/* Return the next word of at least `least` bytes, DRYI_INTERN_NONE at the end. */
static uint32_t
next_word(const struct dryi_word_set *words, struct cursor *c, size_t least)
{
    for (;;) {
        while (c->lengths) {
            size_t length = (size_t)__builtin_ctzll(c->lengths) + 1;
            c->lengths &= c->lengths - 1;
            uint32_t id = dryi_intern_find(&words->table, c->text + c->at - 1, length);
            if (id != DRYI_INTERN_NONE)
                return id;
        }
        while (c->at < c->length && !passes_filter(words, c))
            c->at++;
        if (c->at >= c->length)
            return DRYI_INTERN_NONE;
        c->lengths = lengths_at(words, c, least);
        c->at++;
    }
}

void
dryi_word_set_excuse(struct dryi_word_set *words, const char *text, size_t length)
{
    struct cursor c = {.text = text, .length = length};
    for (;;) {
        uint32_t id = next_word(words, &c, DRYI_WORD_BYTES_MIN);
        if (id == DRYI_INTERN_NONE)
            return;
        words->public_count += !words->is_public[id];
        words->is_public[id] = 1;
    }
}

uint64_t
dryi_word_set_count(const struct dryi_word_set *words, const char *text, size_t length,
                    size_t least, uint32_t *first)
{
    DRYI_ASSERT(least >= DRYI_WORD_BYTES_MIN && least <= DRYI_WORD_BYTES_MAX);
    struct cursor c = {.text = text, .length = length};
    uint64_t count = 0;
    for (;;) {
        uint32_t id = next_word(words, &c, least);
        if (id == DRYI_INTERN_NONE)
            return count;
        if (words->is_public[id])
            continue;
        if (count++ == 0)
            *first = id;
    }
}
