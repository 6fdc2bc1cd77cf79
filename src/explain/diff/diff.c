/* SPDX-License-Identifier: Apache-2.0 */

/* Compute the rows of a comparison: the owners of each subject at its moment, matched by
   diff_match.c, one row per owner. Cost: that of the owners, plus O(n log n) to sort the rows. */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/search.h"
#include "base/sized.h"
#include "base/sort.h"
#include "explain/diff/diff_inside.h"

void
dry_diff_options_init_sized(struct dry_diff_options *options, size_t struct_size)
{
    const struct dry_diff_options defaults = {0};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- owners of the subjects --------------------------------------------------------------- */

/* Return the sites of the subject's trace; compute them once per trace. */
static enum dry_status
find_trace(struct dry_diff *diff, size_t subject, struct dry_error *err)
{
    const struct dry_trace *trace =
        dry_timeline_get_view(diff->subjects[subject].timeline)->trace;
    for (size_t i = 0; i < diff->trace_count; i++) {
        if (diff->traces[i].trace == trace) {
            diff->trace_of[subject] = (uint32_t)i;
            return DRY_OK;
        }
    }
    struct dryi_diff_trace *t = &diff->traces[diff->trace_count];
    diff->trace_of[subject] = (uint32_t)diff->trace_count++;
    t->trace = trace;
    return dryi_sites_init(&t->sites, trace, &diff->memory, err);
}

static enum dry_status
find_owners(struct dry_diff *diff, size_t subject, struct dry_error *err)
{
    enum dry_status status = find_trace(diff, subject, err);
    if (status != DRY_OK)
        return status;
    struct dry_owners_options options;
    dry_owners_options_init(&options);
    options.memory = &diff->memory;
    options.key = diff->key;
    options.moment = diff->subjects[subject].moment;
    options.categories = diff->subjects[subject].categories;
    status = dryi_owners_create(diff->subjects[subject].timeline, &options,
                                &diff->traces[diff->trace_of[subject]].sites,
                                &diff->owners[subject], err);
    if (status == DRY_OK)
        diff->total_cells[subject] =
            (struct dry_diff_cell){.subject = (uint32_t)subject,
                                   .bytes = dry_owners_total(diff->owners[subject])};
    return status;
}

static uint32_t
get_line(const struct dry_diff *diff, size_t subject, const struct dry_owner *owner)
{
    if (diff->key != DRY_OWNER_LINE || owner->frame == DRY_NONE)
        return 0;
    const struct dry_trace *trace = diff->traces[diff->trace_of[subject]].trace;
    return dry_trace_get_view(trace)->frames[owner->frame].line;
}

static bool
collect_entries(struct dry_diff *diff)
{
    size_t total = 0, count;
    for (size_t i = 0; i < diff->subject_count; i++) {
        dry_owners_get(diff->owners[i], &count);
        total += count;
    }
    if (total == 0)
        return true;
    if (total >= DRY_NONE)
        return false;
    diff->entries = dryi_memory_zalloc(&diff->memory, total, sizeof *diff->entries);
    if (!diff->entries)
        return false;
    diff->entry_count = total;
    struct dryi_diff_entry *entry = diff->entries;
    for (size_t i = 0; i < diff->subject_count; i++) {
        const struct dry_owner *owners = dry_owners_get(diff->owners[i], &count);
        for (size_t k = 0; k < count; k++) {
            diff->total_cells[i].count += owners[k].count;
            *entry++ = (struct dryi_diff_entry){.owner = &owners[k],
                                                .subject = (uint32_t)i,
                                                .line = get_line(diff, i, &owners[k])};
        }
    }
    return true;
}

/* --- rows --------------------------------------------------------------------------------- */

static int
compare_by_row(const void *a, const void *b)
{
    const struct dryi_diff_entry *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->subject != y->subject)
        return x->subject < y->subject ? -1 : 1;
    if (x->owner->bytes != y->owner->bytes) /* the largest entry names the row */
        return x->owner->bytes > y->owner->bytes ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static void
add_to_cell(struct dry_diff_cell *cell, const struct dryi_diff_entry *entry)
{
    cell->bytes = dryi_add_saturating(cell->bytes, entry->owner->bytes);
    cell->count += entry->owner->count;
}

/* Sum up a row's entries into one cell per subject. Returns the number of entries. */
static size_t
fill_row(struct dry_diff_row *row, const struct dryi_diff_entry *entries, size_t count,
         struct dry_diff_cell *cells)
{
    const struct dry_owner *owner = entries[0].owner;
    *row = (struct dry_diff_row){.name = owner->name,
                                 .name_length = owner->name_length,
                                 .what = owner->what,
                                 .what_length = owner->what_length,
                                 .cells = cells};
    size_t i = 0;
    for (; i < count && entries[i].row == entries[0].row; i++) {
        if (i == 0 || entries[i].subject != entries[i - 1].subject)
            cells[row->cell_count++] = (struct dry_diff_cell){
                .subject = entries[i].subject, .line = entries[i].line};
        add_to_cell(&cells[row->cell_count - 1], &entries[i]);
    }
    return i;
}

uint64_t
dry_diff_bytes(const struct dry_diff_row *row, uint32_t subject)
{
    size_t i = dryi_count_below(row->cells, row->cell_count, sizeof *row->cells,
                                offsetof(struct dry_diff_cell, subject), subject);
    bool is_there = i < row->cell_count && row->cells[i].subject == subject;
    return is_there ? row->cells[i].bytes : 0;
}

/* Compute a row's statistics. Subjects without a cell count as 0 bytes. */
static void
measure_row(struct dry_diff_row *row, size_t subject_count)
{
    uint64_t bytes[DRY_DIFF_SUBJECTS_MAX];
    size_t absent = subject_count - row->cell_count, middle = (subject_count - 1) / 2;
    for (size_t i = 0; i < row->cell_count; i++)
        bytes[i] = row->cells[i].bytes;
    qsort(bytes, row->cell_count, sizeof *bytes, dryi_compare_leading);
    row->min = absent ? 0 : bytes[0];
    row->max = bytes[row->cell_count - 1];
    row->spread = row->max - row->min;
    row->median = middle < absent ? 0 : bytes[middle - absent];
    uint64_t farthest = 0;
    for (uint32_t i = 0; i < subject_count; i++) {
        uint64_t b = dry_diff_bytes(row, i);
        uint64_t distance = b > row->median ? b - row->median : row->median - b;
        if (distance > farthest) {
            farthest = distance;
            row->outlier = i;
        }
    }
}

static int
compare_rows(const void *a, const void *b)
{
    const struct dry_diff_row *x = a, *y = b;
    if (x->spread != y->spread)
        return x->spread > y->spread ? -1 : 1;
    size_t length = x->name_length < y->name_length ? x->name_length : y->name_length;
    int order = memcmp(x->name, y->name, length);
    if (order != 0)
        return order;
    if (x->name_length != y->name_length)
        return x->name_length < y->name_length ? -1 : 1;
    return (x->cells > y->cells) - (x->cells < y->cells);
}

static bool
make_rows(struct dry_diff *diff)
{
    if (diff->entry_count == 0)
        return true;
    size_t count = diff->entry_count;
    diff->rows = dryi_memory_zalloc(&diff->memory, diff->row_count, sizeof *diff->rows);
    diff->cells = dryi_memory_zalloc(&diff->memory, count, sizeof *diff->cells);
    if (!diff->rows || !diff->cells)
        return false;
    qsort(diff->entries, count, sizeof *diff->entries, compare_by_row);
    struct dry_diff_cell *cells = diff->cells;
    size_t row = 0;
    for (size_t i = 0; i < count; row++) {
        i += fill_row(&diff->rows[row], &diff->entries[i], count - i, cells);
        cells += diff->rows[row].cell_count;
        measure_row(&diff->rows[row], diff->subject_count);
    }
    qsort(diff->rows, diff->row_count, sizeof *diff->rows, compare_rows);
    return true;
}

/* --- creation ----------------------------------------------------------------------------- */

static enum dry_status
check(const struct dry_diff_options *options, size_t count, struct dry_error *err)
{
    if (count == 0 || count > DRY_DIFF_SUBJECTS_MAX)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "%zu subjects: expected 1 to %u", count,
                         DRY_DIFF_SUBJECTS_MAX);
    if (options->key == DRY_OWNER_STACK || options->key == DRY_OWNER_STEP)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "owners by %s cannot be compared",
                         dry_owner_key_name(options->key));
    return DRY_OK;
}

