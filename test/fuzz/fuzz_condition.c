/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any text as a condition. What is taken names a figure that there is, and judges values
 * without a fault; what is not taken says why.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "gate/condition.h"

#define TEXT_BYTES_MAX 4096

struct object {
    uint64_t bytes, ooms;
};

static void
require(int condition)
{
    if (!condition)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct dry_field rows[] = {
        DRY_FIELD_OF(struct object, "reserved_peak_bytes", U64, BYTES, bytes,
                     DRY_KNOWN_ALWAYS, 0, true, ""),
        DRY_FIELD_OF(struct object, "ooms", U64, COUNT, ooms, DRY_KNOWN_ALWAYS, 0, true,
                     "")};
    static const struct figures figures = {{{rows, 2}}, 1};
    static const uint64_t values[] = {0, 1, UINT64_C(1) << 40, UINT64_MAX};
    char why[CONDITION_WHY_BYTES];
    struct condition c;
    if (size > TEXT_BYTES_MAX)
        return 0;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (condition_parse(text, &figures, &c, why)) {
        require(c.figure.field == &rows[0] || c.figure.field == &rows[1]);
        for (size_t i = 0; i < 16; i++) {
            uint64_t baseline = values[i / 4], bound = condition_bound(&c, baseline);
            require(!c.is_of_baseline ||
                    (c.is_less ? bound <= baseline : bound >= baseline));
            condition_holds(&c, values[i % 4], baseline);
        }
    } else {
        require(why[0] != '\0' && strlen(why) < sizeof why);
    }
    free(text);
    return 0;
}
