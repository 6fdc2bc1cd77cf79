/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are an option string; what is accepted obeys the bounds that are documented.
 */
#include <stdlib.h>

#include "base/bits.h"
#include "place/torch/torch.h"
#include "support/fuzz.h"
#include "support/torch_conf.h"

static void
require(bool condition)
{
    if (!condition)
        abort();
}

static void
check_bounds(const struct dryi_torch_conf *c)
{
    require(c->large_segment_size > 10 * DRYI_MIB);
    require(c->large_segment_size % DRYI_MIB == 0);
    require(c->max_split_size >= c->large_segment_size);
    require(c->max_non_split_rounding_size >= c->large_segment_size);
    require(c->garbage_collection_threshold >= 0 && c->garbage_collection_threshold < 1);
    require(c->per_process_memory_fraction >= 0 && c->per_process_memory_fraction <= 1);
    require(c->expandable_reserve_fraction >= 0);
    for (int i = 0; i < 16; i++)
        require(c->roundup_power2_divisions[i] == 0 ||
                dryi_is_power_of_two(c->roundup_power2_divisions[i]));
}

/* The first byte chooses the rules; reading the rest twice gives the same again. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t count;
    const struct dryi_torch_rules *rules = dryi_torch_rules_all(&count);
    rules += data[0] % count;
    const char *text = (const char *)data + 1;
    struct dryi_torch_conf conf, before, again;
    struct dry_error err = {.text = ""};
    dryi_torch_conf_init(&conf);
    before = conf;
    enum dry_status status = dryi_torch_conf_parse(text, size - 1, rules, &conf, &err);
    check_bounds(&conf);
    if (status != DRY_OK) {
        require(is_same_conf(&conf, &before));
        require(err.status == status && err.text[0] != '\0' && err.offset <= size - 1);
        return 0;
    }
    again = conf;
    require(dryi_torch_conf_parse(text, size - 1, rules, &again, NULL) == DRY_OK);
    require(is_same_conf(&conf, &again));
    return 0;
}
