/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing of PYTORCH_CUDA_ALLOC_CONF as PyTorch does it.
 *
 * Source: c10/core/AllocatorConfig.{h,cpp} and c10/cuda/CUDAAllocatorConfig.{h,cpp}, main at
 * 2.15.0a0. PyTorch's parser is lenient. A string copied from a running job must mean the same
 * here, so this parser is equally lenient:
 *
 *   tokens     each of `,` `:` `[` `]` is a token, and so is all text between two of them;
 *              white space is dropped even inside a token ("T rue" is True)
 *   marks      where a mark is expected, any token is skipped unread; only the end of the text
 *              is an error
 *   numbers    as strtoull and strtod: text after the number is ignored, "-1" wraps around
 *   passes     three: large_segment_size_mb alone (any token that reads so, even in the place
 *              of a value), then the options of all accelerators, then CUDA's own; each of the
 *              last two skips the other's values
 *   resets     each string resets max_split_size, the roundup table and the garbage collection
 *              threshold, and sets the rounding slack to the large segment size; all other
 *              options keep their values
 *
 * torch_conf_reader.h has tokens, marks and numbers; this file has the options and the passes.
 */
#include "place/torch/torch.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "place/torch/torch_conf_reader.h"

#define ROUNDUP_COUNT 16u
#define MIB_MAX (UINT64_MAX / DRYI_MIB)
/* PyTorch's kMinLargeAlloc; the option must exceed it. */
#define LARGE_SEGMENT_MIB_MIN 10u
#define REGISTER_THREADS_MAX 128u

/* ---- options ---- */

enum pass { PASS_EVERY, PASS_CUDA };

struct option;
/* Read a value. r->now is its first token on entry, and its last on return. */
typedef enum dry_status (*read_option)(struct dryi_conf_reader *r,
                                       const struct option *option);

struct option {
    const char *key;
    enum pass pass;
    read_option read;
    size_t offset; /* in struct dryi_torch_conf, or DROPPED */
};
#define DROPPED SIZE_MAX
#define IN_CONF(field) offsetof(struct dryi_torch_conf, field)

static void
store(struct dryi_conf_reader *r, const struct option *option, const void *value,
      size_t bytes)
{
    DRYI_ASSERT_SLOW(option->offset == DROPPED ||
                     option->offset + bytes <= sizeof *r->conf);
    if (option->offset != DROPPED)
        memcpy((char *)r->conf + option->offset, value, bytes);
}

static enum dry_status
read_bool(struct dryi_conf_reader *r, const struct option *option)
{
    bool value = dryi_conf_is(r, r->now, "True");
    if (!value && !dryi_conf_is(r, r->now, "False")) {
        char word[DRYI_CONF_WORD_BYTES];
        dryi_conf_copy(r, r->now, word, sizeof word);
        return dryi_fail_at(r->err, DRY_ERR_FORMAT, r->now.begin,
                            "Expected 'True' or 'False' at index %zu in ConfigTokenizer "
                            "but got '%s'",
                            r->index, word);
    }
    store(r, option, &value, sizeof value);
    return DRY_OK;
}

/* Convert MiB to bytes; as in PyTorch, a value too large becomes the maximum. */
static enum dry_status
read_mib(struct dryi_conf_reader *r, const struct option *option)
{
    uint64_t mib;
    enum dry_status status = dryi_conf_read_u64(r, r->now, &mib);
    if (status != DRY_OK)
        return status;
    uint64_t bytes = (mib < MIB_MAX ? mib : MIB_MAX) * DRYI_MIB;
    store(r, option, &bytes, sizeof bytes);
    return DRY_OK;
}

static enum dry_status
read_large_segment(struct dryi_conf_reader *r, const struct option *option)
{
    uint64_t mib;
    enum dry_status status = dryi_conf_read_u64(r, r->now, &mib);
    if (status != DRY_OK)
        return status;
    if (mib <= LARGE_SEGMENT_MIB_MIN)
        return dryi_conf_fail_value(
            r, r->now, "CachingAllocator option large_segment_size_mb must be > 10 MB");
    return read_mib(r, option);
}

