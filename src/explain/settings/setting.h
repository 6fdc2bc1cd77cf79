/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_SETTING_H
#define DRYI_EXPLAIN_SETTING_H

/* A point of the search space: the options that affect placement, as numbers. An all-zero
   setting is PyTorch's default. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "place/torch/torch.h"

struct dryi_setting {
    bool expandable;
    bool has_roundup;
    uint8_t divisions[16]; /* roundup_power2_divisions by interval */
    uint8_t gc_percent;    /* garbage_collection_threshold in percent; 0: off */
    uint8_t limit_percent; /* per_process_memory_fraction in percent; 0: not set */
    uint32_t split_mib;    /* max_split_size_mb; 0: unlimited */
    uint32_t slack_mib;    /* max_non_split_rounding_mb; 0: not set */
    uint32_t large_mib;    /* large_segment_size_mb; 0: not set */
};

/* Set the same divisions for all intervals. */
void dryi_setting_set_roundup(struct dryi_setting *setting, uint8_t divisions);

/* Buffer sizes that hold any setting, the kept options, and both. */
#define DRYI_SETTING_BYTES 384u
#define DRYI_KEPT_BYTES 256u
#define DRYI_CONF_BYTES (DRYI_SETTING_BYTES + DRYI_KEPT_BYTES)

/* Format the option string; "" for the default. */
void dryi_setting_format(const struct dryi_setting *setting,
                         char text[DRYI_SETTING_BYTES]);

/* Convert the searched options of `conf`. Returns false if a setting cannot express them. */
bool dryi_setting_of_conf(const struct dryi_torch_conf *conf,
                          struct dryi_setting *setting);

/* Return the first release that has all the options, "" if every release does. */
const char *dryi_setting_since(const struct dryi_setting *setting);
uint32_t dryi_setting_caveats(const struct dryi_setting *setting);

/* Return whether both configurations place all requests alike. */
bool dryi_setting_is_same_conf(const struct dryi_torch_conf *a,
                               const struct dryi_torch_conf *b);

/*
 * Copy the options of a recorded string that are not searched, as written. The memory fraction is
 * dropped unless `with_fraction`. Returns false, with `kept` "", if the string cannot be parsed
 * safely: it is longer than any real one, or has characters that no option has. `kept` consists of
 * letters, digits and `_.,:[]+->` only.
 */
bool dryi_setting_keep(const char *recorded, bool with_fraction,
                       char kept[DRYI_KEPT_BYTES]);

#endif
