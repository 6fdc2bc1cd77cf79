/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PYTORCH_CUDA_ALLOC_CONF, read the way PyTorch reads it.
 *
 * Source: c10/core/AllocatorConfig.{h,cpp} and c10/cuda/CUDAAllocatorConfig.{h,cpp}, main
 * at 2.15.0a0. The language is looser than it looks, and a string copied from a running
 * job must mean here what it meant there, so the looseness is kept:
 *
 *   tokens     `,` `:` `[` `]` each stand alone, everything between them is one token, and
 *              white space is dropped even inside a token ("T rue" is True)
 *   marks      where a mark is expected, whatever stands there is skipped unread; only
 *              running out of tokens is an error
 *   numbers    as strtoull and strtod: what follows the number is ignored, "-1" wraps
 *   passes     three: large_segment_size_mb alone (any token that reads so, even where a
 *              value stands), then the options of every accelerator, then CUDA's own; each
 *              of the last two steps over the other's values
 *   resets     max_split_size, the roundup table and the garbage collection threshold start
 *              afresh with every string, the rounding slack becomes the large segment size;
 *              all else keeps what an earlier string gave it
 *
 * A token is a range of the text, read in place: parsing takes no memory and is linear in
 * the text. The text may hold anything, zero bytes too.
 */
#include "place/torch/torch.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/fail.h"

#define ROUNDUP_COUNT 16u
#define MIB_MAX (UINT64_MAX / DRYI_MIB)
#define LARGE_SEGMENT_MIB_MIN 10u /* kMinLargeAlloc: must be exceeded */
#define REGISTER_THREADS_MAX 128u

/* ---- rules ---- */

/* doc/torch-rules.md says what each row rests on. Oldest first. */
static const struct dryi_torch_rules all_rules[] = {
    {.release = "2.0",
     .scope_is_capture = true,
     .roundup_rest_takes_last = true,
     .fallback_expands = true,
     .fallback_is_last = true},
    {.release = "2.6",
     .slack_is_option = true,
     .scope_is_capture = true,
     .roundup_rest_takes_last = true,
     .fallback_expands = true,
     .fallback_is_last = true},
    {.release = "2.10",
     .slack_is_option = true,
     .scopes_last_first = true,
     .scope_is_capture = true,
     .split_min_allowed = true,
     .fallback_is_last = true},
    {.release = "2.11",
     .slack_is_option = true,
     .scopes_last_first = true,
     .scope_is_capture = true,
     .split_min_allowed = true},
    {.release = "2.12",
     .order_by_block = true,
     .slack_is_option = true,
     .scopes_last_first = true,
     .scope_is_capture = true,
     .split_min_allowed = true},
    {.release = "2.13",
     .order_by_counter = true,
     .slack_is_option = true,
     .scopes_last_first = true,
     .split_min_allowed = true},
};
#define RULES_COUNT (sizeof all_rules / sizeof *all_rules)

/* The newest release that was looked at: it has the rules of the last row. */
#define RELEASE_NEWEST "2.15"

struct version {
    unsigned major, minor;
};

/* At most four digits, which is more than a release will need. */
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

/* "2.11", and after it nothing, ".1", "a0", "rc1", "+cu128"...: not part of the rule. */
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

/* ---- tokens ---- */

/* Bytes [begin, end) of the text, white space among them not counting. */
struct token {
    size_t begin, end;
};

struct reader {
    const char *text;
    size_t length;
    size_t at;    /* where the next token begins or white space before it */
    size_t index; /* of `now`, as PyTorch numbers tokens in its messages */
    struct token now;
    const struct dryi_torch_rules *rules;
    struct dryi_torch_conf *conf;
    struct dry_error *err;
};

/* isspace() of the C locale, whatever the program's is. */
static bool
is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
is_mark(char c)
{
    return c == ',' || c == ':' || c == '[' || c == ']';
}

