/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Read the numbers of a message without blanks by a table of phrases. A phrase may be anywhere
 * after the head, unless DRYI_MESSAGE_GAP characters without one precede it. So texts can be read
 * that were shortened, or mixed with another program's output.
 *
 * Wordings: c10/cuda/CUDACachingAllocator.cpp and CUDAMallocAsyncAllocator.cpp,
 * c10/xpu/XPUCachingAllocator.cpp, ATen/mps/MPSAllocator.mm, of each release. Other programs:
 * c10/core/impl/alloc_cpu.cpp, vllm/v1/core/kv_cache_utils.py, xla/tsl/framework, the kernel's
 * mm/oom_kill.c and mm/memcontrol.c.
 */
#include "explain/message/message.h"

#include <string.h>

#include "base/ascii.h"
#include "base/bits.h"

/* --- sizes -------------------------------------------------------------------------------- */

/* Larger numbers are no amount of memory. The limit keeps sums of all
   numbers of a text in int64_t. */
#define BEYOND_BYTES (UINT64_C(1) << 58)
#define WHOLE_DIGITS_MAX 40
#define FRACTION_DIGITS_READ 6

struct decimal {
    uint64_t whole;           /* saturates at UINT64_MAX */
    uint64_t fraction, scale; /* fraction / scale, with scale a power of ten */
};

/* Read all digits at `text`. Returns their number; 0 if there are none, or more
   than WHOLE_DIGITS_MAX. */
static size_t
read_digits(const char *text, size_t length, uint64_t *value)
{
    size_t count = 0;
    *value = 0;
    for (; count < length && dryi_is_digit(text[count]); count++) {
        uint64_t digit = (uint64_t)(text[count] - '0');
        bool fits = *value <= (UINT64_MAX - digit) / 10;
        *value = fits ? *value * 10 + digit : UINT64_MAX;
        if (count == WHOLE_DIGITS_MAX)
            return 0;
    }
    return count;
}

static size_t
read_decimal(const char *text, size_t length, struct decimal *d)
{
    size_t used = read_digits(text, length, &d->whole);
    d->fraction = 0;
    d->scale = 1;
    if (used == 0 || used + 1 >= length || text[used] != '.' ||
        !dryi_is_digit(text[used + 1]))
        return used;
    size_t first = used + 1;
    for (used = first; used < length && dryi_is_digit(text[used]); used++) {
        if (used - first == WHOLE_DIGITS_MAX)
            return 0;
        if (used - first < FRACTION_DIGITS_READ) {
            d->fraction = d->fraction * 10 + (uint64_t)(text[used] - '0');
            d->scale *= 10;
        }
    }
    return used;
}

/* Make a size and the interval that rounds to it. No overflow: whole * unit < 2^58,
   fraction < 10^6, unit <= 2^40. */
static struct dry_message_size
make_size(const struct decimal *d, uint64_t unit)
{
    struct dry_message_size size = {.known = DRY_MESSAGE_BEYOND};
    if (d->whole >= BEYOND_BYTES / unit)
        return size;
    uint64_t base = d->whole * unit, half = 2 * d->scale, f = d->fraction;
    size.known = DRY_MESSAGE_KNOWN;
    size.bytes = base + (2 * f * unit + d->scale) / half;
    size.high = base + (2 * f + 1) * unit / half;
    if (f > 0)
        size.low = base + ((2 * f - 1) * unit + half - 1) / half;
    else
        size.low = base > unit / half ? base - unit / half : 0;
    /* With many digits no whole byte rounds to the printed text: the nearest byte must do. */
    size.low = size.low < size.bytes ? size.low : size.bytes;
    size.high = size.high > size.bytes ? size.high : size.bytes;
    return size;
}

