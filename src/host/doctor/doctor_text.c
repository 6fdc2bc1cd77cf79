/* SPDX-License-Identifier: Apache-2.0 */

/* Each parser is one scan from left to right. See doctor_text.h for the formats. */
#include "host/doctor/doctor_text.h"

#include <string.h>

#include "base/ascii.h"
#include "base/bits.h"
#include "host/facts/fact_text.h"

bool
dryi_doctor_piece_is(struct dryi_doctor_piece word, const char *text)
{
    return dryi_text_is(word.bytes, word.length, text);
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\0';
}

bool
dryi_doctor_piece_next(const char *text, size_t length, size_t *at,
                       struct dryi_doctor_piece *word)
{
    while (*at < length && is_blank(text[*at]))
        ++*at;
    if (*at == length)
        return false;
    size_t begin = *at;
    while (*at < length && !is_blank(text[*at]))
        ++*at;
    *word = (struct dryi_doctor_piece){text + begin, *at - begin};
    return true;
}

bool
dryi_doctor_piece_find(const char *text, size_t length, const char *wanted)
{
    size_t at = 0;
    struct dryi_doctor_piece word;
    while (dryi_doctor_piece_next(text, length, &at, &word))
        if (dryi_doctor_piece_is(word, wanted))
            return true;
    return false;
}

/* Parse the digits at the beginning of a word. Returns their number, which may be 0. */
static size_t
leading_number(struct dryi_doctor_piece word, uint64_t *number)
{
    uint64_t n = 0;
    size_t i = 0;
    for (; i < word.length && dryi_is_digit(word.bytes[i]); i++) {
        unsigned digit = (unsigned)(word.bytes[i] - '0');
        n = n > (UINT64_MAX - digit) / 10 ? UINT64_MAX : n * 10 + digit;
    }
    *number = n;
    return i;
}

bool
dryi_doctor_piece_number(struct dryi_doctor_piece word, uint64_t *number)
{
    uint64_t n;
    if (word.length == 0 || leading_number(word, &n) != word.length)
        return false;
    *number = n;
    return true;
}

bool
dryi_doctor_piece_size(struct dryi_doctor_piece word, uint64_t *bytes)
{
    static const char letters[] = "kmgt";
    uint64_t n;
    size_t digits = leading_number(word, &n);
    if (digits == 0 || word.length > digits + 1)
        return false;
    if (word.length == digits + 1) {
        const char *letter = strchr(letters, dryi_to_lower(word.bytes[digits]));
        if (!letter || !*letter)
            return false;
        unsigned shift = (unsigned)(letter - letters + 1) * 10;
        n = n > UINT64_MAX >> shift ? UINT64_MAX : n << shift;
    }
    *bytes = n;
    return true;
}

bool
dryi_text_chosen(const char *text, size_t length, struct dryi_doctor_piece *chosen)
{
    const char *begin = memchr(text, '[', length);
    if (!begin)
        return false;
    begin++;
    const char *end = memchr(begin, ']', length - (size_t)(begin - text));
    if (!end || end == begin)
        return false;
    *chosen = (struct dryi_doctor_piece){begin, (size_t)(end - begin)};
    return true;
}

static bool
read_limit(struct dryi_doctor_piece word, uint64_t *number)
{
    if (!dryi_doctor_piece_is(word, "unlimited"))
        return dryi_doctor_piece_number(word, number);
    *number = UINT64_MAX;
    return true;
}

bool
dryi_text_limit(const char *text, size_t length, const char *name, uint64_t *soft,
                uint64_t *hard)
{
    size_t at = 0, n;
    const char *line;
    while (dryi_fact_line(text, length, &at, &line, &n)) {
        size_t in = strlen(name);
        struct dryi_doctor_piece first, second;
        uint64_t s, h;
        if (!dryi_text_begins(line, n, name) || in == n || line[in] != ' ')
            continue;
        if (!dryi_doctor_piece_next(line, n, &in, &first) ||
            !dryi_doctor_piece_next(line, n, &in, &second) || !read_limit(first, &s) ||
            !read_limit(second, &h))
            return false;
        *soft = s;
        *hard = h;
        return true;
    }
    return false;
}

/* Match "Node 0, zone   Normal". Returns the offset of the counts; 0: another node, or no
   such line. */
static size_t
buddy_counts(const char *line, size_t length, int32_t node)
{
    size_t at = 0;
    struct dryi_doctor_piece word;
    uint64_t n;
    if (!dryi_doctor_piece_next(line, length, &at, &word) ||
        !dryi_doctor_piece_is(word, "Node") ||
        !dryi_doctor_piece_next(line, length, &at, &word) || word.length < 2 ||
        word.bytes[word.length - 1] != ',')
        return 0;
    word.length--;
    if (!dryi_doctor_piece_number(word, &n) || n > INT32_MAX || (int32_t)n != node ||
        !dryi_doctor_piece_next(line, length, &at, &word) ||
        !dryi_doctor_piece_is(word, "zone") ||
        !dryi_doctor_piece_next(line, length, &at, &word))
        return 0;
    return at;
}