static bool
peek(const struct reader *r, struct token *token)
{
    size_t at = r->at;
    while (at < r->length && is_space(r->text[at]))
        at++;
    if (at == r->length)
        return false;
    token->begin = at;
    if (is_mark(r->text[at])) {
        token->end = at + 1;
        return true;
    }
    while (at < r->length && !is_mark(r->text[at]))
        at++;
    token->end = at;
    return true;
}

static bool
next(struct reader *r)
{
    struct token token;
    if (!peek(r, &token))
        return false;
    r->now = token;
    r->at = token.end;
    r->index++;
    return true;
}

static void
rewind_reader(struct reader *r)
{
    r->at = 0;
    r->index = SIZE_MAX; /* the first next() makes it 0 */
}

/* The next byte of a token that is not white space; false at its end. */
static bool
next_byte(const struct reader *r, struct token *rest, char *c)
{
    while (rest->begin < rest->end && is_space(r->text[rest->begin]))
        rest->begin++;
    if (rest->begin == rest->end)
        return false;
    *c = r->text[rest->begin++];
    return true;
}

static bool
is_token(const struct reader *r, struct token token, const char *word)
{
    char c;
    for (; *word; word++) {
        if (!next_byte(r, &token, &c) || c != *word)
            return false;
    }
    return !next_byte(r, &token, &c);
}

/* At most `capacity` - 1 bytes of a token, terminated. */
static size_t
copy_token(const struct reader *r, struct token token, char *buffer, size_t capacity)
{
    size_t count = 0;
    while (count + 1 < capacity && next_byte(r, &token, &buffer[count]))
        count++;
    buffer[count] = '\0';
    return count;
}

/* ---- errors ---- */

#define WORD_BYTES 48 /* of a token, in a message */

static enum dry_status
fail_end(struct reader *r)
{
    return dryi_fail_at(r->err, DRY_ERR_FORMAT, r->length,
                        "allocator settings end where token %zu is expected "
                        "(Index out of bounds in ConfigTokenizer)",
                        r->index + 1);
}

static enum dry_status
fail_value(struct reader *r, struct token token, const char *what)
{
    char word[WORD_BYTES];
    copy_token(r, token, word, sizeof word);
    return dryi_fail_at(r->err, DRY_ERR_FORMAT, token.begin, "%s, got '%s'", what, word);
}

/* ---- values ---- */

/* std::stoull: a sign, decimal digits, anything. */
static enum dry_status
read_u64(struct reader *r, struct token token, uint64_t *value)
{
    struct token rest = token;
    char c;
    bool more = next_byte(r, &rest, &c);
    bool negative = more && c == '-';
    if (more && (c == '-' || c == '+'))
        more = next_byte(r, &rest, &c);
    if (!more || c < '0' || c > '9')
        return fail_value(r, token, "expected a number");
    uint64_t n = 0;
    for (; more && c >= '0' && c <= '9'; more = next_byte(r, &rest, &c)) {
        if (__builtin_mul_overflow(n, UINT64_C(10), &n) ||
            __builtin_add_overflow(n, (uint64_t)(c - '0'), &n))
            return fail_value(r, token, "number out of range, 64 bits at most");
    }
    *value = negative ? UINT64_C(0) - n : n;
    return DRY_OK;
}

/*
 * strtod in the C locale, whatever the program's is: glibc's newlocale() of all of "C"
 * hands out a static object. NaN where even that cannot be had.
 */
static double
c_strtod(const char *text, char **end)
{
    *end = (char *)(uintptr_t)text;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return (double)NAN;
    double value = strtod_l(text, end, c);
    freelocale(c);
    return value;
}

/* More than the 767 digits that can matter to a double; a longer token is read so far. */
#define DOUBLE_BYTES 1024

