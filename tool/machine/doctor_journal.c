/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_journal.h. */
#include "machine/doctor_journal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/doctor.h>

#include "base/fail.h"
#include "base/grow.h"

#define HEADER "drystone.pages-journal/1\n"
#define LINE_BYTES_MAX (sizeof(struct journal_entry) + 8)

static bool
is_id(const char *id)
{
    size_t length = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return length > 0 && id[length] == '\0';
}

static bool
put(char *to, size_t capacity, const char *from)
{
    size_t length = strlen(from);
    if (length >= capacity)
        return false;
    memcpy(to, from, length + 1);
    return true;
}

static bool
make_entry(struct journal_entry *e, const char *const words[4])
{
    *e = (struct journal_entry){.id = ""};
    return put(e->id, sizeof e->id, words[0]) && put(e->path, sizeof e->path, words[1]) &&
           put(e->old_value, sizeof e->old_value, words[2]) &&
           put(e->new_value, sizeof e->new_value, words[3]) && is_id(e->id) &&
           dry_doctor_may_write(e->path, e->old_value) &&
           dry_doctor_may_write(e->path, e->new_value);
}

static enum dry_status
append(struct journal *journal, const struct journal_entry *entry, struct dry_error *err)
{
    if (journal->count == JOURNAL_ENTRIES_MAX)
        return fail_at(err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                       "the journal has %d entries already: undo them first",
                       JOURNAL_ENTRIES_MAX);
    struct journal_entry *more = grow(journal->entries, journal->count,
                                      &journal->capacity, sizeof *journal->entries);
    if (!more)
        return fail_memory(err, "no memory for the journal");
    journal->entries = more;
    journal->entries[journal->count++] = *entry;
    return DRY_OK;
}

/* Split a line into four words separated by single blanks. */
static bool
split(char *line, const char *words[4])
{
    for (int i = 0; i < 4; i++) {
        words[i] = line;
        char *blank = strchr(line, ' ');
        if (i == 3)
            return blank == NULL;
        if (!blank)
            return false;
        *blank = '\0';
        line = blank + 1;
    }
    return false;
}

static enum dry_status
read_line(const char *line, size_t length, struct journal *journal, uint64_t offset,
          struct dry_error *err)
{
    char text[LINE_BYTES_MAX];
    const char *words[4];
    struct journal_entry entry;
    if (length >= sizeof text || memchr(line, '\0', length))
        return fail_at(err, DRY_ERR_FORMAT, offset, "this is no line of a journal");
    memcpy(text, line, length);
    text[length] = '\0';
    if (!split(text, words) || !make_entry(&entry, words))
        return fail_at(err, DRY_ERR_FORMAT, offset,
                       "this is nothing that pages --apply writes: all of it is refused");
    return append(journal, &entry, err);
}

enum dry_status
journal_read(const char *text, size_t length, struct journal *journal,
             struct dry_error *err)
{
    struct journal j = {0};
    const size_t begin = sizeof HEADER - 1;
    enum dry_status status = DRY_OK;
    if (length < begin ? memcmp(text, HEADER, length) != 0
                       : memcmp(text, HEADER, begin) != 0)
        return fail_at(err, DRY_ERR_FORMAT, 0, "expected a journal of pages --apply");
    for (size_t at = begin; at < length && status == DRY_OK;) {
        const char *end = memchr(text + at, '\n', length - at);
        if (!end)
            break; /* torn by a crash: the change of this entry was not made */
        size_t n = (size_t)(end - (text + at));
        status = read_line(text + at, n, &j, at, err);
        at += n + 1;
    }
    if (status == DRY_OK)
        *journal = j;
    else
        journal_finish(&j);
    return status;
}

void
journal_finish(struct journal *journal)
{
    free(journal->entries);
    *journal = (struct journal){0};
}

enum dry_status
journal_add(struct journal *journal, const char *id, const char *path,
            const char *old_value, const char *new_value, struct dry_error *err)
{
    struct journal_entry entry;
    const char *const words[4] = {id, path, old_value, new_value};
    if (!make_entry(&entry, words))
        return fail_at(err, DRY_ERR_ARGUMENT, DRY_NO_OFFSET, "%s: not to be written",
                       path);
    return append(journal, &entry, err);
}

void
journal_remove(struct journal *journal, size_t i)
{
    journal->count--;
    memmove(journal->entries + i, journal->entries + i + 1,
            (journal->count - i) * sizeof *journal->entries);
}

char *
journal_write(const struct journal *journal, size_t *length)
{
    size_t capacity = sizeof HEADER + journal->count * LINE_BYTES_MAX;
    char *text = malloc(capacity);
    if (!text)
        return NULL;
    memcpy(text, HEADER, sizeof HEADER);
    size_t used = sizeof HEADER - 1;
    for (size_t i = 0; i < journal->count; i++) {
        const struct journal_entry *e = &journal->entries[i];
        used += (size_t)snprintf(text + used, capacity - used, "%s %s %s %s\n", e->id,
                                 e->path, e->old_value, e->new_value);
    }
    *length = used;
    return text;
}
