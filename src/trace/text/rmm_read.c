/* SPDX-License-Identifier: Apache-2.0 */

/*
 * RMM's log, as its logging_resource_adaptor writes it: a CSV whose header names Time,
 * Action, Pointer, Size and Stream, in any order, among others.
 *
 * Pointers are the ids: they are unique among live allocations. A failed allocation
 * becomes an out-of-memory event. Allocations of 0 bytes return a null pointer, even
 * several at a time, and take no memory: they are skipped.
 *
 * Times of day become microseconds since the first midnight. A step back of more than
 * half a day means the next midnight; smaller ones occur because threads log out of
 * order. With a date, times become microseconds since 1970.
 */
#include "trace/text/text_read.h"

#include "base/fail.h"
#include "trace/model/live.h"

#define DAY_US INT64_C(86400000000)

enum rmm_column { TIME, ACTION, POINTER, SIZE, STREAM, COLUMN_COUNT };

struct rmm {
    struct dryi_text_read *r;
    struct dryi_text *text;
    struct dryi_live live;
    struct dryi_column columns[COLUMN_COUNT];
    struct dryi_word cells[DRYI_COLUMNS_MAX];
    size_t cell_count;
    int64_t day_us; /* the days of the midnights passed, in microseconds */
    int64_t last_us;
};

/* Read exactly `digits` digits at *at. Returns false if there are fewer. */
static bool
take_digits(const struct dryi_word *word, size_t *at, unsigned digits, int64_t *value)
{
    *value = 0;
    if (word->length - *at < digits)
        return false;
    for (unsigned i = 0; i < digits; i++, (*at)++) {
        char c = word->bytes[*at];
        if (c < '0' || c > '9')
            return false;
        *value = *value * 10 + (c - '0');
    }
    return true;
}

static bool
take_byte(const struct dryi_word *word, size_t *at, const char *one_of)
{
    if (*at == word->length)
        return false;
    while (*one_of && *one_of != word->bytes[*at])
        one_of++;
    *at += *one_of != 0;
    return *one_of != 0;
}

/* Return the days from 1970-01-01 to a Gregorian date, for years from 1970 on. */
static int64_t
count_days(int64_t year, int64_t month, int64_t day)
{
    /* Begin the year in March: a leap day is then its last day. */
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t m = month <= 2 ? month + 9 : month - 3;
    return y * 365 + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - 719468;
}