/* Read max_split_size_mb or max_non_split_rounding_mb, neither below the large segment size. */
static enum dry_status
read_split(struct dryi_conf_reader *r, const struct option *option)
{
    uint64_t mib;
    enum dry_status status = dryi_conf_read_u64(r, r->now, &mib);
    if (status != DRY_OK)
        return status;
    uint64_t least = r->conf->large_segment_size / DRYI_MIB;
    bool equal_allowed = r->rules->split_min_allowed;
    if (mib < least || (mib == least && !equal_allowed))
        return dryi_fail_at(
            r->err, DRY_ERR_FORMAT, r->now.begin,
            "CachingAllocator option %s too small, must be %s %llu, got %llu",
            option->key, equal_allowed ? ">=" : ">", (unsigned long long)least,
            (unsigned long long)mib);
    return read_mib(r, option);
}

static enum dry_status
read_gc_threshold(struct dryi_conf_reader *r, const struct option *option)
{
    double value = 0;
    enum dry_status status = dryi_conf_read_double(r, r->now, &value);
    if (status != DRY_OK)
        return status;
    if (!(value > 0.0 && value < 1.0)) /* written so that NaN fails */
        return dryi_conf_fail_value(
            r, r->now, "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
    store(r, option, &value, sizeof value);
    return DRY_OK;
}

static enum dry_status
read_fraction(struct dryi_conf_reader *r, const struct option *option)
{
    double value = 0;
    enum dry_status status = dryi_conf_read_double(r, r->now, &value);
    if (status != DRY_OK)
        return status;
    if (!(value >= 0.0 && value <= 1.0))
        return dryi_conf_fail_value(
            r, r->now, "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
    store(r, option, &value, sizeof value);
    return DRY_OK;
}

static void
fill_roundup(struct dryi_conf_reader *r, size_t begin, size_t end, uint64_t divisions)
{
    DRYI_ASSERT_SLOW(begin <= end && end <= ROUNDUP_COUNT);
    for (size_t i = begin; i < end; i++)
        r->conf->roundup_power2_divisions[i] = divisions;
}

struct roundup_list {
    size_t last; /* index of the last listed interval */
    bool begun;
};

/* Read one `key:divisions`; the key is in MiB, or `>` for all above the last interval. */
static enum dry_status
read_roundup_entry(struct dryi_conf_reader *r, struct roundup_list *list)
{
    struct dryi_conf_token key = r->now;
    if (!dryi_conf_next(r) || !dryi_conf_next(r))
        return dryi_conf_fail_end(r);
    uint64_t divisions, mib;
    enum dry_status status = dryi_conf_read_u64(r, r->now, &divisions);
    if (status != DRY_OK)
        return status;
    if (divisions != 0 && !dryi_is_power_of_two(divisions))
        return dryi_conf_fail_value(
            r, r->now,
            "For roundups, the divisions has to be power of 2 or 0 to "
            "disable roundup");
    if (dryi_conf_is(r, key, ">")) {
        fill_roundup(r, list->last + !r->rules->roundup_rest_takes_last, ROUNDUP_COUNT,
                     divisions);
        return DRY_OK;
    }
    if ((status = dryi_conf_read_u64(r, key, &mib)) != DRY_OK)
        return status;
    if (!dryi_is_power_of_two(mib))
        return dryi_conf_fail_value(r, key,
                                    "For roundups, the intervals have to be power of 2");
    size_t index = dryi_log2_floor(mib);
    index = index < ROUNDUP_COUNT ? index : ROUNDUP_COUNT - 1;
    if (!list->begun)
        fill_roundup(r, 0, index, divisions);
    r->conf->roundup_power2_divisions[index] = divisions;
    *list = (struct roundup_list){.last = index, .begun = true};
    return DRY_OK;
}

static enum dry_status
fail_bracket(struct dryi_conf_reader *r)
{
    return dryi_fail_at(r->err, DRY_ERR_FORMAT, r->length,
                        "Expected closing bracket ']' in ConfigTokenizer but reached end "
                        "of config");
}

static enum dry_status
read_roundup_list(struct dryi_conf_reader *r)
{
    struct roundup_list list = {0};
    while (dryi_conf_next(r)) {
        if (dryi_conf_is(r, r->now, "]"))
            return DRY_OK;
        enum dry_status status = read_roundup_entry(r, &list);
        if (status != DRY_OK)
            return status;
        struct dryi_conf_token after;
        if (!dryi_conf_peek(r, &after))
            return dryi_conf_fail_end(r);
        if (!dryi_conf_is(r, after, "]"))
            (void)dryi_conf_next(r); /* normally a comma */
    }
    return fail_bracket(r);
}

static enum dry_status
read_roundup(struct dryi_conf_reader *r, const struct option *option)
{
    (void)option;
    if (dryi_conf_is(r, r->now, "["))
        return read_roundup_list(r);
    uint64_t divisions;
    enum dry_status status = dryi_conf_read_u64(r, r->now, &divisions);
    if (status != DRY_OK)
        return status;
    if (!dryi_is_power_of_two(divisions))
        return dryi_conf_fail_value(r, r->now,
                                    "For roundups, the divisions has to be power of 2");
    fill_roundup(r, 0, ROUNDUP_COUNT, divisions);
    return DRY_OK;
}

static enum dry_status
read_backend(struct dryi_conf_reader *r, const struct option *option)
{
    (void)option;
    if (dryi_conf_is(r, r->now, "native"))
        return DRY_OK;
    if (dryi_conf_is(r, r->now, "cudaMallocAsync"))
        return dryi_fail_at(r->err, DRY_ERR_UNSUPPORTED, r->now.begin,
                            "backend:cudaMallocAsync is the driver's own allocator and "
                            "cannot be replayed; native can");
    return dryi_conf_fail_value(
        r, r->now, "Unknown allocator backend, options are native and cudaMallocAsync");
}

static enum dry_status
read_register_threads(struct dryi_conf_reader *r, const struct option *option)
{
    (void)option;
    uint64_t threads;
    enum dry_status status = dryi_conf_read_u64(r, r->now, &threads);
    if (status != DRY_OK)
        return status;
    if (!dryi_is_power_of_two(threads))
        return dryi_conf_fail_value(r, r->now,
                                    "Number of register threads has to be power of 2");
    if (threads > REGISTER_THREADS_MAX)
        return dryi_conf_fail_value(
            r, r->now, "Number of register threads should be less than or equal to 128");
    return DRY_OK;
}

static enum dry_status
read_pinned_reserve(struct dryi_conf_reader *r, const struct option *option)
{
    (void)option;
    uint64_t mib = 0;
    enum dry_status status = dryi_conf_read_u64(r, r->now, &mib);
    if (status == DRY_OK && mib == 0)
        return dryi_conf_fail_value(
            r, r->now, "Pinned reserve segment size has to be greater than 0");
    return status;
}

/*
 * Read "0.5" (of the device) or "40G". PyTorch uses a C++ stream: decimal, complete, finite and
 * positive; it warns of any other text and ignores it. False: ignore the option.
 */
static bool
read_reserve(const struct dryi_conf_reader *r, struct dryi_conf_token token, bool *is_gib,
             double *value)
{
    char text[DRYI_CONF_NUMBER_BYTES];
    size_t count = dryi_conf_copy(r, token, text, sizeof text);
    *is_gib = count > 0 && (text[count - 1] == 'G' || text[count - 1] == 'g');
    if (*is_gib)
        text[--count] = '\0';
    if (count == 0 || strspn(text, "0123456789.+-eE") != count)
        return false;
    int saved_errno = errno;
    char *end;
    *value = dryi_conf_strtod(text, &end);
    errno = saved_errno;
    return end == text + count && isfinite(*value) && *value > 0.0;
}

static enum dry_status
read_expandable_reserve(struct dryi_conf_reader *r, const struct option *option)
{
    (void)option;
    bool is_gib;
    double value;
    if (!read_reserve(r, r->now, &is_gib, &value))
        return DRY_OK;
    double bytes = value * (double)DRYI_GIB;
    uint64_t capped = bytes >= 0x1p64 ? UINT64_MAX : (uint64_t)bytes;
    r->conf->expandable_reserve_fraction = is_gib ? 0.0 : value;
    r->conf->expandable_reserve_bytes = is_gib ? capped : 0;
    return DRY_OK;
}

/* Check `[name:value,...]`, and ignore its values: streams have no classes here. */
static enum dry_status
read_reserve_by_class(struct dryi_conf_reader *r, const struct option *option)
{
    (void)option; /* r->now is assumed to be the opening bracket */
    struct dryi_conf_token after;
    for (;;) {
        if (!dryi_conf_peek(r, &after))
            return dryi_conf_fail_end(r);
        if (dryi_conf_is(r, after, "]"))
            break;
        if (!dryi_conf_next(r) || !dryi_conf_next(r) || !dryi_conf_next(r) ||
            !dryi_conf_peek(r, &after))
            return dryi_conf_fail_end(r);
        if (dryi_conf_is(r, after, ","))
            (void)dryi_conf_next(r);
    }
    (void)dryi_conf_next(r);
    return DRY_OK;
}

static const struct option large_segment_option = {
    "large_segment_size_mb", PASS_EVERY, read_large_segment, IN_CONF(large_segment_size)};

/* `read` NULL: the value was read in the first pass, and is skipped here. */
static const struct option options[] = {
    {"large_segment_size_mb", PASS_EVERY, NULL, DROPPED},
    {"max_split_size_mb", PASS_EVERY, read_split, IN_CONF(max_split_size)},
    {"max_non_split_rounding_mb", PASS_EVERY, read_split,
     IN_CONF(max_non_split_rounding_size)},
    {"garbage_collection_threshold", PASS_EVERY, read_gc_threshold,
     IN_CONF(garbage_collection_threshold)},
    {"roundup_power2_divisions", PASS_EVERY, read_roundup, DROPPED},
    {"expandable_segments", PASS_EVERY, read_bool, IN_CONF(expandable_segments)},
    {"pinned_use_background_threads", PASS_EVERY, read_bool, DROPPED},
    {"pinned_max_round_threshold_mb", PASS_EVERY, read_mib, DROPPED},
    {"pinned_max_cached_size_mb", PASS_EVERY, read_mib, DROPPED},
    {"backend", PASS_CUDA, read_backend, DROPPED},
    {"release_lock_on_cudamalloc", PASS_CUDA, read_bool, DROPPED},
    {"release_lock_on_hipmalloc", PASS_CUDA, read_bool, DROPPED},
    {"pinned_use_cuda_host_register", PASS_CUDA, read_bool, DROPPED},
    {"pinned_use_hip_host_register", PASS_CUDA, read_bool, DROPPED},
    {"pinned_num_register_threads", PASS_CUDA, read_register_threads, DROPPED},
    {"pinned_reserve_segment_size_mb", PASS_CUDA, read_pinned_reserve, DROPPED},
    {"pinned_free_catch_all", PASS_CUDA, read_bool, DROPPED},
    {"graph_capture_record_stream_reuse", PASS_CUDA, read_bool, DROPPED},
    {"per_process_memory_fraction", PASS_CUDA, read_fraction,
     IN_CONF(per_process_memory_fraction)},
    {"throw_on_cudamalloc_oom", PASS_CUDA, read_bool, IN_CONF(throw_on_cudamalloc_oom)},
    {"expandable_segments_reserve", PASS_CUDA, read_expandable_reserve, DROPPED},
    {"expandable_segments_reserve_by_class", PASS_CUDA, read_reserve_by_class, DROPPED},
};
#define OPTION_COUNT (sizeof options / sizeof *options)

static const struct option *
find_option(const struct dryi_conf_reader *r, struct dryi_conf_token key)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (dryi_conf_is(r, key, options[i].key))
            return &options[i];
    }
    return NULL;
}