static enum dry_status
fill(struct dry_diff *diff, struct dry_error *err)
{
    diff->traces =
        dryi_memory_zalloc(&diff->memory, diff->subject_count, sizeof *diff->traces);
    if (!diff->traces)
        return dryi_fail_memory(err, "the diff");
    enum dry_status status = DRY_OK;
    for (size_t i = 0; status == DRY_OK && i < diff->subject_count; i++)
        status = find_owners(diff, i, err);
    if (status != DRY_OK)
        return status;
    if (!collect_entries(diff) || !dryi_diff_match(diff) || !make_rows(diff) ||
        !dryi_diff_find_facts(diff))
        return dryi_fail_memory(err, "the diff");
    diff->total = (struct dry_diff_row){.name = "total",
                                        .name_length = 5,
                                        .what = "",
                                        .cell_count = diff->subject_count,
                                        .cells = diff->total_cells};
    measure_row(&diff->total, diff->subject_count);
    return DRY_OK;
}

enum dry_status
dry_diff_create(const struct dry_diff_subject *subjects, size_t count,
                const struct dry_diff_options *options, struct dry_diff **diff,
                struct dry_error *err)
{
    struct dry_diff_options o;
    dry_diff_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status == DRY_OK)
        status = check(&o, count, err);
    if (status != DRY_OK)
        return status;
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_diff *d = dryi_memory_zalloc(&memory, 1, sizeof *d);
    if (!d)
        return dryi_fail_memory(err, "the diff");
    d->memory = memory;
    d->key = o.key;
    d->subject_count = count;
    memcpy(d->subjects, subjects, count * sizeof *subjects);
    dryi_intern_init(&d->texts, &d->memory);
    status = fill(d, err);
    if (status == DRY_OK)
        *diff = d;
    else
        dry_diff_destroy(d);
    return status;
}

