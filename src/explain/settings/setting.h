/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_SETTING_H
#define DRYI_EXPLAIN_SETTING_H

/*
 * A point of the search: the options that decide where things go, as numbers, with its text
 * and what is known against it. An all-zero setting is PyTorch's default.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "place/torch/torch.h"

struct dryi_setting {
    bool expandable;
    bool has_roundup;
    uint8_t divisions[16]; /* by interval */
    uint8_t gc_percent;    /* garbage_collection_threshold; 0: off */
    uint8_t limit_percent; /* per_process_memory_fraction beside it; 0: not stated */
    uint32_t split_mib;    /* max_split_size_mb; 0: unlimited */
    uint32_t slack_mib;    /* max_non_split_rounding_mb; 0: not stated */
    uint32_t large_mib;    /* large_segment_size_mb; 0: not stated */
};

/* The same divisions for every size. */
void dryi_setting_set_roundup(struct dryi_setting *setting, uint8_t divisions);

/* Room for any setting, and for options that are kept beside it. */
#define DRYI_SETTING_BYTES 384u
#define DRYI_KEPT_BYTES 256u
#define DRYI_CONF_BYTES (DRYI_SETTING_BYTES + DRYI_KEPT_BYTES)

/* The option string; "" is the default. */
void dryi_setting_format(const struct dryi_setting *setting,
                         char text[DRYI_SETTING_BYTES]);

/* Take from the settings what is searched; false if they cannot be put as a setting. */
bool dryi_setting_of_conf(const struct dryi_torch_conf *conf,
                          struct dryi_setting *setting);

/* The first release that has all the options, "" if all do. */
const char *dryi_setting_since(const struct dryi_setting *setting);
uint32_t dryi_setting_caveats(const struct dryi_setting *setting);

/* Would both place everything alike? */
bool dryi_setting_is_same_conf(const struct dryi_torch_conf *a,
                               const struct dryi_torch_conf *b);

/*
 * The options of a recorded string that are not searched, as they were written, and
 * without the memory fraction if so wished. False: the string cannot be taken apart
 * safely (it is longer than any real one, or holds what no option does), and `kept` is
 * "". The kept text consists of letters, digits and `_.,:[]+->` alone.
 */
bool dryi_setting_keep(const char *recorded, bool with_fraction,
                       char kept[DRYI_KEPT_BYTES]);

#endif
