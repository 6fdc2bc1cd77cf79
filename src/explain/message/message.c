/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Read the numbers of a message without blanks by a table of phrases. A phrase may be anywhere
 * after the head, unless DRYI_MESSAGE_GAP characters without one precede it. So texts can be read
 * that were shortened, or mixed with another program's output. PyTorch's phrases are here, those of
 * others in message_kinds.c.
 *
 * Wordings: c10/cuda/CUDACachingAllocator.cpp and CUDAMallocAsyncAllocator.cpp,
 * c10/xpu/XPUCachingAllocator.cpp, ATen/mps/MPSAllocator.mm, of each release.
 */
#include "explain/message/message.h"

#include <string.h>

#include "base/ascii.h"
#include "base/bits.h"
#include "base/sized.h"

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

/* How others than PyTorch write numbers: "2,147,483,648", "117. GiB", "-1.00 GiB". */
#define STYLE_FOREIGN 1u
#define STYLE_BINARY 2u /* GB is 2^30 */
#define STYLE_LETTER                                                                     \
    4u /* "64Gi", "21.95G": the next word's first letter would be one, too */

/* Return whether a comma at `at` stands before three digits: "2,147". */
static bool
is_thousands_comma(const char *text, size_t length, size_t at)
{
    return at > 0 && length - at > 3 && text[at] == ',' && dryi_is_digit(text[at + 1]) &&
           dryi_is_digit(text[at + 2]) && dryi_is_digit(text[at + 3]);
}

/* Read all digits at `text`. Returns their length; 0 if there are none, or more
   than WHOLE_DIGITS_MAX. */
static size_t
read_digits(const char *text, size_t length, unsigned style, uint64_t *value)
{
    size_t count = 0;
    *value = 0;
    for (; count < length; count++) {
        if ((style & STYLE_FOREIGN) && is_thousands_comma(text, length, count))
            continue;
        if (!dryi_is_digit(text[count]))
            break;
        uint64_t digit = (uint64_t)(text[count] - '0');
        bool fits = *value <= (UINT64_MAX - digit) / 10;
        *value = fits ? *value * 10 + digit : UINT64_MAX;
        if (count == WHOLE_DIGITS_MAX)
            return 0;
    }
    return count;
}

static size_t
read_decimal(const char *text, size_t length, unsigned style, struct decimal *d)
{
    size_t used = read_digits(text, length, style, &d->whole);
    d->fraction = 0;
    d->scale = 1;
    if (used == 0 || used + 1 >= length || text[used] != '.')
        return used;
    if (memchr(text, ',', used))
        return 0; /* "GPU 0, 21.18GB": numbers with commas are whole */
    if (!dryi_is_digit(text[used + 1]))
        return used + ((style & STYLE_FOREIGN) && dryi_is_letter(text[used + 1]));
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

/* A unit that begins with another one comes before it. */
static const struct {
    char name[8];
    uint64_t unit, decimal_unit;
    unsigned style; /* needed */
} units[] = {
    {"bytes", 1, 0, 0},
    {"KiB", DRYI_KIB, 0, 0},
    {"MiB", DRYI_MIB, 0, 0},
    {"GiB", DRYI_GIB, 0, 0},
    {"TiB", DRYI_GIB << 10, 0, 0},
    {"kB", DRYI_KIB, 0, 0}, /* the kernel's spelling */
    {"kb", DRYI_KIB, 0, STYLE_FOREIGN},
    {"KB", DRYI_KIB, UINT64_C(1000), 0},
    {"MB", DRYI_MIB, UINT64_C(1000000), 0},
    {"GB", DRYI_GIB, UINT64_C(1000000000), 0},
    {"TB", DRYI_GIB << 10, UINT64_C(1000000000000), 0},
    {"Bytes", 1, 0, STYLE_FOREIGN},
    {"B", 1, 0, STYLE_LETTER},
    {"Ki", DRYI_KIB, 0, STYLE_LETTER},
    {"Mi", DRYI_MIB, 0, STYLE_LETTER},
    {"Gi", DRYI_GIB, 0, STYLE_LETTER},
    {"Ti", DRYI_GIB << 10, 0, STYLE_LETTER},
    {"K", DRYI_KIB, 0, STYLE_LETTER},
    {"M", DRYI_MIB, 0, STYLE_LETTER},
    {"G", DRYI_GIB, 0, STYLE_LETTER},
    {"T", DRYI_GIB << 10, 0, STYLE_LETTER},
};

/* Read a size such as "1.95GiB". Returns its length, 0 if `text` does not begin with a size. */
static size_t
read_size(const char *text, size_t length, unsigned style, struct dry_message_size *size)
{
    struct decimal d;
    size_t used = read_decimal(text, length, style, &d);
    for (size_t i = 0; used > 0 && i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].name);
        if (length - used < n || memcmp(text + used, units[i].name, n) != 0 ||
            (units[i].style & ~style))
            continue;
        if (units[i].unit == 1 && d.fraction > 0)
            return 0; /* no size has a part of a byte */
        *size = make_size(&d, units[i].unit);
        if (units[i].decimal_unit && !(style & STYLE_BINARY) &&
            size->known == DRY_MESSAGE_KNOWN)
            size->low = make_size(&d, units[i].decimal_unit).low;
        return used + n;
    }
    return 0;
}