/* Read a size such as "1.95GiB". Returns its length, 0 if `text` does not begin with a size. */
static size_t
read_size(const char *text, size_t length, bool is_binary, struct dry_message_size *size)
{
    static const struct {
        char name[8];
        uint64_t unit, decimal_unit;
    } units[] = {
        {"bytes", 1, 0},
        {"KiB", DRYI_KIB, 0},
        {"MiB", DRYI_MIB, 0},
        {"GiB", DRYI_GIB, 0},
        {"TiB", DRYI_GIB << 10, 0},
        {"kB", DRYI_KIB, 0}, /* the kernel's spelling */
        {"KB", DRYI_KIB, UINT64_C(1000)},
        {"MB", DRYI_MIB, UINT64_C(1000000)},
        {"GB", DRYI_GIB, UINT64_C(1000000000)},
        {"TB", DRYI_GIB << 10, UINT64_C(1000000000000)},
    };
    struct decimal d;
    size_t used = read_decimal(text, length, &d);
    for (size_t i = 0; used > 0 && i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].name);
        if (length - used < n || memcmp(text + used, units[i].name, n) != 0)
            continue;
        if (units[i].unit == 1 && d.scale > 1)
            return 0; /* bytes have no fraction */
        *size = make_size(&d, units[i].unit);
        if (units[i].decimal_unit && !is_binary && size->known == DRY_MESSAGE_KNOWN)
            size->low = make_size(&d, units[i].decimal_unit).low;
        return used + n;
    }
    return 0;
}

/* --- phrases ------------------------------------------------------------------------------ */

#define NOWHERE SIZE_MAX
#define AT(member) offsetof(struct dry_message, member)

/* '%' matches a size, '#' a number. The size goes to the member at offset `where`. */
struct phrase {
    const char *pattern;
    size_t where;
    enum dry_message_form form; /* SHORT: the phrase does not tell the form */
    enum dry_message_variable variable;
    uint32_t hints;
    enum { NO_NUMBER, DEVICE, PROCESS } number;
};