/* std::stod, which refuses what overflows and what underflows. */
static enum dry_status
read_double(struct reader *r, struct token token, double *value)
{
    char text[DOUBLE_BYTES];
    copy_token(r, token, text, sizeof text);
    int saved_errno = errno;
    errno = 0;
    char *end;
    double v = c_strtod(text, &end);
    bool in_range = errno != ERANGE;
    errno = saved_errno;
    if (end == text)
        return fail_value(r, token, "expected a number");
    if (!in_range)
        return fail_value(r, token, "number out of range");
    *value = v;
    return DRY_OK;
}

/* ---- options ---- */

enum pass { PASS_EVERY, PASS_CUDA };

struct option;
/* Reads from the value token, which is r->now, to the last token of the value. */
typedef enum dry_status (*read_option)(struct reader *r, const struct option *option);

struct option {
    const char *key;
    enum pass pass;
    read_option read;
    size_t offset; /* in struct dryi_torch_conf, or DROPPED */
};
#define DROPPED SIZE_MAX
#define IN_CONF(field) offsetof(struct dryi_torch_conf, field)

static void
store(struct reader *r, const struct option *option, const void *value, size_t bytes)
{
    if (option->offset != DROPPED)
        memcpy((char *)r->conf + option->offset, value, bytes);
}

static enum dry_status
read_bool(struct reader *r, const struct option *option)
{
    bool value = is_token(r, r->now, "True");
    if (!value && !is_token(r, r->now, "False")) {
        char word[WORD_BYTES];
        copy_token(r, r->now, word, sizeof word);
        return dryi_fail_at(r->err, DRY_ERR_FORMAT, r->now.begin,
                            "Expected 'True' or 'False' at index %zu in ConfigTokenizer "
                            "but got '%s'",
                            r->index, word);
    }
    store(r, option, &value, sizeof value);
    return DRY_OK;
}

/* MiB to bytes; PyTorch lowers what would not fit to the largest that does. */
static enum dry_status
read_mib(struct reader *r, const struct option *option)
{
    uint64_t mib;
    enum dry_status status = read_u64(r, r->now, &mib);
    if (status != DRY_OK)
        return status;
    uint64_t bytes = (mib < MIB_MAX ? mib : MIB_MAX) * DRYI_MIB;
    store(r, option, &bytes, sizeof bytes);
    return DRY_OK;
}

static enum dry_status
read_large_segment(struct reader *r, const struct option *option)
{
    uint64_t mib;
    enum dry_status status = read_u64(r, r->now, &mib);
    if (status != DRY_OK)
        return status;
    if (mib <= LARGE_SEGMENT_MIB_MIN)
        return fail_value(
            r, r->now, "CachingAllocator option large_segment_size_mb must be > 10 MB");
    return read_mib(r, option);
}

