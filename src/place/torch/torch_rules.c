/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rules of PyTorch's releases: one row per release that changed a rule. A release has the rules
 * of the last row that is not newer.
 */

#include "place/torch/torch.h"

#include "base/assert.h"
#include "base/fail.h"

/* The newest release examined; the last row holds up to it. */
#define RELEASE_NEWEST "2.15"

/* Oldest first. doc/torch-rules.md has the evidence for each row. */
static const struct dryi_torch_rules all_rules[] = {
    {.release = "2.0",
     .last = "2.5",
     .change = "",
     .scope_is_capture = true,
     .roundup_rest_takes_last = true,
     .fallback_expands = true,
     .fallback_is_last = true},
    {.release = "2.6",
     .last = "2.9",
     .change = "max_non_split_rounding_mb says how much larger an oversize block may be",
     .slack_is_option = true,
     .scope_is_capture = true,
     .roundup_rest_takes_last = true,
     .fallback_expands = true,
     .fallback_is_last = true},
    {.release = "2.10",
     .last = "2.10",
     .change =
         "the innermost of nested pools serves; max_split_size_mb may be 20; the last "
         "roundup no longer takes what is above it; private pools lend no "
         "expandable blocks",
     .slack_is_option = true,
     .scopes_last_first = true,
     .scope_is_capture = true,
     .split_min_allowed = true,
     .fallback_is_last = true},
    {.release = "2.11",
     .last = "2.11",
     .change = "private pools lend memory before a request is tried again, not after",
     .slack_is_option = true,
     .scopes_last_first = true,
     .scope_is_capture = true,
     .split_min_allowed = true},
    {.release = "2.12",
     .last = "2.12",
     .change = "of free blocks of one size the one made first is taken, not the one with "
               "the lowest address",
     .order_by_block = true,
     .slack_is_option = true,
     .scopes_last_first = true,
     .scope_is_capture = true,
     .split_min_allowed = true},
    {.release = "2.13",
     .last = RELEASE_NEWEST,
     .change = "of free blocks of one size that of the oldest segment is taken; freed "
               "blocks no longer wait while a private pool is open",
     .order_by_counter = true,
     .slack_is_option = true,
     .scopes_last_first = true,
     .split_min_allowed = true},
};
#define RULES_COUNT (sizeof all_rules / sizeof *all_rules)

struct version {
    unsigned major, minor;
};

/* Read at most four digits. Returns the end of the number, or NULL. */
static const char *
read_number(const char *at, unsigned *number)
{
    unsigned n = 0;
    const char *begin = at;
    for (; *at >= '0' && *at <= '9' && at - begin < 4; at++)
        n = n * 10 + (unsigned)(*at - '0');
    *number = n;
    return at == begin ? NULL : at;
}

/* Read "2.11"; a suffix such as ".1", "a0", "rc1" or "+cu128" is ignored. */
static bool
read_version(const char *release, struct version *v)
{
    const char *at = read_number(release, &v->major);
    if (!at || *at != '.')
        return false;
    at = read_number(at + 1, &v->minor);
    return at && !(*at >= '0' && *at <= '9');
}

static bool
is_not_after(struct version a, struct version b)
{
    return a.major != b.major ? a.major < b.major : a.minor <= b.minor;
}

const struct dryi_torch_rules *
dryi_torch_rules_find(const char *release)
{
    struct version wanted, newest;
    if (!release || !read_version(release, &wanted) ||
        !read_version(RELEASE_NEWEST, &newest) || !is_not_after(wanted, newest))
        return NULL;
    const struct dryi_torch_rules *found = NULL;
    for (size_t i = 0; i < RULES_COUNT; i++) {
        struct version row;
        if (read_version(all_rules[i].release, &row) && is_not_after(row, wanted))
            found = &all_rules[i];
    }
    return found;
}

enum dry_status
dryi_torch_rules_refuse(const char *release, struct dry_error *err)
{
    DRYI_ASSERT_SLOW(!dryi_torch_rules_find(release));
    return dryi_fail(
        err, DRY_ERR_ARGUMENT,
        "compat '%.32s' is not a release of PyTorch from %s to %s, the newest "
        "known",
        release, all_rules[0].release, RELEASE_NEWEST);
}

const struct dryi_torch_rules *
dryi_torch_rules_all(size_t *count)
{
    *count = RULES_COUNT;
    return all_rules;
}

const struct dryi_torch_rules *
dryi_torch_rules_newest(void)
{
    return &all_rules[RULES_COUNT - 1];
}