/* A phrase that begins with another one comes before it. */
static const struct phrase phrases[] = {
    {"Triedtoallocatemorethan1EBmemory", NOWHERE, DRY_MESSAGE_HUGE, 0, 0, 0},
    {"Triedtoallocate%", AT(tried), 0, 0, 0, 0},
    {"GPU#hasatotalcapacityof%", AT(total), DRY_MESSAGE_MODERN, 0, 0, DEVICE},
    {"GPU#hasatotalcapactyof%", AT(total), DRY_MESSAGE_MODERN, 0, 0, DEVICE},
    {"ofwhich%isfree", AT(free), DRY_MESSAGE_MODERN, 0, 0, 0},
    {"Process#has%memoryinuse", NOWHERE, 0, 0, 0, PROCESS},
    {"thisprocesshas%memoryinuse", AT(process), DRY_MESSAGE_MODERN, 0, 0, 0},
    {"%allowed;", AT(allowed), 0, 0, 0, 0},
    {"%isallocatedbyPyTorch", AT(allocated), DRY_MESSAGE_MODERN, 0, 0, 0},
    {"with%allocatedinprivatepools", AT(private_pools), DRY_MESSAGE_MODERN, 0, 0, 0},
    {"%isreservedbyPyTorchbutunallocated", AT(unallocated), DRY_MESSAGE_MODERN, 0, 0, 0},
    {"(GPU#;", NOWHERE, DRY_MESSAGE_CLASSIC, 0, 0, DEVICE},
    {"(NPU#;", NOWHERE, DRY_MESSAGE_CLASSIC, 0, 0, DEVICE},
    {"%totalcapacity", AT(total), DRY_MESSAGE_CLASSIC, 0, 0, 0},
    {"%alreadyallocated", AT(allocated), DRY_MESSAGE_CLASSIC, 0, 0, 0},
    {"%free;", AT(free), DRY_MESSAGE_CLASSIC, 0, 0, 0},
    {"%free)", AT(free), DRY_MESSAGE_CLASSIC, 0, 0, 0},
    {"%reservedintotalbyPyTorch", AT(reserved), DRY_MESSAGE_CLASSIC, 0, 0, 0},
    {"%cached)", AT(reserved), DRY_MESSAGE_CLASSIC, 0, 0, 0},
    {"Allocationondevice#would", NOWHERE, DRY_MESSAGE_ASYNC, 0, 0, DEVICE},
    {"Currentlyallocated:%", AT(allocated), DRY_MESSAGE_ASYNC, 0, 0, 0},
    {"Requested:%", AT(tried), DRY_MESSAGE_ASYNC, 0, 0, 0},
    {"Devicelimit:%", AT(total), DRY_MESSAGE_ASYNC, 0, 0, 0},
    {"Free(accordingtoCUDA):%", AT(free), DRY_MESSAGE_ASYNC, 0, 0, 0},
    {"user-suppliedmemoryfraction):%", AT(allowed), DRY_MESSAGE_ASYNC, 0, 0, 0},
    {"(MPSallocated:%", AT(reserved), DRY_MESSAGE_MPS, 0, 0, 0},
    {"otherallocations:%", AT(non_pytorch), DRY_MESSAGE_MPS, 0, 0, 0},
    {"maxallowed:%", AT(allowed), DRY_MESSAGE_MPS, 0, 0, 0},
    {"Allocationwaspreemptivelyrejected", NOWHERE, DRY_MESSAGE_REJECTED, 0, 0, 0},
    {"Requestedsize:%", AT(tried), DRY_MESSAGE_REJECTED, 0, 0, 0},
    {"CUDAerror:outofmemory", NOWHERE, DRY_MESSAGE_DRIVER, 0, 0, 0},
    {"HIPerror:outofmemory", NOWHERE, DRY_MESSAGE_DRIVER, 0, 0, 0},
    {"DefaultCPUAllocator:", NOWHERE, DRY_MESSAGE_HOST, 0, 0, 0},
    {"youtriedtoallocate%", AT(tried), DRY_MESSAGE_HOST, 0, 0, 0},
    {"RESOURCE_EXHAUSTED:", NOWHERE, DRY_MESSAGE_XLA, 0, 0, 0},
    {"tryingtoallocate%", AT(tried), DRY_MESSAGE_XLA, 0, 0, 0},
    {"memoryallocating%", AT(tried), DRY_MESSAGE_XLA, 0, 0, 0},
    {"allocaterequestfor%", AT(tried), DRY_MESSAGE_XLA, 0, 0, 0},
    {"Ranoutofmemoryinmemoryspace", NOWHERE, DRY_MESSAGE_XLA_PROGRAM, 0, 0, 0},
    {"Noavailablememoryforthecacheblocks", NOWHERE, DRY_MESSAGE_KV_CACHE, 0, 0, 0},
    {"Toserveatleastonerequest", NOWHERE, DRY_MESSAGE_KV_CACHE, 0, 0, 0},
    {"%KVcacheisneeded", AT(tried), DRY_MESSAGE_KV_CACHE, 0, 0, 0},
    {"availableKVcachememory(%", AT(allowed), DRY_MESSAGE_KV_CACHE, 0, 0, 0},
    {"Cudafailure", NOWHERE, DRY_MESSAGE_NCCL, 0, 0, 0},
    {"FailedtoCUDA", NOWHERE, DRY_MESSAGE_NCCL, 0, 0, 0},
    {"CUBLAS_STATUS_ALLOC_FAILED", NOWHERE, DRY_MESSAGE_LIBRARY, 0, 0, 0},
    {"CUDNN_STATUS_ALLOC_FAILED", NOWHERE, DRY_MESSAGE_LIBRARY, 0, 0, 0},
    {"CUSOLVER_STATUS_ALLOC_FAILED", NOWHERE, DRY_MESSAGE_LIBRARY, 0, 0, 0},
    {"CUSPARSE_STATUS_ALLOC_FAILED", NOWHERE, DRY_MESSAGE_LIBRARY, 0, 0, 0},
    {"Memorycgroupoutofmemory:Kill", NOWHERE, DRY_MESSAGE_KILLED_IN_GROUP, 0, 0, 0},
    {"Outofmemory:Kill", NOWHERE, DRY_MESSAGE_KILLED, 0, 0, 0},
    {"anon-rss:%", AT(process), DRY_MESSAGE_KILLED, 0, 0, 0},
    {"oom_killevent", NOWHERE, DRY_MESSAGE_SLURM, 0, 0, 0},
    {"oom-killevent", NOWHERE, DRY_MESSAGE_SLURM, 0, 0, 0},
    {"Exceededjobmemorylimit", NOWHERE, DRY_MESSAGE_SLURM, 0, 0, 0},
    {"expandable-segmentreserveof%", AT(expandable_reserve), 0, 0,
     DRY_MESSAGE_HINT_RESERVE, 0},
    {"expandable_segments_reserve", NOWHERE, 0, 0, DRY_MESSAGE_HINT_RESERVE, 0},
    {"expandable_segmentsisenabled", NOWHERE, 0, 0, DRY_MESSAGE_HINT_RESERVE, 0},
    {"expandable_segments:True", NOWHERE, 0, 0, DRY_MESSAGE_HINT_EXPANDABLE, 0},
    {"max_split_size_mb", NOWHERE, 0, 0, DRY_MESSAGE_HINT_MAX_SPLIT, 0},
    {"PYTORCH_CUDA_ALLOC_CONF", NOWHERE, 0, DRY_MESSAGE_VARIABLE_CUDA, 0, 0},
    {"PYTORCH_ALLOC_CONF", NOWHERE, 0, DRY_MESSAGE_VARIABLE_GENERIC, 0, 0},
    {"PYTORCH_HIP_ALLOC_CONF", NOWHERE, 0, DRY_MESSAGE_VARIABLE_HIP, 0, 0},
    {"PYTORCH_MPS_HIGH_WATERMARK_RATIO", NOWHERE, 0, 0, DRY_MESSAGE_HINT_WATERMARK, 0},
    {"`empty_cache`", NOWHERE, 0, 0, DRY_MESSAGE_HINT_EMPTY_CACHE, 0},
    {"(https://", NOWHERE, 0, 0, 0, 0},
};
#define PHRASE_COUNT (sizeof phrases / sizeof *phrases)