/* Make an exact number. */
static struct dry_message_size
make_exact(uint64_t number)
{
    struct dry_message_size size = {.known = DRY_MESSAGE_BEYOND};
    if (number < BEYOND_BYTES)
        size = (struct dry_message_size){DRY_MESSAGE_KNOWN, number, number, number};
    return size;
}

/* Make a fraction, in millionths. */
static struct dry_message_size
make_millionths(const struct decimal *d)
{
    return make_exact(d->whole < 1000000000
                          ? d->whole * 1000000 + d->fraction * (1000000 / d->scale)
                          : UINT64_MAX);
}

/* --- figures ------------------------------------------------------------------------------ */

#define AT(member) offsetof(struct dry_message, member)

/* Return the offset of a quantity's member, 0 if it has none. */
static size_t
find_member(enum dry_message_quantity quantity)
{
    static const uint16_t members[DRY_MESSAGE_QUANTITY_COUNT] = {
        [DRY_MESSAGE_TRIED] = AT(tried),
        [DRY_MESSAGE_TOTAL] = AT(total),
        [DRY_MESSAGE_FREE] = AT(free),
        [DRY_MESSAGE_PROCESS] = AT(process),
        [DRY_MESSAGE_ALLOWED] = AT(allowed),
        [DRY_MESSAGE_ALLOCATED] = AT(allocated),
        [DRY_MESSAGE_PRIVATE_POOLS] = AT(private_pools),
        [DRY_MESSAGE_UNALLOCATED] = AT(unallocated),
        [DRY_MESSAGE_RESERVED] = AT(reserved),
        [DRY_MESSAGE_NON_PYTORCH] = AT(non_pytorch),
        [DRY_MESSAGE_EXPANDABLE_RESERVE] = AT(expandable_reserve),
    };
    return members[quantity];
}

struct dry_message_figure
dryi_message_get(const struct dry_message *m, enum dry_message_quantity quantity)
{
    struct dry_message_figure none = {.quantity = quantity};
    size_t at = find_member(quantity);
    if (at) {
        none.size =
            *(const struct dry_message_size *)(const void *)((const char *)m + at);
        return none;
    }
    for (size_t i = 0; i < m->figure_count; i++) {
        if (m->figures[i].quantity == quantity)
            return m->figures[i];
    }
    return none;
}

/* Set a number, whatever was there. */
static void
put(struct dry_message *m, const struct dry_message_figure *figure)
{
    size_t at = find_member(figure->quantity), i = 0;
    if (at) {
        *(struct dry_message_size *)(void *)((char *)m + at) = figure->size;
        return;
    }
    while (i < m->figure_count && m->figures[i].quantity != figure->quantity)
        i++;
    if (i < DRY_MESSAGE_FIGURES_MAX)
        m->figures[i] = *figure;
    if (i == m->figure_count && i < DRY_MESSAGE_FIGURES_MAX)
        m->figure_count++;
}