/* max_split_size_mb and max_non_split_rounding_mb: not below the large segment. */
static enum dry_status
read_split(struct reader *r, const struct option *option)
{
    uint64_t mib;
    enum dry_status status = read_u64(r, r->now, &mib);
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
read_gc_threshold(struct reader *r, const struct option *option)
{
    double value = 0;
    enum dry_status status = read_double(r, r->now, &value);
    if (status != DRY_OK)
        return status;
    if (!(value > 0.0 && value < 1.0)) /* so that NaN fails */
        return fail_value(r, r->now,
                          "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
    store(r, option, &value, sizeof value);
    return DRY_OK;
}

static enum dry_status
read_fraction(struct reader *r, const struct option *option)
{
    double value = 0;
    enum dry_status status = read_double(r, r->now, &value);
    if (status != DRY_OK)
        return status;
    if (!(value >= 0.0 && value <= 1.0))
        return fail_value(r, r->now,
                          "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
    store(r, option, &value, sizeof value);
    return DRY_OK;
}

static void
fill_roundup(struct reader *r, size_t begin, size_t end, uint64_t divisions)
{
    for (size_t i = begin; i < end; i++)
        r->conf->roundup_power2_divisions[i] = divisions;
}

struct roundup_list {
    size_t last; /* index of the last interval listed */
    bool begun;
};

/* One `key:divisions`; the key is in MiB, or `>` for all above the last. */
static enum dry_status
read_roundup_entry(struct reader *r, struct roundup_list *list)
{
    struct token key = r->now;
    if (!next(r) || !next(r))
        return fail_end(r);
    uint64_t divisions, mib;
    enum dry_status status = read_u64(r, r->now, &divisions);
    if (status != DRY_OK)
        return status;
    if (divisions != 0 && !dryi_is_power_of_two(divisions))
        return fail_value(r, r->now,
                          "For roundups, the divisions has to be power of 2 or 0 to "
                          "disable roundup");
    if (is_token(r, key, ">")) {
        fill_roundup(r, list->last + !r->rules->roundup_rest_takes_last, ROUNDUP_COUNT,
                     divisions);
        return DRY_OK;
    }
    if ((status = read_u64(r, key, &mib)) != DRY_OK)
        return status;
    if (!dryi_is_power_of_two(mib))
        return fail_value(r, key, "For roundups, the intervals have to be power of 2");
    size_t index = dryi_log2_floor(mib);
    index = index < ROUNDUP_COUNT ? index : ROUNDUP_COUNT - 1;
    if (!list->begun)
        fill_roundup(r, 0, index, divisions);
    r->conf->roundup_power2_divisions[index] = divisions;
    *list = (struct roundup_list){.last = index, .begun = true};
    return DRY_OK;
}

static enum dry_status
fail_bracket(struct reader *r)
{
    return dryi_fail_at(r->err, DRY_ERR_FORMAT, r->length,
                        "Expected closing bracket ']' in ConfigTokenizer but reached end "
                        "of config");
}

static enum dry_status
read_roundup_list(struct reader *r)
{
    struct roundup_list list = {0};
    while (next(r)) {
        if (is_token(r, r->now, "]"))
            return DRY_OK;
        enum dry_status status = read_roundup_entry(r, &list);
        if (status != DRY_OK)
            return status;
        struct token after;
        if (!peek(r, &after))
            return fail_end(r);
        if (!is_token(r, after, "]"))
            (void)next(r); /* a comma, it is hoped */
    }
    return fail_bracket(r);
}

static enum dry_status
read_roundup(struct reader *r, const struct option *option)
{
    (void)option;
    if (is_token(r, r->now, "["))
        return read_roundup_list(r);
    uint64_t divisions;
    enum dry_status status = read_u64(r, r->now, &divisions);
    if (status != DRY_OK)
        return status;
    if (!dryi_is_power_of_two(divisions))
        return fail_value(r, r->now, "For roundups, the divisions has to be power of 2");
    fill_roundup(r, 0, ROUNDUP_COUNT, divisions);
    return DRY_OK;
}

static enum dry_status
read_backend(struct reader *r, const struct option *option)
{
    (void)option;
    if (is_token(r, r->now, "native"))
        return DRY_OK;
    if (is_token(r, r->now, "cudaMallocAsync"))
        return dryi_fail_at(r->err, DRY_ERR_UNSUPPORTED, r->now.begin,
                            "backend:cudaMallocAsync is the driver's own allocator and "
                            "cannot be replayed; native can");
    return fail_value(
        r, r->now, "Unknown allocator backend, options are native and cudaMallocAsync");
}

static enum dry_status
read_register_threads(struct reader *r, const struct option *option)
{
    (void)option;
    uint64_t threads;
    enum dry_status status = read_u64(r, r->now, &threads);
    if (status != DRY_OK)
        return status;
    if (!dryi_is_power_of_two(threads))
        return fail_value(r, r->now, "Number of register threads has to be power of 2");
    if (threads > REGISTER_THREADS_MAX)
        return fail_value(
            r, r->now, "Number of register threads should be less than or equal to 128");
    return DRY_OK;
}

static enum dry_status
read_pinned_reserve(struct reader *r, const struct option *option)
{
    (void)option;
    uint64_t mib = 0;
    enum dry_status status = read_u64(r, r->now, &mib);
    if (status == DRY_OK && mib == 0)
        return fail_value(r, r->now,
                          "Pinned reserve segment size has to be greater than 0");
    return status;
}

/*
 * "0.5" of the device or "40G". PyTorch reads it with a C++ stream: decimal only, all of
 * it, finite and positive; anything else is warned of there and ignored. False: ignore.
 */
static bool
read_reserve(const struct reader *r, struct token token, bool *is_gib, double *value)
{
    char text[DOUBLE_BYTES];
    size_t count = copy_token(r, token, text, sizeof text);
    *is_gib = count > 0 && (text[count - 1] == 'G' || text[count - 1] == 'g');
    if (*is_gib)
        text[--count] = '\0';
    if (count == 0 || strspn(text, "0123456789.+-eE") != count)
        return false;
    int saved_errno = errno;
    char *end;
    *value = c_strtod(text, &end);
    errno = saved_errno;
    return end == text + count && isfinite(*value) && *value > 0.0;
}

static enum dry_status
read_expandable_reserve(struct reader *r, const struct option *option)
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

/* `[name:value,...]`: streams have no class here, so only the form matters. */
static enum dry_status
read_reserve_by_class(struct reader *r, const struct option *option)
{
    (void)option; /* r->now is taken to be the opening bracket */
    struct token after;
    for (;;) {
        if (!peek(r, &after))
            return fail_end(r);
        if (is_token(r, after, "]"))
            break;
        if (!next(r) || !next(r) || !next(r) || !peek(r, &after))
            return fail_end(r);
        if (is_token(r, after, ","))
            (void)next(r);
    }
    (void)next(r);
    return DRY_OK;
}

static const struct option large_segment_option = {
    "large_segment_size_mb", PASS_EVERY, read_large_segment, IN_CONF(large_segment_size)};

/* A NULL `read` steps over the value: what stands there was read in the first pass. */
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
find_option(const struct reader *r, struct token key)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (is_token(r, key, options[i].key))
            return &options[i];
    }
    return NULL;
}

/* ---- passes ---- */

/* From the key to its value: two tokens on, whatever the first of them is. */
static enum dry_status
enter_value(struct reader *r)
{
    return next(r) && next(r) ? DRY_OK : fail_end(r);
}

static enum dry_status
skip_value(struct reader *r)
{
    if (!is_token(r, r->now, "["))
        return DRY_OK;
    while (next(r)) {
        if (is_token(r, r->now, "]"))
            return DRY_OK;
    }
    return fail_bracket(r);
}

static enum dry_status
read_large_segments(struct reader *r)
{
    rewind_reader(r);
    while (next(r)) {
        if (!is_token(r, r->now, large_segment_option.key))
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
read_options(struct reader *r, enum pass pass)
{
    rewind_reader(r);
    while (next(r)) {
        const struct option *option = find_option(r, r->now);
        if (!option)
            return fail_value(r, r->now, "Unrecognized key in the allocator config");
        enum dry_status status = enter_value(r);
        if (status != DRY_OK)
            return status;
        bool is_ours = option->pass == pass && option->read;
        status = is_ours ? option->read(r, option) : skip_value(r);
        if (status != DRY_OK)
            return status;
        (void)next(r); /* a comma, it is hoped */
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
    struct reader r = {
        .text = text,
        .length = length,
        .rules = rules ? rules : &all_rules[RULES_COUNT - 1],
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
        .known = 1,
        .conf = DRY_NONE,
        .max_split_size =
            conf->max_split_size > INT64_MAX ? -1 : (int64_t)conf->max_split_size,
        .garbage_collection_threshold = conf->garbage_collection_threshold,
        .expandable_segments = conf->expandable_segments,
        .roundup_known = 1,
        .extra = DRY_NONE,
    };
    memcpy(settings.roundup_power2_divisions, conf->roundup_power2_divisions,
           sizeof settings.roundup_power2_divisions);
    return settings;
}