struct match {
    size_t length;
    struct dry_message_size size;
    uint64_t number;
};

/* Return whether the digits at `at` continue a longer or a negative number. */
static bool
is_inside_number(const char *text, size_t at)
{
    if (at == 0)
        return false;
    char before = text[at - 1];
    if (dryi_is_digit(before) || before == '-' || before == ',')
        return true;
    return before == '.' && at >= 2 && dryi_is_digit(text[at - 2]);
}

/* Match `pattern` at the start of `text`. '%' and '#' both match only at a digit. */
static bool
match_pattern(const char *pattern, const char *text, size_t length, bool is_binary,
              struct match *match)
{
    size_t used = 0;
    for (; *pattern; pattern++) {
        size_t n = 1;
        if (*pattern == '%')
            n = read_size(text + used, length - used, is_binary, &match->size);
        else if (*pattern == '#')
            n = read_digits(text + used, length - used, &match->number);
        else if (used == length || text[used] != *pattern)
            return false;
        if (n == 0)
            return false;
        used += n;
    }
    match->length = used;
    return true;
}

static void
add_process(struct dry_message *m, const struct match *match)
{
    if (m->other_count == DRY_MESSAGE_PROCESSES_MAX) {
        m->other_dropped++;
        return;
    }
    m->others[m->other_count].pid = match->number;
    m->others[m->other_count].bytes = match->size;
    m->other_count++;
}

/* Record a phrase's facts. The first occurrence counts: later ones may be a user's comment. */
static void
take_phrase(struct dry_message *m, const struct phrase *p, const struct match *match)
{
    if (m->form == DRY_MESSAGE_SHORT)
        m->form = p->form;
    if (m->variable == DRY_MESSAGE_VARIABLE_NONE)
        m->variable = p->variable;
    m->hints |= p->hints;
    if (p->number == PROCESS)
        add_process(m, match);
    if (p->number == DEVICE && !m->has_device && match->number <= UINT32_MAX) {
        m->has_device = true;
        m->device = (uint32_t)match->number;
    }
    if (p->where == NOWHERE)
        return;
    struct dry_message_size *size =
        (struct dry_message_size *)(void *)((char *)m + p->where);
    if (size->known == DRY_MESSAGE_ABSENT)
        *size = match->size;
}