void
dryi_message_take(struct dry_message *m, const struct dry_message_figure *figure)
{
    struct dry_message_figure old = dryi_message_get(m, figure->quantity);
    const struct dry_message_size *a = &old.size, *b = &figure->size;
    bool is_closer = a->known == DRY_MESSAGE_KNOWN && b->known == DRY_MESSAGE_KNOWN &&
                     old.is_negative == figure->is_negative && b->low >= a->low &&
                     b->high <= a->high;
    if (a->known == DRY_MESSAGE_ABSENT || (is_closer && m->form >= DRY_MESSAGE_HOST))
        put(m, figure);
}

/* --- phrases ------------------------------------------------------------------------------ */

/* Patterns as in struct dryi_message_phrase. */
struct phrase {
    const char *pattern;
    uint8_t to[DRYI_MESSAGE_TARGETS_MAX];
    enum dry_message_form form; /* SHORT: the phrase does not tell the form */
    enum dry_message_variable variable;
    uint32_t hints;
};

#define NO                                                                               \
    {                                                                                    \
        0                                                                                \
    }
#define TO(name)                                                                         \
    {                                                                                    \
        DRY_MESSAGE_##name                                                               \
    }
#define TO_DEVICE(name)                                                                  \
    {                                                                                    \
        DRYI_TO_DEVICE, DRY_MESSAGE_##name                                               \
    }

