/* SPDX-License-Identifier: Apache-2.0 */

/* Format a setting as an option string, derive one from recorded options, and compare two. Cost:
   O(1) per setting, O(length) per string. setting.h has the idea. */
#include "explain/settings/setting.h"

#include <drystone/recommend.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/option_text.h"

#define INTERVALS 16u

void
dryi_setting_set_roundup(struct dryi_setting *setting, uint8_t divisions)
{
    setting->has_roundup = true;
    memset(setting->divisions, divisions, sizeof setting->divisions);
}

/* --- text --------------------------------------------------------------------------------- */

struct text {
    char *bytes;
    size_t used, capacity;
};

__attribute__((format(printf, 2, 3))) static void
append(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->bytes + t->used, t->capacity - t->used, format, args);
    va_end(args);
    DRYI_ASSERT(n >= 0 && (size_t)n < t->capacity - t->used);
    t->used += (size_t)n;
}

static const char *
comma(const struct text *t)
{
    return t->used > 0 ? "," : "";
}

static void
append_number(struct text *t, const char *key, uint32_t value)
{
    if (value > 0)
        append(t, "%s%s:%u", comma(t), key, (unsigned)value);
}

static void
append_percent(struct text *t, const char *key, uint8_t percent)
{
    if (percent > 0 && percent % 10 == 0)
        append(t, "%s%s:0.%u", comma(t), key, percent / 10u);
    else if (percent > 0)
        append(t, "%s%s:0.%02u", comma(t), key, (unsigned)percent);
}

/* Append divisions as a list. The first entry also covers all lower intervals, `>` all higher ones.
   Unnamed intervals in between would be 0, so all are written. */
static void
append_roundup_list(struct text *t, const uint8_t divisions[INTERVALS])
{
    unsigned first = 0, last = INTERVALS - 1;
    while (first + 1 < INTERVALS && divisions[first + 1] == divisions[0])
        first++;
    while (last > first && divisions[last - 1] == divisions[INTERVALS - 1])
        last--;
    append(t, "%sroundup_power2_divisions:[", comma(t));
    for (unsigned i = first; i < last; i++)
        append(t, "%lu:%u,", 1ul << i, (unsigned)divisions[i]);
    append(t, ">:%u]", (unsigned)divisions[last]);
}

static void
append_roundup(struct text *t, const uint8_t divisions[INTERVALS])
{
    for (unsigned i = 1; i < INTERVALS; i++) {
        if (divisions[i] != divisions[0]) {
            append_roundup_list(t, divisions);
            return;
        }
    }
    append_number(t, "roundup_power2_divisions", divisions[0]);
}

void
dryi_setting_format(const struct dryi_setting *s, char text[DRYI_SETTING_BYTES])
{
    struct text t = {.bytes = text, .capacity = DRYI_SETTING_BYTES};
    text[0] = '\0';
    if (s->expandable)
        append(&t, "expandable_segments:True");
    append_number(&t, "max_split_size_mb", s->split_mib);
    append_number(&t, "max_non_split_rounding_mb", s->slack_mib);
    if (s->has_roundup)
        append_roundup(&t, s->divisions);
    append_number(&t, "large_segment_size_mb", s->large_mib);
    append_percent(&t, "garbage_collection_threshold", s->gc_percent);
    append_percent(&t, "per_process_memory_fraction", s->limit_percent);
}

/* --- releases and caveats ----------------------------------------------------------------- */

static bool
take_mib(uint64_t bytes, uint32_t *mib)
{
    if (bytes % DRYI_MIB != 0 || bytes / DRYI_MIB >= UINT32_MAX)
        return false;
    *mib = (uint32_t)(bytes / DRYI_MIB);
    return true;
}

bool
dryi_setting_of_conf(const struct dryi_torch_conf *conf, struct dryi_setting *setting)
{
    struct dryi_torch_conf standard;
    dryi_torch_conf_init(&standard);
    struct dryi_setting s = {.expandable = conf->expandable_segments};
    if (conf->max_split_size != UINT64_MAX &&
        !take_mib(conf->max_split_size, &s.split_mib))
        return false;
    if (conf->large_segment_size != standard.large_segment_size &&
        !take_mib(conf->large_segment_size, &s.large_mib))
        return false;
    if (conf->max_non_split_rounding_size != conf->large_segment_size &&
        !take_mib(conf->max_non_split_rounding_size, &s.slack_mib))
        return false;
    for (unsigned i = 0; i < INTERVALS; i++) {
        uint64_t divisions = conf->roundup_power2_divisions[i];
        if (divisions > 128)
            return false;
        s.divisions[i] = divisions == 1 ? 0 : (uint8_t)divisions;
        s.has_roundup |= s.divisions[i] > 0;
    }
    double percent = conf->garbage_collection_threshold * 100;
    s.gc_percent = (uint8_t)(percent + 0.5);
    if (percent > 0 && (s.gc_percent == 0 || s.gc_percent > 99))
        return false;
    *setting = s;
    return true;
}

