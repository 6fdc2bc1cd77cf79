/* SPDX-License-Identifier: Apache-2.0 */

/* Write a message in the form of the newest PyTorch. Sizes have two decimals and, like PyTorch's,
   the next unit from above 1024 on. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/sized.h"
#include "explain/message/message.h"

struct output {
    char *text;
    size_t capacity, length;
};

__attribute__((format(printf, 2, 3))) static void
print(struct output *out, const char *format, ...)
{
    size_t left = out->length < out->capacity ? out->capacity - out->length : 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(left ? out->text + out->length : NULL, left, format, args);
    va_end(args);
    out->length += n > 0 ? (size_t)n : 0;
}

/* Return whether a size is printed in a unit below `unit`. PyTorch prints 1024 bytes as bytes and
   1025 as "1.00 KiB", which is read as 1024. The width of the interval tells them apart. */
static bool
is_below_unit(const struct dry_message_size *size, uint64_t unit)
{
    return size->bytes < unit ||
           (size->bytes == unit && size->high - size->low <= unit / DRYI_KIB / 50);
}

static void
print_size(struct output *out, const struct dry_message_size *size)
{
    double bytes = (double)size->bytes;
    if (size->known == DRY_MESSAGE_BEYOND)
        print(out, "17179869184.00 GiB"); /* PyTorch's 2^64 for what NVML cannot tell */
    else if (is_below_unit(size, DRYI_KIB) ||
             (size->low == size->high && size->bytes >> 57)) /* 2^58 is beyond */
        print(out, "%" PRIu64 " bytes", size->bytes);
    else if (is_below_unit(size, DRYI_MIB))
        print(out, "%.2f KiB", bytes / (double)DRYI_KIB);
    else if (is_below_unit(size, DRYI_GIB))
        print(out, "%.2f MiB", bytes / (double)DRYI_MIB);
    else
        print(out, "%.2f GiB", bytes / (double)DRYI_GIB);
}

/* Print a size with its text; nothing if the size is absent. */
static void
print_part(struct output *out, const char *before, const struct dry_message_size *size,
           const char *after)
{
    if (size->known == DRY_MESSAGE_ABSENT)
        return;
    print(out, "%s", before);
    print_size(out, size);
    print(out, "%s", after);
}

static void
print_device(struct output *out, const struct dry_message *m)
{
    if (m->total.known != DRY_MESSAGE_ABSENT) {
        print(out, ". GPU %" PRIu32 " has a total capacity of ", m->device);
        print_size(out, &m->total);
    }
    print_part(out, " of which ", &m->free, " is free");
    print(out, ". ");
    for (size_t i = 0; i < m->other_count; i++) {
        print(out, "Process %" PRIu64 " has ", m->others[i].pid);
        print_size(out, &m->others[i].bytes);
        print(out, " memory in use. ");
    }
    print_part(out, "Including non-PyTorch memory, this process has ", &m->process,
               " memory in use. ");
    print_part(out, "", &m->allowed, " allowed; ");
}

static void
print_pytorch(struct output *out, const struct dry_message *m)
{
    struct dry_message_size rest = m->unallocated;
    bool has_parts =
        m->reserved.known == DRY_MESSAGE_KNOWN && m->allocated.known == DRY_MESSAGE_KNOWN;
    if (rest.known == DRY_MESSAGE_ABSENT && has_parts &&
        m->reserved.bytes >= m->allocated.bytes) {
        rest.known = DRY_MESSAGE_KNOWN;
        rest.bytes = m->reserved.bytes - m->allocated.bytes;
    }
    print_part(out, "Of the allocated memory ", &m->allocated,
               " is allocated by PyTorch, ");
    print_part(out, "with ", &m->private_pools,
               " allocated in private pools (e.g., CUDA Graphs), ");
    print_part(out, "and ", &rest, " is reserved by PyTorch but unallocated.");
}