/* Return whether a phrase can belong to this message. Foreign forms and PyTorch's share no phrases;
   the head at the text's beginning tells which it is. */
static bool
is_of_form(const struct dry_message *m, const struct phrase *p, size_t at)
{
    bool is_foreign = m->form >= DRY_MESSAGE_HOST;
    if (p->form < DRY_MESSAGE_HOST)
        return !is_foreign;
    if (m->form == DRY_MESSAGE_KILLED_IN_GROUP && p->form == DRY_MESSAGE_KILLED)
        return true;
    return at == 0 || p->form == m->form;
}

static size_t
take_at(struct dry_message *m, const char *text, size_t length, size_t at)
{
    bool is_number = dryi_is_digit(text[at]);
    if (is_number && is_inside_number(text, at))
        return 0;
    for (size_t i = 0; i < PHRASE_COUNT; i++) {
        const struct phrase *p = phrases + i;
        bool is_candidate = p->pattern[0] == '%' ? is_number : p->pattern[0] == text[at];
        bool is_binary = m->form == DRY_MESSAGE_MPS || p->form == DRY_MESSAGE_MPS;
        struct match match = {0};
        if (is_candidate && is_of_form(m, p, at) &&
            match_pattern(p->pattern, text + at, length - at, is_binary, &match)) {
            take_phrase(m, p, &match);
            return match.length;
        }
    }
    return 0;
}

static bool
is_cut(const struct dry_message *m)
{
    switch (m->form) {
    case DRY_MESSAGE_SHORT:
        return m->tried.known != DRY_MESSAGE_ABSENT;
    case DRY_MESSAGE_CLASSIC:
        return m->reserved.known == DRY_MESSAGE_ABSENT;
    case DRY_MESSAGE_MODERN:
        return m->unallocated.known == DRY_MESSAGE_ABSENT;
    case DRY_MESSAGE_ASYNC:
        return m->allowed.known == DRY_MESSAGE_ABSENT;
    case DRY_MESSAGE_MPS:
    case DRY_MESSAGE_REJECTED:
        return m->tried.known == DRY_MESSAGE_ABSENT;
    case DRY_MESSAGE_HUGE:
    case DRY_MESSAGE_DRIVER:
    DRYI_MESSAGE_CASE_FOREIGN:
        return false;
    }
    return false;
}

size_t
dryi_message_read(const char *text, size_t length, struct dry_message *m)
{
    size_t end = 0;
    for (size_t at = 0; at < length && at <= end + DRYI_MESSAGE_GAP;) {
        size_t used = take_at(m, text, length, at);
        at += used ? used : 1;
        if (used)
            end = at;
    }
    m->is_cut = is_cut(m);
    return end;
}

/* --- releases ----------------------------------------------------------------------------- */

static bool
has(const char *text, size_t length, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= length; i++) {
        if (text[i] == word[0] && memcmp(text + i, word, n) == 0)
            return true;
    }
    return false;
}

static const char *
name_classic(const struct dry_message *m, const char *text, size_t length,
             enum dryi_message_exception exception)
{
    if (m->backend == DRY_MESSAGE_NPU)
        return NULL; /* torch_npu still uses the classic form */
    if (has(text, length, "cached)"))
        return "1.0 to 1.4";
    if (exception == MESSAGE_EXCEPTION_CUDA_OOM)
        return "1.13 to 2.0";
    bool has_hint = m->hints & DRY_MESSAGE_HINT_MAX_SPLIT;
    if (exception == MESSAGE_EXCEPTION_RUNTIME)
        return has_hint ? "1.9 to 1.12" : m->is_cut ? "1.3 to 1.12" : "1.3 to 1.10";
    return has_hint ? "1.9 to 2.0" : "1.3 to 2.0";
}