/* A phrase that begins with another one comes before it. */
static const struct phrase phrases[] = {
    {"Triedtoallocatemorethan1EBmemory", NO, DRY_MESSAGE_HUGE, 0, 0},
    {"Triedtoallocate%", TO(TRIED), 0, 0, 0},
    {"GPU#hasatotalcapacityof%", TO_DEVICE(TOTAL), DRY_MESSAGE_MODERN, 0, 0},
    {"GPU#hasatotalcapactyof%", TO_DEVICE(TOTAL), DRY_MESSAGE_MODERN, 0, 0},
    {"ofwhich%isfree", TO(FREE), DRY_MESSAGE_MODERN, 0, 0},
    {"Process#has%memoryinuse", {DRYI_TO_OTHERS, DRYI_TO_OTHERS}, 0, 0, 0},
    {"thisprocesshas%memoryinuse", TO(PROCESS), DRY_MESSAGE_MODERN, 0, 0},
    {"%allowed;", TO(ALLOWED), 0, 0, 0},
    {"%isallocatedbyPyTorch", TO(ALLOCATED), DRY_MESSAGE_MODERN, 0, 0},
    {"with%allocatedinprivatepools", TO(PRIVATE_POOLS), DRY_MESSAGE_MODERN, 0, 0},
    {"%isreservedbyPyTorchbutunallocated", TO(UNALLOCATED), DRY_MESSAGE_MODERN, 0, 0},
    {"(GPU#;", {DRYI_TO_DEVICE}, DRY_MESSAGE_CLASSIC, 0, 0},
    {"(NPU#;", {DRYI_TO_DEVICE}, DRY_MESSAGE_CLASSIC, 0, 0},
    {"%totalcapacity", TO(TOTAL), DRY_MESSAGE_CLASSIC, 0, 0},
    {"%alreadyallocated", TO(ALLOCATED), DRY_MESSAGE_CLASSIC, 0, 0},
    {"%currentactive", TO(ACTIVE), DRY_MESSAGE_CLASSIC, 0, 0},
    {"%free;", TO(FREE), DRY_MESSAGE_CLASSIC, 0, 0},
    {"%free)", TO(FREE), DRY_MESSAGE_CLASSIC, 0, 0},
    {"%reservedintotalbyPyTorch", TO(RESERVED), DRY_MESSAGE_CLASSIC, 0, 0},
    {"%cached)", TO(UNALLOCATED), DRY_MESSAGE_CLASSIC, 0,
     0}, /* reserved less allocated */
    {"Allocationondevice#would", {DRYI_TO_DEVICE}, DRY_MESSAGE_ASYNC, 0, 0},
    {"Currentlyallocated:%", TO(ALLOCATED), DRY_MESSAGE_ASYNC, 0, 0},
    {"Requested:%", TO(TRIED), DRY_MESSAGE_ASYNC, 0, 0},
    {"Devicelimit:%", TO(TOTAL), DRY_MESSAGE_ASYNC, 0, 0},
    {"Free(accordingtoCUDA):%", TO(FREE), DRY_MESSAGE_ASYNC, 0, 0},
    {"user-suppliedmemoryfraction):%", TO(ALLOWED), DRY_MESSAGE_ASYNC, 0, 0},
    {"(MPSallocated:%", TO(RESERVED), DRY_MESSAGE_MPS, 0, 0},
    {"otherallocations:%", TO(NON_PYTORCH), DRY_MESSAGE_MPS, 0, 0},
    {"maxallowed:%", TO(ALLOWED), DRY_MESSAGE_MPS, 0, 0},
    {"Allocationwaspreemptivelyrejected", NO, DRY_MESSAGE_REJECTED, 0, 0},
    {"Requestedsize:%", TO(TRIED), DRY_MESSAGE_REJECTED, 0, 0},
    {"CUDAerror:outofmemory", NO, DRY_MESSAGE_DRIVER, 0, 0},
    {"HIPerror:outofmemory", NO, DRY_MESSAGE_DRIVER, 0, 0},
    {"expandable-segmentreserveof%", TO(EXPANDABLE_RESERVE), 0, 0,
     DRY_MESSAGE_HINT_RESERVE},
    {"expandable_segments_reserve", NO, 0, 0, DRY_MESSAGE_HINT_RESERVE},
    {"expandable_segmentsisenabled", NO, 0, 0, DRY_MESSAGE_HINT_RESERVE},
    {"expandable_segments:True", NO, 0, 0, DRY_MESSAGE_HINT_EXPANDABLE},
    {"max_split_size_mb", NO, 0, 0, DRY_MESSAGE_HINT_MAX_SPLIT},
    {"PYTORCH_CUDA_ALLOC_CONF", NO, 0, DRY_MESSAGE_VARIABLE_CUDA, 0},
    {"PYTORCH_ALLOC_CONF", NO, 0, DRY_MESSAGE_VARIABLE_GENERIC, 0},
    {"PYTORCH_HIP_ALLOC_CONF", NO, 0, DRY_MESSAGE_VARIABLE_HIP, 0},
    {"PYTORCH_MPS_HIGH_WATERMARK_RATIO", NO, 0, 0, DRY_MESSAGE_HINT_WATERMARK},
    {"`empty_cache`", NO, 0, 0, DRY_MESSAGE_HINT_EMPTY_CACHE},
    {"(https://", NO, 0, 0, 0},
};
#define PHRASE_COUNT (sizeof phrases / sizeof *phrases)

struct match {
    size_t length, count;
    struct {
        bool is_negative;
        struct dry_message_size size;
        uint64_t number; /* its value is '#' */
    } values[DRYI_MESSAGE_TARGETS_MAX];
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

static bool
is_number_mark(char c)
{
    return c && strchr(DRYI_MESSAGE_MARKS, c);
}

/* Match one of DRYI_MESSAGE_MARKS. Returns the length, 0 if there is no number. */
static size_t
match_number(char mark, const char *text, size_t length, unsigned style,
             struct match *match)
{
    struct dry_message_size *size = &match->values[match->count].size;
    uint64_t *number = &match->values[match->count].number;
    bool is_negative =
        (style & STYLE_FOREIGN) && mark == '%' && length > 0 && text[0] == '-';
    style |= mark == '~' ? STYLE_LETTER : 0;
    match->values[match->count].is_negative = is_negative;
    text += is_negative;
    length -= is_negative;
    struct decimal d;
    size_t n;
    if (mark == '%' || mark == '~') {
        n = read_size(text, length, style, size);
    } else if (mark == '#') {
        n = read_digits(text, length, style, number);
        *size = make_exact(*number);
    } else {
        n = read_decimal(text, length, style, &d);
        *size = (struct dry_message_size){0};
        if (n > 0)
            *size = mark == '^'   ? make_size(&d, DRYI_GIB)
                    : mark == '!' ? make_size(&d, DRYI_KIB)
                                  : make_millionths(&d);
    }
    match->count++;
    return n ? n + is_negative : 0;
}

static size_t
match_hexadecimal(const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && n < 20 &&
           (dryi_is_digit(text[n]) || (text[n] && strchr("abcdefx", text[n]))))
        n++;
    return n;
}

