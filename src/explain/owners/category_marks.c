/* SPDX-License-Identifier: Apache-2.0 */

/* A text is split into words, which are looked up in one table. Cost: O(length) per text.
   category_marks.h has the rules. */
#include "explain/owners/category_marks.h"

#include <string.h>

#include "base/ascii.h"
#include "base/map.h"
#include "base/memory.h"

/* Longer texts do not name a category. */
#define MARK_BYTES_MAX 64u
#define MARK_CONFIDENCE 95u

struct mark_word {
    const char *text;
    enum dry_category category; /* UNKNOWN: a neutral word, allowed with any category */
};

static const struct mark_word mark_words[] = {
    {"weight", DRY_CATEGORY_WEIGHTS},
    {"weights", DRY_CATEGORY_WEIGHTS},
    {"param", DRY_CATEGORY_WEIGHTS},
    {"params", DRY_CATEGORY_WEIGHTS},
    {"parameter", DRY_CATEGORY_WEIGHTS},
    {"parameters", DRY_CATEGORY_WEIGHTS},
    {"optimizer", DRY_CATEGORY_OPTIMIZER},
    {"optim", DRY_CATEGORY_OPTIMIZER},
    {"momentum", DRY_CATEGORY_OPTIMIZER},
    {"grad", DRY_CATEGORY_GRADIENTS},
    {"grads", DRY_CATEGORY_GRADIENTS},
    {"gradient", DRY_CATEGORY_GRADIENTS},
    {"gradients", DRY_CATEGORY_GRADIENTS},
    {"activation", DRY_CATEGORY_ACTIVATIONS},
    {"activations", DRY_CATEGORY_ACTIVATIONS},
    {"temporary", DRY_CATEGORY_TEMPORARIES},
    {"temporaries", DRY_CATEGORY_TEMPORARIES},
    {"workspace", DRY_CATEGORY_TEMPORARIES},
    {"input", DRY_CATEGORY_INPUTS},
    {"inputs", DRY_CATEGORY_INPUTS},
    {"kv", DRY_CATEGORY_KV_CACHE},
    {"kvcache", DRY_CATEGORY_KV_CACHE},
    {"cache", DRY_CATEGORY_UNKNOWN},
    {"category", DRY_CATEGORY_UNKNOWN},
    {"model", DRY_CATEGORY_UNKNOWN},
    {"state", DRY_CATEGORY_UNKNOWN},
    {"states", DRY_CATEGORY_UNKNOWN},
    {"memory", DRY_CATEGORY_UNKNOWN},
    {"tensor", DRY_CATEGORY_UNKNOWN},
    {"tensors", DRY_CATEGORY_UNKNOWN},
};
#define MARK_WORD_COUNT (sizeof mark_words / sizeof *mark_words)

static bool
is_word_byte(char c)
{
    return dryi_is_letter(c) || dryi_is_digit(c);
}

static const struct mark_word *
find_mark_word(const char *text, size_t length)
{
    for (size_t w = 0; w < MARK_WORD_COUNT; w++) {
        const char *word = mark_words[w].text;
        size_t i = 0;
        while (i < length && word[i] != '\0' && dryi_to_lower(text[i]) == word[i])
            i++;
        if (i == length && word[i] == '\0')
            return &mark_words[w];
    }
    return NULL;
}

enum dry_category
dryi_category_of_mark(const char *text, size_t length)
{
    enum dry_category category = DRY_CATEGORY_UNKNOWN;
    if (length > MARK_BYTES_MAX)
        return category;
    for (size_t i = 0; i < length;) {
        size_t n = 0;
        while (i + n < length && is_word_byte(text[i + n]))
            n++;
        if (n == 0) {
            i++;
            continue;
        }
        const struct mark_word *word = find_mark_word(text + i, n);
        if (!word || (word->category && category && word->category != category))
            return DRY_CATEGORY_UNKNOWN;
        category = word->category ? word->category : category;
        i += n;
    }
    return category;
}

/* --- events ------------------------------------------------------------------------------- */

struct reader {
    const struct dry_timeline_view *v;
    const struct dry_trace_view *t;
    struct dry_category_guess *guesses;
    struct dryi_map latest; /* address -> latest allocation there; for annotate events */
};

static void
read_mark(struct reader *r, size_t event, uint32_t allocation)
{
    size_t length;
    uint32_t string = dry_trace_note(r->v->trace, r->t->note[event])->user_metadata;
    const char *text = dry_trace_string(r->v->trace, string, &length);
    if (!text || allocation == DRY_NONE)
        return;
    enum dry_category category = dryi_category_of_mark(text, length);
    if (category == DRY_CATEGORY_UNKNOWN)
        return;
    r->guesses[allocation] = (struct dry_category_guess){.category = (uint8_t)category,
                                                         .evidence = DRY_EVIDENCE_MARK,
                                                         .confidence = MARK_CONFIDENCE};
}

static bool
has_annotates(const struct reader *r)
{
    for (uint32_t e = 0; e < r->v->event_count; e++) {
        if (r->t->action[r->v->first_event + e] == DRY_ACTION_ANNOTATE)
            return true;
    }
    return false;
}

static bool
put_carried(struct reader *r)
{
    uint32_t first = r->v->allocation_count - r->v->carried_over_count;
    for (uint32_t a = first; a < r->v->allocation_count; a++) {
        if (!dryi_map_put(&r->latest, r->v->allocations[a].address, a))
            return false;
    }
    return true;
}

static bool
read_events(struct reader *r, bool with_annotates)
{
    for (uint32_t e = 0; e < r->v->event_count; e++) {
        size_t event = r->v->first_event + e;
        if (r->t->action[event] == DRY_ACTION_ALLOC) {
            uint32_t a = r->v->event_allocation[e];
            if (with_annotates && a != DRY_NONE &&
                !dryi_map_put(&r->latest, r->t->addr[event], a))
                return false;
            read_mark(r, event, a);
        } else if (r->t->action[event] == DRY_ACTION_ANNOTATE) {
            const uint32_t *a = dryi_map_find(&r->latest, r->t->addr[event]);
            if (a && r->v->allocations[*a].freed > e)
                read_mark(r, event, *a);
        }
    }
    return true;
}

bool
dryi_category_read_marks(const struct dry_timeline *timeline,
                         struct dry_category_guess *guesses,
                         const struct dry_memory *memory)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
    struct reader r = {.v = v, .t = dry_trace_get_view(v->trace), .guesses = guesses};
    if (r.t->note_count == 0)
        return true;
    dryi_map_init(&r.latest, memory);
    bool with_annotates = has_annotates(&r);
    bool is_ok = (!with_annotates || put_carried(&r)) && read_events(&r, with_annotates);
    dryi_map_finish(&r.latest);
    return is_ok;
}