/* Return the release that introduced the options: see doc/torch-rules.md. Expandable segments came
   with 2.1 (pytorch#96995). */
const char *
dryi_setting_since(const struct dryi_setting *s)
{
    if (s->large_mib > 0)
        return "2.11";
    if (s->limit_percent > 0)
        return "2.10";
    if (s->slack_mib > 0)
        return "2.6";
    return s->expandable ? "2.1" : "";
}

uint32_t
dryi_setting_caveats(const struct dryi_setting *s)
{
    uint32_t caveats = 0;
    if (s->expandable)
        caveats |= DRY_CAVEAT_IPC | DRY_CAVEAT_SLEEP | DRY_CAVEAT_NIXL;
    if (s->split_mib > 0)
        caveats |= DRY_CAVEAT_SYNC;
    if (s->expandable && s->split_mib > 0)
        caveats |= DRY_CAVEAT_GROWS;
    if (s->has_roundup)
        caveats |= DRY_CAVEAT_ROUNDING;
    if (s->limit_percent > 0)
        caveats |= DRY_CAVEAT_FRACTION;
    return caveats;
}

/* --- comparing ---------------------------------------------------------------------------- */

static uint64_t
get_divisions(const struct dryi_torch_conf *conf, unsigned interval)
{
    uint64_t divisions = conf->roundup_power2_divisions[interval];
    return divisions == 1 ? 0 : divisions; /* both values round to 512 bytes */
}

/* Return the effective threshold: without a limit PyTorch does not collect. */
static double
get_threshold(const struct dryi_torch_conf *conf)
{
    return conf->per_process_memory_fraction < 1.0 ? conf->garbage_collection_threshold
                                                   : 0.0;
}

/* Return the effective slack: without max_split_size it has no effect. */
static uint64_t
get_slack(const struct dryi_torch_conf *conf)
{
    return conf->max_split_size == UINT64_MAX ? 0 : conf->max_non_split_rounding_size;
}

static bool
is_same_number(double a, double b)
{
    return !(a < b) && !(b < a);
}

bool
dryi_setting_is_same_conf(const struct dryi_torch_conf *a,
                          const struct dryi_torch_conf *b)
{
    for (unsigned i = 0; i < INTERVALS; i++) {
        if (get_divisions(a, i) != get_divisions(b, i))
            return false;
    }
    return a->large_segment_size == b->large_segment_size &&
           a->max_split_size == b->max_split_size && get_slack(a) == get_slack(b) &&
           a->expandable_segments == b->expandable_segments &&
           a->throw_on_cudamalloc_oom == b->throw_on_cudamalloc_oom &&
           is_same_number(get_threshold(a), get_threshold(b)) &&
           is_same_number(a->per_process_memory_fraction, b->per_process_memory_fraction);
}

/* --- kept options ------------------------------------------------------------------------- */

static const char *const searched_keys[] = {
    "expandable_segments",      "max_split_size_mb",     "max_non_split_rounding_mb",
    "roundup_power2_divisions", "large_segment_size_mb", "garbage_collection_threshold",
};
#define SEARCHED_COUNT (sizeof searched_keys / sizeof(const char *))

static bool
is_searched(const char *text, size_t length)
{
    for (size_t i = 0; i < SEARCHED_COUNT; i++) {
        if (dryi_text_is(text, length, searched_keys[i]))
            return true;
    }
    return false;
}

/* Copy the string without white space, as PyTorch reads it. Returns false if it has characters that
   no option has, or is too long. */
static bool
copy_options(const char *recorded, struct text *t)
{
    for (; *recorded; recorded++) {
        char c = *recorded;
        if (c == ' ' || (c >= '\t' && c <= '\r'))
            continue;
        bool is_word =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if ((!is_word && !strchr("_.,:[]+->", c)) || t->used + 1 >= t->capacity)
            return false;
        t->bytes[t->used++] = c;
    }
    t->bytes[t->used] = '\0';
    return true;
}

bool
dryi_setting_keep(const char *recorded, bool with_fraction, char kept[DRYI_KEPT_BYTES])
{
    char options[DRYI_CONF_BYTES];
    struct text all = {.bytes = options, .capacity = sizeof options};
    struct text t = {.bytes = kept, .capacity = DRYI_KEPT_BYTES};
    kept[0] = '\0';
    if (!copy_options(recorded, &all))
        return false;
    for (const char *at = options; *at;) {
        size_t length = dryi_option_length(at, strlen(at));
        size_t key = strcspn(at, ":,[]");
        if (key >= length || at[key] != ':' || t.used + length + 2 > t.capacity) {
            kept[0] = '\0';
            return false;
        }
        bool is_dropped =
            is_searched(at, key) ||
            (!with_fraction && dryi_text_is(at, key, "per_process_memory_fraction"));
        if (!is_dropped)
            append(&t, "%s%.*s", comma(&t), (int)length, at);
        at += length + (at[length] == ',');
    }
    return true;
}