/* Read `YYYY-MM-DD` and a blank or T. Without a date, *at stays and *days is -1. */
static bool
take_date(const struct dryi_word *word, size_t *at, int64_t *days)
{
    int64_t year, month, day;
    *days = -1;
    if (word->length < 10 || word->bytes[4] != '-')
        return true;
    if (!take_digits(word, at, 4, &year) || !take_byte(word, at, "-") ||
        !take_digits(word, at, 2, &month) || !take_byte(word, at, "-") ||
        !take_digits(word, at, 2, &day) || !take_byte(word, at, " T"))
        return false;
    *days = count_days(year, month, day);
    return year >= 1970 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* Read the fraction of a second as microseconds, ignoring digits after the sixth. */
static bool
take_fraction(const struct dryi_word *word, size_t *at, int64_t *us)
{
    *us = 0;
    if (!take_byte(word, at, ".:")) /* RMM's first releases wrote a colon */
        return true;
    int64_t unit = 100000;
    size_t begin = *at;
    for (; *at < word->length; (*at)++, unit /= 10) {
        char c = word->bytes[*at];
        if (c < '0' || c > '9')
            break;
        *us += (c - '0') * unit;
    }
    return *at > begin;
}

static bool
parse_time(const struct dryi_word *word, int64_t *days, int64_t *us)
{
    size_t at = 0;
    int64_t hour, minute, second, fraction;
    if (!take_date(word, &at, days) || !take_digits(word, &at, 2, &hour) ||
        !take_byte(word, &at, ":") || !take_digits(word, &at, 2, &minute) ||
        !take_byte(word, &at, ":") || !take_digits(word, &at, 2, &second) ||
        !take_fraction(word, &at, &fraction))
        return false;
    take_byte(word, &at, "Z");
    *us = ((hour * 60 + minute) * 60 + second) * 1000000 + fraction;
    return hour < 24 && minute < 60 && second <= 60 && at == word->length;
}

static enum dry_status
read_time(struct rmm *m, int64_t *time_us)
{
    const struct dryi_word *word = &m->cells[m->columns[TIME].index];
    int64_t days, us;
    if (!parse_time(word, &days, &us))
        return dryi_text_fail_word(m->text, word, "a time HH:MM:SS.ffffff");
    if (days >= 0)
        m->day_us = days * DAY_US;
    else if (m->day_us + us < m->last_us - DAY_US / 2)
        m->day_us += DAY_US;
    *time_us = m->last_us = m->day_us + us;
    return DRY_OK;
}

/* C libraries print a null pointer in different ways. */
static enum dry_status
read_pointer(struct rmm *m, enum rmm_column column, uint64_t *value)
{
    const struct dryi_word *word = &m->cells[m->columns[column].index];
    *value = 0;
    if (dryi_word_is(word, "(nil)") || dryi_word_is(word, "nullptr"))
        return DRY_OK;
    return dryi_text_number(m->text, word, "an address", UINT64_MAX, value);
}

static enum dry_status
read_action(struct rmm *m, enum dry_action *action)
{
    const struct dryi_word *word = &m->cells[m->columns[ACTION].index];
    if (dryi_word_is(word, "allocate"))
        *action = DRY_ACTION_ALLOC;
    else if (dryi_word_is(word, "free") || dryi_word_is(word, "deallocate"))
        *action = DRY_ACTION_FREE_REQUESTED;
    else if (dryi_word_is(word, "allocate failure"))
        *action = DRY_ACTION_OOM;
    else
        return dryi_text_fail_word(m->text, word, "allocate, free or allocate failure");
    return DRY_OK;
}

static enum dry_status
begin_life(struct rmm *m, const struct dry_event *event)
{
    const struct dryi_word *word = &m->cells[m->columns[POINTER].index];
    if (dryi_live_find(&m->live, event->addr))
        return dryi_text_fail_word(m->text, word, "an address that is not alive already");
    if (!dryi_live_put(&m->live, event->addr, event->size, event->lane))
        return dryi_fail_memory(m->r->err, "live allocations");
    return DRY_OK;
}

static enum dry_status
end_life(struct rmm *m, struct dry_event *event)
{
    const struct dryi_word *word = &m->cells[m->columns[POINTER].index];
    const struct dryi_live_entry *entry = dryi_live_find(&m->live, event->addr);
    if (!entry)
        return dryi_text_fail_word(m->text, word, "the address of a live allocation");
    event->size = entry->size;
    event->lane = entry->lane;
    dryi_live_remove(&m->live, entry);
    return DRY_OK;
}

static enum dry_status
add_event(struct rmm *m, struct dry_event *event)
{
    enum dry_status status = DRY_OK;
    if (event->action == DRY_ACTION_OOM)
        event->addr = 0; /* the log does not tell the device's free bytes */
    else if (event->addr == 0 && event->size == 0)
        return DRY_OK;
    else if (event->action == DRY_ACTION_ALLOC)
        status = begin_life(m, event);
    else
        status = end_life(m, event);
    return status == DRY_OK ? dryi_text_add_event(m->r, event) : status;
}

static enum dry_status
read_row(struct rmm *m)
{
    struct dry_event event = {.stack = DRY_NONE, .note = DRY_NONE};
    uint64_t stream;
    enum dry_status status = dryi_text_read_row(m->r, m->cells, m->cell_count);
    if (status == DRY_OK)
        status = read_time(m, &event.time_us);
    if (status == DRY_OK)
        status = read_action(m, &event.action);
    if (status == DRY_OK)
        status = read_pointer(m, POINTER, &event.addr);
    if (status == DRY_OK)
        status = dryi_text_number(m->text, &m->cells[m->columns[SIZE].index],
                                  "a size in bytes", UINT64_MAX, &event.size);
    if (status == DRY_OK)
        status = read_pointer(m, STREAM, &stream);
    if (status == DRY_OK)
        status = dryi_text_add_lane(m->r, stream, 0, &event.lane);
    return status == DRY_OK ? add_event(m, &event) : status;
}

enum dry_status
dryi_rmm_read(struct dryi_text_read *r)
{
    struct rmm m = {.r = r,
                    .text = &r->text,
                    .columns = {[TIME] = {"Time", 0},
                                [ACTION] = {"Action", 0},
                                [POINTER] = {"Pointer", 0},
                                [SIZE] = {"Size", 0},
                                [STREAM] = {"Stream", 0}}};
    dryi_live_init(&m.live, &r->memory);
    enum dry_status status =
        dryi_text_read_header(r, m.columns, COLUMN_COUNT, &m.cell_count);
    if (status == DRY_OK)
        status = dryi_text_next_filled(m.text, 0);
    while (status == DRY_OK) {
        status = read_row(&m);
        if (status == DRY_OK)
            status = dryi_text_next_filled(m.text, 0);
    }
    dryi_live_finish(&m.live);
    return status == DRY_END ? DRY_OK : status;
}