/* Match `pattern` at the start of `text`. Its blanks are for the reader. */
static bool
match_pattern(const char *pattern, const char *text, size_t length, unsigned style,
              struct match *match)
{
    size_t used = 0;
    *match = (struct match){0};
    for (; *pattern; pattern++) {
        size_t n = 1;
        if (*pattern == ' ')
            continue;
        if (is_number_mark(*pattern))
            n = match_number(*pattern, text + used, length - used, style, match);
        else if (*pattern == '&')
            n = match_hexadecimal(text + used, length - used);
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
    m->others[m->other_count].pid = match->values[0].number;
    m->others[m->other_count].bytes = match->values[1].size;
    m->other_count++;
}

/* Count a free piece: the sum is `free`. */
static void
add_chunk(struct dry_message *m, const struct dry_message_size *size)
{
    struct dry_message_figure sum = dryi_message_get(m, DRY_MESSAGE_FREE);
    struct dry_message_figure largest = dryi_message_get(m, DRY_MESSAGE_LARGEST_FREE);
    if (size->known == DRY_MESSAGE_BEYOND || sum.size.known == DRY_MESSAGE_BEYOND)
        return;
    sum.size = make_exact(sum.size.bytes + size->bytes);
    put(m, &sum);
    if (largest.size.known == DRY_MESSAGE_ABSENT || largest.size.bytes < size->bytes) {
        largest.size = *size;
        put(m, &largest);
    }
}

/* Record the numbers of a phrase. */
static void
take_numbers(struct dry_message *m, const uint8_t *to, const struct match *match,
             bool is_next)
{
    for (size_t i = 0; i < match->count; i++) {
        uint64_t number = match->values[i].number;
        struct dry_message_figure f = {.is_negative = match->values[i].is_negative,
                                       .size = match->values[i].size};
        if (to[i] == DRYI_TO_OTHERS) {
            add_process(m, match);
            return;
        }
        if (to[i] == DRYI_TO_CHUNK) {
            add_chunk(m, &f.size);
        } else if (to[i] == DRYI_TO_DEVICE) {
            if (!m->has_device && number <= UINT32_MAX)
                m->device = (uint32_t)number;
            m->has_device |= number <= UINT32_MAX;
        } else {
            f.quantity = (enum dry_message_quantity)to[i];
            if (is_next &&
                dryi_message_get(m, f.quantity).size.known != DRY_MESSAGE_ABSENT)
                f.quantity = (enum dry_message_quantity)to[i + 1];
            dryi_message_take(m, &f);
        }
    }
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
    take_numbers(m, p->to, match, false);
}

/* Read one of PyTorch's phrases. Returns its length, 0 if there is none. */
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
        struct match match;
        if (is_candidate && match_pattern(p->pattern, text + at, length - at,
                                          is_binary ? STYLE_BINARY : 0, &match)) {
            take_phrase(m, p, &match);
            return match.length;
        }
    }
    return 0;
}

/* Read one of some phrases of a foreign kind. Returns its length, 0 if there is none. */
static size_t
take_listed(struct dryi_message_reading *r, struct dryi_message_phrases list,
            const char *text, size_t length)
{
    bool is_number = dryi_is_digit(text[0]);
    for (size_t i = 0; i < list.count; i++) {
        const struct dryi_message_phrase *p = list.rows + i;
        struct match match;
        bool is_candidate =
            p->pattern[0] == text[0] || (is_number && is_number_mark(p->pattern[0]));
        if (is_candidate && match_pattern(p->pattern, text, length,
                                          STYLE_FOREIGN | STYLE_BINARY, &match)) {
            take_numbers(&r->message, p->to, &match, r->kind->flags & DRYI_KIND_NEXT);
            return match.length;
        }
    }
    return 0;
}

