/* SPDX-License-Identifier: Apache-2.0 */

/* The options of paged: one table of names, kinds and limits. */

#include "place/paged/record/paged_conf.h"

#include <stddef.h>
#include <string.h>

#include "base/ascii.h"
#include "base/bits.h"
#include "base/option_text.h"
#include "place/paged/record/paged_nouns.h"

void
dryi_paged_conf_init(struct dryi_paged_conf *conf)
{
    *conf = (struct dryi_paged_conf){
        .small_max = 64 * DRYI_KIB,
        .budget = 1.05,
        .reuse_ordered = true,
        .reuse_passed = true,
        .reuse_waiting = true,
        .remap = true,
        .plan = true,
        .per_process_memory_fraction = 1.0,
    };
}

#define DIGITS_MAX 12

/* Read a decimal number such as "1.05": at most DIGITS_MAX characters, no sign, no exponent. */
static bool
read_decimal(struct dryi_option_word word, double *value)
{
    uint64_t digits = 0, scale = 0;
    bool any = false;
    if (word.length > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < word.length; i++) {
        char c = word.text[i];
        if (c == '.' && scale == 0) {
            scale = 1;
            continue;
        }
        if (!dryi_is_digit(c))
            return false;
        digits = digits * 10 + (uint64_t)(c - '0');
        scale *= 10;
        any = true;
    }
    *value = (double)digits / (scale ? (double)scale : 1.0);
    return any;
}

enum kind { KIND_FACTOR, KIND_FRACTION, KIND_BYTES, KIND_SWITCH };

#define SMALL_MAX (UINT64_C(64) << 20)
#define FIELD(member) offsetof(struct dryi_paged_conf, member)

static const struct name {
    const char *text;
    enum kind kind;
    size_t offset;
    uint64_t unit, most; /* KIND_BYTES only: unit and maximum, in bytes */
} names[] = {
    {"budget", KIND_FACTOR, FIELD(budget), 0, 0},
    {"leave_mb", KIND_BYTES, FIELD(leave_bytes), DRYI_MIB, RESERVED_LIMIT},
    {"per_process_memory_fraction", KIND_FRACTION, FIELD(per_process_memory_fraction), 0,
     0},
    {"plan", KIND_SWITCH, FIELD(plan), 0, 0},
    {"remap", KIND_SWITCH, FIELD(remap), 0, 0},
    {"reuse_ordered", KIND_SWITCH, FIELD(reuse_ordered), 0, 0},
    {"reuse_passed", KIND_SWITCH, FIELD(reuse_passed), 0, 0},
    {"reuse_waiting", KIND_SWITCH, FIELD(reuse_waiting), 0, 0},
    {"segment_mb", KIND_BYTES, FIELD(segment_bytes), DRYI_MIB, RESERVED_LIMIT},
    {"small_kb", KIND_BYTES, FIELD(small_max), DRYI_KIB, SMALL_MAX},
};

static bool
set_field(struct dryi_paged_conf *conf, const struct name *name,
          struct dryi_option_word value)
{
    char *at = (char *)conf + name->offset;
    uint64_t bytes;
    double decimal;
    bool on;
    switch (name->kind) {
    case KIND_BYTES:
        if (!dryi_option_read_number(value, name->unit, name->most, &bytes))
            return false;
        memcpy(at, &bytes, sizeof bytes);
        return true;
    case KIND_SWITCH:
        if (!dryi_option_read_switch(value, &on))
            return false;
        memcpy(at, &on, sizeof on);
        return true;
    case KIND_FACTOR:
    case KIND_FRACTION:
        break;
    }
    if (!read_decimal(value, &decimal) ||
        (name->kind == KIND_FACTOR ? decimal < 1 : decimal > 1))
        return false;
    memcpy(at, &decimal, sizeof decimal);
    return true;
}

/* Options read so far; copied to the caller only if the whole text is valid. */
struct reading {
    struct dryi_paged_conf conf;
    dryi_option_name *is_foreign;
};

static enum dryi_option_answer
take_option(void *self, struct dryi_option_word name, struct dryi_option_word value)
{
    struct reading *reading = self;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (dryi_option_is(name, names[i].text))
            return set_field(&reading->conf, &names[i], value) ? DRYI_OPTION_TAKEN
                                                               : DRYI_OPTION_REFUSED;
    }
    bool is_foreign = reading->is_foreign(name.text, name.length);
    return is_foreign && !dryi_option_is(name, "backend") ? DRYI_OPTION_TAKEN
                                                          : DRYI_OPTION_UNKNOWN;
}

enum dry_status
dryi_paged_conf_parse(const char *text, size_t length, dryi_option_name *is_foreign,
                      struct dryi_paged_conf *conf, struct dry_error *err)
{
    struct reading reading = {*conf, is_foreign};
    const struct dryi_option_reader reader = {
        .take = take_option,
        .self = &reading,
        .refused = "not a value it can have, see drystone-pool(5)",
        .unknown = "not one of this allocator"};
    enum dry_status status = dryi_option_text_read(text, length, &reader, err);
    if (status == DRY_OK)
        *conf = reading.conf;
    return status;
}