void
dry_diff_destroy(struct dry_diff *diff)
{
    if (!diff)
        return;
    struct dry_memory memory = diff->memory;
    for (size_t i = 0; i < diff->subject_count; i++)
        dry_owners_destroy(diff->owners[i]);
    for (size_t i = 0; i < diff->trace_count; i++)
        dryi_sites_finish(&diff->traces[i].sites);
    dryi_memory_free(&memory, diff->traces, diff->subject_count, sizeof *diff->traces);
    dryi_memory_free(&memory, diff->entries, diff->entry_count, sizeof *diff->entries);
    dryi_memory_free(&memory, diff->rows, diff->row_count, sizeof *diff->rows);
    dryi_memory_free(&memory, diff->cells, diff->entry_count, sizeof *diff->cells);
    dryi_memory_free(&memory, diff->values, DRYI_DIFF_FACTS * diff->subject_count,
                     sizeof *diff->values);
    dryi_intern_finish(&diff->texts);
    dryi_memory_free(&memory, diff, 1, sizeof *diff);
}

/* --- access ------------------------------------------------------------------------------- */

const struct dry_diff_row *
dry_diff_get_rows(const struct dry_diff *diff, size_t *count)
{
    *count = diff->row_count;
    return diff->rows;
}

const struct dry_diff_row *
dry_diff_get_total(const struct dry_diff *diff)
{
    return &diff->total;
}

const struct dry_diff_fact *
dry_diff_get_facts(const struct dry_diff *diff, size_t *count)
{
    *count = DRYI_DIFF_FACTS;
    return diff->facts;
}