bool
dryi_text_buddies(const char *text, size_t length, int32_t node, unsigned order,
                  uint64_t *free, uint64_t *in_large)
{
    size_t at = 0, n;
    const char *line;
    uint64_t sum = 0, large = 0;
    bool has_any = false;
    while (dryi_fact_line(text, length, &at, &line, &n)) {
        size_t in = buddy_counts(line, n, node);
        struct dryi_doctor_piece word;
        uint64_t count;
        /* The kernel prints about 20 orders; columns beyond the 32nd are ignored. */
        for (unsigned i = 0; in && i < 32 && dryi_doctor_piece_next(line, n, &in, &word);
             i++) {
            if (!dryi_doctor_piece_number(word, &count))
                return false;
            uint64_t pages = count > UINT64_MAX >> i ? UINT64_MAX : count << i;
            sum = dryi_add_saturating(sum, pages);
            large = i < order ? large : dryi_add_saturating(large, pages);
            has_any = true;
        }
    }
    if (has_any) {
        *free = sum;
        *in_large = large;
    }
    return has_any;
}

/* linux/mmzone.h has six types, and some that depend on the build. */
#define BLOCK_KINDS_MAX 16

/* Add one row: a count for each type. A malformed row changes nothing. */
static bool
add_blocks(struct dryi_blocks *sum, const struct dryi_doctor_piece *kinds,
           size_t kind_count, struct dryi_doctor_piece rest)
{
    struct dryi_blocks b = *sum;
    struct dryi_doctor_piece word;
    uint64_t count;
    size_t at = 0;
    for (size_t i = 0;
         i < kind_count && dryi_doctor_piece_next(rest.bytes, rest.length, &at, &word);
         i++) {
        if (!dryi_doctor_piece_number(word, &count))
            return false;
        b.all = dryi_add_saturating(b.all, count);
        if (dryi_doctor_piece_is(kinds[i], "Unmovable"))
            b.unmovable = dryi_add_saturating(b.unmovable, count);
        else if (dryi_doctor_piece_is(kinds[i], "Reclaimable"))
            b.reclaimable = dryi_add_saturating(b.reclaimable, count);
    }
    *sum = b;
    return true;
}

bool
dryi_text_blocks(const char *text, size_t length, int32_t node,
                 struct dryi_blocks *blocks)
{
    static const char title[] = "Number of blocks type";
    struct dryi_doctor_piece kinds[BLOCK_KINDS_MAX];
    struct dryi_blocks sum = {0};
    size_t at = 0, kind_count = 0, n;
    const char *line;
    while (dryi_fact_line(text, length, &at, &line, &n)) {
        size_t in = sizeof title - 1;
        if (kind_count == 0 && dryi_text_begins(line, n, title)) {
            while (kind_count < BLOCK_KINDS_MAX &&
                   dryi_doctor_piece_next(line, n, &in, &kinds[kind_count]))
                kind_count++;
        } else if (kind_count && dryi_text_begins(line, n, "Number of")) {
            break; /* another table, printed by kernels with page owners */
        } else if (kind_count && (in = buddy_counts(line, n, node)) != 0 &&
                   !add_blocks(&sum, kinds, kind_count,
                               (struct dryi_doctor_piece){line + in, n - in})) {
            return false;
        }
    }
    if (sum.all == 0)
        return false;
    *blocks = sum;
    return true;
}

/* Parse "0x00000000fd000000". */
static bool
read_hexadecimal(struct dryi_doctor_piece word, uint64_t *number)
{
    return dryi_text_begins(word.bytes, word.length, "0x") &&
           dryi_fact_hexadecimal(word.bytes + 2, word.length - 2, number);
}

bool
dryi_text_window(const char *text, size_t length, uint64_t *bytes)
{
    /* linux/ioport.h: IORESOURCE_MEM and IORESOURCE_PREFETCH */
    const uint64_t wanted = 0x200 | 0x2000;
    uint64_t largest = 0;
    size_t at = 0, n;
    const char *line;
    while (dryi_fact_line(text, length, &at, &line, &n)) {
        struct dryi_doctor_piece word;
        uint64_t parts[3]; /* first address, last address, flags */
        size_t in = 0, count = 0;
        while (count < 3 && dryi_doctor_piece_next(line, n, &in, &word) &&
               read_hexadecimal(word, &parts[count]))
            count++;
        if (count == 3 && (parts[2] & wanted) == wanted && parts[1] > parts[0] &&
            parts[1] - parts[0] >= largest)
            largest = dryi_add_saturating(parts[1] - parts[0], 1);
    }
    if (largest)
        *bytes = largest;
    return largest != 0;
}