/* ---- passes ---- */

/* Move from the key to its value, two tokens on; the token between is not checked. */
static enum dry_status
enter_value(struct dryi_conf_reader *r)
{
    return dryi_conf_next(r) && dryi_conf_next(r) ? DRY_OK : dryi_conf_fail_end(r);
}

static enum dry_status
skip_value(struct dryi_conf_reader *r)
{
    if (!dryi_conf_is(r, r->now, "["))
        return DRY_OK;
    while (dryi_conf_next(r)) {
        if (dryi_conf_is(r, r->now, "]"))
            return DRY_OK;
    }
    return fail_bracket(r);
}

static enum dry_status
read_large_segments(struct dryi_conf_reader *r)
{
    dryi_conf_rewind(r);
    while (dryi_conf_next(r)) {
        if (!dryi_conf_is(r, r->now, large_segment_option.key))
            continue;
        enum dry_status status = enter_value(r);
        if (status == DRY_OK)
            status = large_segment_option.read(r, &large_segment_option);
        if (status != DRY_OK)
            return status;
    }
    return DRY_OK;
}

static enum dry_status
read_options(struct dryi_conf_reader *r, enum pass pass)
{
    dryi_conf_rewind(r);
    while (dryi_conf_next(r)) {
        const struct option *option = find_option(r, r->now);
        if (!option)
            return dryi_conf_fail_value(r, r->now,
                                        "Unrecognized key in the allocator config");
        enum dry_status status = enter_value(r);
        if (status != DRY_OK)
            return status;
        bool is_ours = option->pass == pass && option->read;
        status = is_ours ? option->read(r, option) : skip_value(r);
        if (status != DRY_OK)
            return status;
        (void)dryi_conf_next(r); /* normally a comma */
    }
    return DRY_OK;
}