/* Match words that a kind needs, or that exclude it. Returns their length, 0 if they are not here. */
static size_t
match_given(const char *words, const char *text, size_t length)
{
    struct match match;
    bool is_here =
        words && words[0] == text[0] && match_pattern(words, text, length, 0, &match);
    return is_here ? match.length : 0;
}

/* Read one of the phrases of a foreign kind. */
static size_t
take_foreign_at(struct dryi_message_reading *r, const struct dryi_message_phrases *lists,
                const char *text, size_t length)
{
    size_t needed = match_given(r->kind->needs, text, length);
    size_t used = take_listed(r, lists[0], text, length);
    r->has_needed |= needed > 0;
    r->is_excluded |= match_given(r->kind->excludes, text, length) > 0;
    if (used == 0)
        used = take_listed(r, lists[1], text, length);
    return used ? used : needed;
}

static bool
is_cut(const struct dry_message *m)
{
    switch (m->form) {
    case DRY_MESSAGE_SHORT:
        return m->tried.known != DRY_MESSAGE_ABSENT;
    case DRY_MESSAGE_CLASSIC:
        return m->reserved.known == DRY_MESSAGE_ABSENT &&
               m->unallocated.known == DRY_MESSAGE_ABSENT;
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
dryi_message_gap(const struct dryi_message_kind *kind)
{
    return kind && kind->gap ? kind->gap : DRYI_MESSAGE_GAP;
}

void
dryi_message_read(struct dryi_message_reading *r, const char *text, size_t length,
                  size_t limit)
{
    size_t gap = dryi_message_gap(r->kind);
    struct dryi_message_phrases lists[2] = {0};
    if (r->kind)
        lists[0] = dryi_message_get_phrases(dryi_message_number_kind(r->kind));
    if (r->kind && r->kind->also)
        lists[1] = dryi_message_get_phrases(r->kind->also);
    for (size_t at = 0; at < limit && at <= r->end + gap;) {
        size_t used = r->kind ? take_foreign_at(r, lists, text + at, length - at)
                              : take_at(&r->message, text, length, at);
        at += used ? used : 1;
        if (used)
            r->end = at;
    }
    r->message.is_cut = is_cut(&r->message);
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
        "killed_in_group", "slurm",    "stated",
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

enum dry_status
dry_message_copy(const struct dry_message *message, struct dry_message *copy)
{
    return dryi_sized_give(copy, message, message->struct_size);
}

static bool
is_same(const struct dry_message *a, const struct dry_message *b)
{
    bool same = a->form == b->form && a->backend == b->backend &&
                a->has_device == b->has_device && a->device == b->device &&
                a->is_cut == b->is_cut && a->variable == b->variable &&
                a->hints == b->hints && a->other_count == b->other_count &&
                a->other_dropped == b->other_dropped && !a->kind == !b->kind &&
                (!a->kind || strcmp(a->kind, b->kind) == 0);
    for (int q = 0; same && q < DRY_MESSAGE_QUANTITY_COUNT; q++) {
        struct dry_message_figure x = dryi_message_get(a, (enum dry_message_quantity)q);
        struct dry_message_figure y = dryi_message_get(b, (enum dry_message_quantity)q);
        same = x.is_negative == y.is_negative && is_same_size(&x.size, &y.size);
    }
    for (size_t i = 0; same && i < a->other_count; i++)
        same = a->others[i].pid == b->others[i].pid &&
               is_same_size(&a->others[i].bytes, &b->others[i].bytes);
    return same;
}

bool
dry_message_is_same(const struct dry_message *a, const struct dry_message *b)
{
    struct dry_message x = {0}, y = {0};
    return dryi_sized_take(&x, sizeof x, a, NULL) == DRY_OK &&
           dryi_sized_take(&y, sizeof y, b, NULL) == DRY_OK && is_same(&x, &y);
}