static const char *
name_variable(const struct dry_message *m)
{
    switch (m->variable) {
    case DRY_MESSAGE_VARIABLE_GENERIC:
        return "PYTORCH_ALLOC_CONF";
    case DRY_MESSAGE_VARIABLE_HIP:
        return "PYTORCH_HIP_ALLOC_CONF";
    case DRY_MESSAGE_VARIABLE_NONE:
    case DRY_MESSAGE_VARIABLE_CUDA:
        break;
    }
    return "PYTORCH_CUDA_ALLOC_CONF";
}

static void
print_hints(struct output *out, const struct dry_message *m)
{
    if (m->expandable_reserve.known != DRY_MESSAGE_ABSENT)
        print_part(out, " This allocation exceeds the expandable-segment reserve of ",
                   &m->expandable_reserve, ".");
    else if (m->hints & DRY_MESSAGE_HINT_RESERVE)
        print(out, " See expandable_segments_reserve.");
    if (m->hints & DRY_MESSAGE_HINT_EXPANDABLE)
        print(out, " To avoid fragmentation try %s=expandable_segments:True.",
              name_variable(m));
    else if (m->variable != DRY_MESSAGE_VARIABLE_NONE)
        print(out, " See %s.", name_variable(m));
    if (m->hints & DRY_MESSAGE_HINT_MAX_SPLIT)
        print(out, " See max_split_size_mb.");
    if (m->hints & DRY_MESSAGE_HINT_EMPTY_CACHE)
        print(out, " See `empty_cache`.");
    if (m->hints & DRY_MESSAGE_HINT_WATERMARK)
        print(out, " See PYTORCH_MPS_HIGH_WATERMARK_RATIO.");
}

/* Print one of '%', '~', '^', '#' and '$' of a pattern. */
static void
print_figure(struct output *out, char mark, const struct dry_message_figure *f)
{
    const struct dry_message_size *size = &f->size;
    bool is_beyond = size->known == DRY_MESSAGE_BEYOND;
    if (f->is_negative && mark == '%')
        print(out, "-");
    if (mark == '%' && !is_beyond && size->low == size->high)
        print(out, "%" PRIu64 " bytes", size->bytes);
    else if (mark == '%' || mark == '~')
        print_size(out, size);
    else if (mark == '#')
        print(out, "%" PRIu64, is_beyond ? UINT64_MAX : size->bytes);
    else if (mark == '!')
        print(out, "%" PRIu64, is_beyond ? UINT64_MAX : size->bytes / DRYI_KIB);
    else if (mark == '^')
        print(out, "%.2f",
              is_beyond ? 17179869184.0 : (double)size->bytes / (double)DRYI_GIB);
    else
        print(out, "%" PRIu64 ".%06" PRIu64,
              is_beyond ? UINT64_C(1000000000) : size->bytes / 1000000,
              size->bytes % 1000000);
}

/* Return whether the message has all numbers of a phrase, and one of them is not yet among the
   `printed` ones. */
static bool
has_numbers(const struct dry_message *m, const struct dryi_message_phrase *p,
            uint64_t *printed)
{
    size_t count = 0;
    uint64_t bits = 0;
    for (const char *c = p->pattern; *c; c++) {
        if (!strchr(DRYI_MESSAGE_MARKS, *c))
            continue;
        uint8_t to = p->to[count++];
        bool is_quantity = to < DRY_MESSAGE_QUANTITY_COUNT;
        if (to == DRYI_TO_DEVICE ? !m->has_device
            : is_quantity
                ? dryi_message_get(m, (enum dry_message_quantity)to).size.known ==
                      DRY_MESSAGE_ABSENT
                : true)
            return false;
        bits |= UINT64_C(1) << to;
    }
    bool is_new = bits & ~*printed;
    *printed |= bits;
    return is_new;
}

static void
print_phrase(struct output *out, const struct dry_message *m,
             const struct dryi_message_phrase *p)
{
    size_t count = 0;
    print(out, " ");
    for (const char *c = p->pattern; *c; c++) {
        if (!strchr(DRYI_MESSAGE_MARKS, *c)) {
            print(out, "%c", *c);
            continue;
        }
        uint8_t to = p->to[count++];
        if (to == DRYI_TO_DEVICE) {
            print(out, "%" PRIu32, m->device);
        } else {
            struct dry_message_figure f =
                dryi_message_get(m, (enum dry_message_quantity)to);
            print_figure(out, *c, &f);
        }
    }
}