/* Parse "7f00-7f01 r-xp 00000000 fd:00 12   /usr/lib/liba.so" into the path, which may
   contain blanks. */
static bool
mapped_path(const char *line, size_t length, struct dryi_doctor_piece *path)
{
    struct dryi_doctor_piece word;
    size_t at = 0;
    for (int i = 0; i < 5; i++)
        if (!dryi_doctor_piece_next(line, length, &at, &word))
            return false;
    while (at < length && is_blank(line[at]))
        at++;
    *path = (struct dryi_doctor_piece){line + at, length - at};
    return at < length && line[at] == '/';
}

bool
dryi_text_mapped(const char *text, size_t length, const char *name,
                 struct dryi_doctor_piece *path)
{
    size_t at = 0, n;
    const char *line;
    while (dryi_fact_line(text, length, &at, &line, &n)) {
        struct dryi_doctor_piece whole;
        if (!mapped_path(line, n, &whole))
            continue;
        const char *slash = memrchr(whole.bytes, '/', whole.length);
        size_t folder = (size_t)(slash - whole.bytes) + 1;
        if (!dryi_text_begins(slash + 1, whole.length - folder, name))
            continue;
        *path = whole;
        return true;
    }
    return false;
}

/* Parse the size in "rw,size=65536k,mode=755"; UINT64_MAX: none. */
static uint64_t
size_of_options(struct dryi_doctor_piece options)
{
    uint64_t bytes = UINT64_MAX;
    for (size_t at = 0; at < options.length;) {
        const char *begin = options.bytes + at;
        const char *comma = memchr(begin, ',', options.length - at);
        size_t n = comma ? (size_t)(comma - begin) : options.length - at;
        if (dryi_text_begins(begin, n, "size="))
            dryi_doctor_piece_size((struct dryi_doctor_piece){begin + 5, n - 5}, &bytes);
        at += n + 1;
    }
    return bytes;
}

bool
dryi_text_mount_size(const char *text, size_t length, const char *point, uint64_t *bytes)
{
    size_t at = 0, n;
    const char *line;
    bool is_found = false;
    while (dryi_fact_line(text, length, &at, &line, &n)) {
        struct dryi_doctor_piece word, options;
        size_t in = 0;
        bool is_whole = true;
        for (int i = 0; i < 5 && is_whole; i++)
            is_whole = dryi_doctor_piece_next(line, n, &in, &word);
        if (!is_whole || !dryi_doctor_piece_is(word, point))
            continue;
        while (is_whole && !dryi_doctor_piece_is(word, "-"))
            is_whole = dryi_doctor_piece_next(line, n, &in, &word);
        if (!is_whole || !dryi_doctor_piece_next(line, n, &in, &word) ||
            !dryi_doctor_piece_is(word, "tmpfs") ||
            !dryi_doctor_piece_next(line, n, &in, &word) ||
            !dryi_doctor_piece_next(line, n, &in, &options))
            continue;
        *bytes = size_of_options(options);
        is_found = true;
    }
    return is_found;
}

/* Parse "12.34" at the beginning of a word into two numbers. */
static bool
read_pair(struct dryi_doctor_piece word, uint64_t *major, uint64_t *minor)
{
    uint64_t a, b;
    size_t n = leading_number(word, &a);
    if (n == 0 || n + 1 >= word.length || word.bytes[n] != '.')
        return false;
    struct dryi_doctor_piece rest = {word.bytes + n + 1, word.length - n - 1};
    if (leading_number(rest, &b) == 0)
        return false;
    *major = a;
    *minor = b;
    return true;
}

bool
dryi_text_release(const char *text, size_t length, uint32_t *major, uint32_t *minor)
{
    uint64_t a, b;
    if (!read_pair((struct dryi_doctor_piece){text, length}, &a, &b) || a > 1000 ||
        b > 100000)
        return false;
    *major = (uint32_t)a;
    *minor = (uint32_t)b;
    return true;
}

bool
dryi_text_driver(const char *text, size_t length, uint64_t *major, uint64_t *minor)
{
    size_t at = 0, n, in = 0;
    const char *line;
    struct dryi_doctor_piece word;
    while (dryi_fact_line(text, length, &at, &line, &n)) {
        if (!dryi_text_begins(line, n, "NVRM version:"))
            continue;
        while (dryi_doctor_piece_next(line, n, &in, &word))
            if (read_pair(word, major, minor))
                return true;
        return false;
    }
    return false;
}