static void
reset(struct dryi_torch_conf *conf)
{
    conf->max_split_size = UINT64_MAX;
    conf->garbage_collection_threshold = 0.0;
    memset(conf->roundup_power2_divisions, 0, sizeof conf->roundup_power2_divisions);
}

void
dryi_torch_conf_init(struct dryi_torch_conf *conf)
{
    *conf = (struct dryi_torch_conf){
        .large_segment_size = 20 * DRYI_MIB,
        .max_non_split_rounding_size = 20 * DRYI_MIB,
        .per_process_memory_fraction = 1.0,
    };
    reset(conf);
}

enum dry_status
dryi_torch_conf_parse(const char *text, size_t length,
                      const struct dryi_torch_rules *rules, struct dryi_torch_conf *conf,
                      struct dry_error *err)
{
    struct dryi_torch_conf parsed = *conf;
    struct dryi_conf_reader r = {
        .text = text,
        .length = length,
        .rules = rules ? rules : dryi_torch_rules_newest(),
        .conf = &parsed,
        .err = err,
    };
    reset(&parsed);
    enum dry_status status = read_large_segments(&r);
    parsed.max_non_split_rounding_size = parsed.large_segment_size;
    if (status == DRY_OK)
        status = read_options(&r, PASS_EVERY);
    if (status == DRY_OK)
        status = read_options(&r, PASS_CUDA);
    if (status == DRY_OK)
        *conf = parsed;
    return status;
}

bool
dryi_torch_conf_has(const char *name, size_t length)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (strlen(options[i].key) == length && memcmp(options[i].key, name, length) == 0)
            return true;
    }
    return false;
}

struct dry_trace_settings
dryi_torch_conf_settings(const struct dryi_torch_conf *conf)
{
    struct dry_trace_settings settings = {
        .known = true,
        .conf = DRY_NONE,
        .max_split_size =
            conf->max_split_size > INT64_MAX ? -1 : (int64_t)conf->max_split_size,
        .garbage_collection_threshold = conf->garbage_collection_threshold,
        .expandable_segments = conf->expandable_segments,
        .roundup_known = true,
        .extra = DRY_NONE,
    };
    memcpy(settings.roundup_power2_divisions, conf->roundup_power2_divisions,
           sizeof settings.roundup_power2_divisions);
    return settings;
}