/* Print the phrases of a kind whose numbers are known. */
static void
print_phrases(struct output *out, const struct dry_message *m, size_t kind,
              uint64_t *printed)
{
    struct dryi_message_phrases list = dryi_message_get_phrases(kind);
    for (size_t i = 0; i < list.count; i++) {
        if (has_numbers(m, list.rows + i, printed))
            print_phrase(out, m, list.rows + i);
    }
}

/* Print the first head of a kind, or a phrase that has the head's words. */
static void
print_head(struct output *out, const struct dry_message *m, size_t kind,
           uint64_t *printed)
{
    size_t count;
    const struct dryi_message_head *h = dryi_message_get_heads(&count);
    struct dryi_message_phrases list = dryi_message_get_phrases(kind);
    while (h->kind != kind)
        h++; /* every kind has a head */
    for (size_t i = 0; i < list.count; i++) {
        const struct dryi_message_phrase *p = list.rows + i;
        if (strncmp(p->pattern, h->words, strlen(h->words)) == 0 &&
            has_numbers(m, p, printed)) {
            print_phrase(out, m, p);
            return;
        }
    }
    print(out, "%s%s", h->words, h->flags & DRYI_HEAD_CLOSED ? "\n" : "");
}

/* Print what is known of a foreign message. */
static void
print_foreign(struct output *out, const struct dry_message *m)
{
    const struct dryi_message_kind *kind = dryi_message_find_kind(m);
    uint64_t printed = 0;
    if (!kind)
        return;
    size_t number = dryi_message_number_kind(kind);
    print_head(out, m, number, &printed);
    if (kind->needs)
        print(out, " %s", kind->needs);
    print_phrases(out, m, number, &printed);
    if (kind->also)
        print_phrases(out, m, kind->also, &printed);
}

size_t
dry_message_write(const struct dry_message *message, char *text, size_t capacity)
{
    static const char *const backends[DRY_MESSAGE_BACKEND_COUNT] = {
        "Out",     "CUDA out", "HIP out", "XPU out", "MPS backend out",
        "NPU out", "Out",      "Out",
    };
    struct output out = {.text = text, .capacity = capacity};
    struct dry_message known = {0};
    const struct dry_message *m = &known;
    if (capacity)
        text[0] = '\0';
    if (dryi_sized_take(&known, sizeof known, message, NULL) != DRY_OK)
        return 0;
    size_t index = (size_t)m->backend;
    if (m->form >= DRY_MESSAGE_HOST && m->form < DRY_MESSAGE_FORM_COUNT) {
        print_foreign(&out, m);
        return out.length;
    }
    if (m->form == DRY_MESSAGE_DRIVER) {
        print(&out, "%s error: out of memory",
              m->backend == DRY_MESSAGE_HIP ? "HIP" : "CUDA");
        return out.length;
    }
    print(&out, "%s of memory", backends[index < DRY_MESSAGE_BACKEND_COUNT ? index : 0]);
    if (m->form == DRY_MESSAGE_HUGE) {
        print(&out, ". Tried to allocate more than 1EB memory.");
    } else if (m->form == DRY_MESSAGE_SHORT) {
        print_part(&out, ". Tried to allocate ", &m->tried, "");
        print(&out, ".");
        print_part(&out, " ", &m->allowed, " allowed; ");
        print_hints(&out, m);
    } else if (m->form == DRY_MESSAGE_REJECTED) {
        print(&out, ". Allocation was preemptively rejected because it would exceed "
                    "per_process_memory_fraction limit.");
        print_part(&out, " Requested size: ", &m->tried, "");
    } else {
        print_part(&out, ". Tried to allocate ", &m->tried, "");
        print_device(&out, m);
        print_pytorch(&out, m);
        print_hints(&out, m);
    }
    return out.length;
}