/* Get the value of "NAME=VALUE", if the word has this name. */
static bool
get_value(struct dryi_doctor_piece word, const char *name,
          struct dryi_doctor_piece *value)
{
    size_t n = strlen(name);
    if (!dryi_text_begins(word.bytes, word.length, name) || word.length == n ||
        word.bytes[n] != '=')
        return false;
    *value = (struct dryi_doctor_piece){word.bytes + n + 1, word.length - n - 1};
    return true;
}

bool
dryi_text_boot_option(const char *text, size_t length, const char *name,
                      struct dryi_doctor_piece *value)
{
    size_t at = 0;
    struct dryi_doctor_piece word;
    bool is_found = false;
    while (dryi_doctor_piece_next(text, length, &at, &word))
        is_found = get_value(word, name, value) || is_found;
    return is_found;
}

/* Sum the pages of "512" or "0:256,1:256". */
static bool
sum_boot_pages(struct dryi_doctor_piece value, uint64_t *pages)
{
    uint64_t sum = 0, n;
    if (value.length == 0)
        return false;
    for (size_t at = 0; at < value.length;) {
        const char *begin = value.bytes + at;
        const char *comma = memchr(begin, ',', value.length - at);
        size_t part = comma ? (size_t)(comma - begin) : value.length - at;
        const char *colon = memchr(begin, ':', part);
        size_t skip = colon ? (size_t)(colon - begin) + 1 : 0;
        if (!dryi_doctor_piece_number(
                (struct dryi_doctor_piece){begin + skip, part - skip}, &n))
            return false;
        sum = dryi_add_saturating(sum, n);
        at += part + 1;
    }
    *pages = sum;
    return true;
}

bool
dryi_text_boot_pool(const char *text, size_t length, uint64_t page_bytes,
                    uint64_t default_bytes, uint64_t *pages)
{
    size_t at = 0;
    struct dryi_doctor_piece word, value;
    uint64_t bytes = default_bytes;
    bool is_found = false;
    while (dryi_doctor_piece_next(text, length, &at, &word)) {
        if (get_value(word, "hugepagesz", &value)) {
            if (!dryi_doctor_piece_size(value, &bytes))
                bytes = 0;
        } else if (get_value(word, "hugepages", &value) && bytes == page_bytes) {
            is_found = sum_boot_pages(value, pages) || is_found;
        }
    }
    return is_found;
}

/* Return the length of the part at `at`, which ends at `between` outside brackets. */
static size_t
part_length(struct dryi_doctor_piece text, size_t at, char between)
{
    size_t depth = 0, i = at;
    for (; i < text.length; i++) {
        char c = text.bytes[i];
        if (c == '[')
            depth++;
        else if (c == ']' && depth)
            depth--;
        else if (c == between && depth == 0)
            break;
    }
    return i - at;
}

bool
dryi_text_setting(struct dryi_doctor_piece text, char between, char inside, size_t *at,
                  struct dryi_doctor_setting *setting)
{
    while (*at < text.length && text.bytes[*at] == between)
        ++*at;
    if (*at >= text.length)
        return false;
    const char *part = text.bytes + *at;
    size_t n = part_length(text, *at, between);
    const char *middle = memchr(part, inside, n);
    size_t key = middle ? (size_t)(middle - part) : n;
    size_t value = middle ? n - key - 1 : 0;
    *setting = (struct dryi_doctor_setting){{part, key}, {part + n - value, value}};
    *at += n;
    return true;
}

/* Read a version if the last bytes end in "5.3.0-" and no digit precedes them. */
static bool
read_jemalloc(struct dryi_jemalloc *j)
{
    char text[DRYI_JEMALLOC_TEXT_MAX];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = j->window[(j->count + i) % sizeof text];
    const char *tail = text + sizeof text - 8;
    if (!dryi_is_digit(tail[0]) || tail[1] != '.' || !dryi_is_digit(tail[2]) ||
        tail[3] != '.' || !dryi_is_digit(tail[4]) || tail[5] != '-' ||
        !dryi_is_digit(tail[6]) || tail[7] != '-' || tail[-1] != '\0')
        return false;
    j->major = (uint32_t)(tail[0] - '0');
    j->minor = (uint32_t)(tail[2] - '0');
    j->patch = (uint32_t)(tail[4] - '0');
    return true;
}

void
dryi_jemalloc_feed(struct dryi_jemalloc *j, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length && !j->is_known; i++) {
        j->window[j->count % sizeof j->window] = bytes[i];
        j->count++;
        /* in "5.3.0-0-g" the dash ends the version */
        j->is_known = bytes[i] == '-' && read_jemalloc(j);
    }
}