static const char *
name_modern(const struct dry_message *m, const char *text, size_t length,
            enum dryi_message_exception exception)
{
    if (has(text, length, "capactyof")) /* misspelled in this release only */
        return "2.1";
    if (m->backend == DRY_MESSAGE_XPU)
        return exception == MESSAGE_EXCEPTION_OOM ? "2.5 or later" : "2.3 or later";
    if (m->hints & DRY_MESSAGE_HINT_RESERVE)
        return "2.13 or later";
    if (m->variable == DRY_MESSAGE_VARIABLE_GENERIC)
        return "2.9 or later";
    if (exception == MESSAGE_EXCEPTION_CUDA_OOM)
        return "2.2 to 2.4";
    if (has(text, length, "#optimizing-memory-usage"))
        return "2.8 or later";
    return exception == MESSAGE_EXCEPTION_OOM ? "2.5 or later" : "2.2 or later";
}

void
dryi_message_name_releases(struct dry_message *m, const char *text, size_t length,
                           enum dryi_message_exception exception)
{
    switch (m->form) {
    case DRY_MESSAGE_CLASSIC:
        m->releases = name_classic(m, text, length, exception);
        return;
    case DRY_MESSAGE_MODERN:
        m->releases = name_modern(m, text, length, exception);
        return;
    case DRY_MESSAGE_ASYNC:
        m->releases = "2.0 or later";
        return;
    case DRY_MESSAGE_MPS:
        m->releases = "1.12 or later";
        return;
    case DRY_MESSAGE_REJECTED:
        m->releases = "2.12 or later";
        return;
    case DRY_MESSAGE_SHORT:
    case DRY_MESSAGE_HUGE:
    case DRY_MESSAGE_DRIVER:
    DRYI_MESSAGE_CASE_FOREIGN:
        break;
    }
    m->releases = exception == MESSAGE_EXCEPTION_CUDA_OOM ? "1.13 to 2.4"
                  : exception == MESSAGE_EXCEPTION_OOM    ? "2.5 or later"
                                                          : NULL;
}

/* --- names and equality ------------------------------------------------------------------- */

const char *
dry_message_form_name(enum dry_message_form form)
{
    static const char *const names[DRY_MESSAGE_FORM_COUNT] = {
        "short",           "classic",  "modern", "async",   "mps",
        "rejected",        "huge",     "driver", "host",    "xla",
        "xla_program",     "kv_cache", "nccl",   "library", "killed",
        "killed_in_group", "slurm",
    };
    size_t index = (size_t)form;
    return index < DRY_MESSAGE_FORM_COUNT ? names[index] : "unknown";
}

const char *
dry_message_backend_name(enum dry_message_backend backend)
{
    static const char *const names[DRY_MESSAGE_BACKEND_COUNT] = {
        "unknown", "cuda", "hip", "xpu", "mps", "npu", "host", "xla",
    };
    size_t index = (size_t)backend;
    return index < DRY_MESSAGE_BACKEND_COUNT ? names[index] : "unknown";
}

static bool
is_same_size(const struct dry_message_size *a, const struct dry_message_size *b)
{
    return a->known == b->known && a->bytes == b->bytes && a->low == b->low &&
           a->high == b->high;
}

bool
dry_message_is_same(const struct dry_message *a, const struct dry_message *b)
{
    static const size_t sizes[] = {
        AT(tried),
        AT(total),
        AT(free),
        AT(process),
        AT(allowed),
        AT(allocated),
        AT(private_pools),
        AT(unallocated),
        AT(reserved),
        AT(non_pytorch),
        AT(expandable_reserve),
    };
    bool same = a->form == b->form && a->backend == b->backend &&
                a->has_device == b->has_device && a->device == b->device &&
                a->is_cut == b->is_cut && a->variable == b->variable &&
                a->hints == b->hints && a->other_count == b->other_count &&
                a->other_dropped == b->other_dropped;
    for (size_t i = 0; same && i < sizeof sizes / sizeof *sizes; i++)
        same = is_same_size((const void *)((const char *)a + sizes[i]),
                            (const void *)((const char *)b + sizes[i]));
    for (size_t i = 0; same && i < a->other_count; i++)
        same = a->others[i].pid == b->others[i].pid &&
               is_same_size(&a->others[i].bytes, &b->others[i].bytes);
    return same;
}
