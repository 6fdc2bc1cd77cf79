/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_apply.h. */
#include "machine/doctor_apply.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/doctor.h>

#include "base/command.h"
#include "base/term.h"

static void
say(FILE *out, const struct journal_entry *e, const char *what, int error)
{
    fprintf(out, "%s: ", e->id);
    term_print_text(out, e->path, strlen(e->path));
    fprintf(out, "\n  %s%s%s\n", what, error ? ": " : "", error ? strerror(-error) : "");
}

/* Tell whether a pool's size lies between the old and the requested one. The kernel may
   grant fewer huge pages than requested. */
static bool
is_between(const struct journal_entry *e, const char *value)
{
    if (!strstr(e->path, "/nr_hugepages") || !dry_doctor_may_write(e->path, value))
        return false;
    unsigned long long now = strtoull(value, NULL, 10);
    unsigned long long a = strtoull(e->old_value, NULL, 10);
    unsigned long long b = strtoull(e->new_value, NULL, 10);
    return a < b ? now >= a && now <= b : now >= b && now <= a;
}

/* Record the actual value in the journal if the kernel changed the value on writing. */
static void
take_other(const struct apply_files *files, struct journal *journal, const char *value,
           FILE *out)
{
    struct journal_entry *e = &journal->entries[journal->count - 1];
    char text[96];
    snprintf(text, sizeof text, "%s was asked for, the kernel made it %s", e->new_value,
             value);
    say(out, e, text, 0);
    if (dry_doctor_may_write(e->path, value)) {
        memcpy(e->new_value, value, APPLY_VALUE_MAX);
        files->save(files->self, journal); /* if saving fails, undo still recognizes the
                                              value by is_between() */
    }
}

/* Remove the last entry: its change was not written, so there is nothing to undo. */
static void
forget_last(const struct apply_files *files, struct journal *journal)
{
    journal_remove(journal, journal->count - 1);
    files->save(files->self, journal); /* if saving fails, undo finds the old value */
}

static void
write_last(const struct apply_files *files, struct journal *journal, FILE *out,
           struct apply_count *counts)
{
    struct journal_entry *e = &journal->entries[journal->count - 1];
    char value[APPLY_VALUE_MAX] = "";
    int error = files->write(files->self, e->path, e->new_value);
    if (error) {
        say(out, e, "cannot be written", error);
        counts->refused++;
        forget_last(files, journal);
        return;
    }
    error = files->read(files->self, e->path, value);
    if (error) {
        say(out, e, "was written, but cannot be read back", error);
        counts->refused++;
    } else if (strcmp(value, e->new_value) == 0) {
        char text[96];
        snprintf(text, sizeof text, "%s, was %s", e->new_value, e->old_value);
        say(out, e, text, 0);
        counts->done++;
    } else {
        take_other(files, journal, value, out);
        counts->refused++;
    }
}

static int
to_exit_code(const struct apply_count *counts)
{
    if (counts->refused)
        return EXIT_MACHINE;
    return counts->left ? EXIT_FOUND : EXIT_FINE;
}

/* Apply a change. Returns EXIT_FINE to continue with the next change. */
static int
apply_one(const struct apply_files *files, struct journal *journal,
          const struct journal_entry *change, FILE *out, struct apply_count *counts)
{
    char value[APPLY_VALUE_MAX] = "";
    struct dry_error err;
    int error = files->read(files->self, change->path, value);
    if (error || strcmp(value, change->old_value) != 0) {
        say(out, change,
            error ? "cannot be read" : "has another value by now, and is left alone",
            error);
        counts->refused += error != 0;
        counts->left += error == 0;
        return EXIT_FINE;
    }
    if (journal_add(journal, change->id, change->path, change->old_value,
                    change->new_value, &err) != DRY_OK) {
        say(out, change, err.text, 0);
        return EXIT_MACHINE;
    }
    error = files->save(files->self, journal);
    if (error) {
        journal_remove(journal, journal->count - 1);
        say(out, change, "not written: the journal cannot be saved", error);
        return EXIT_MACHINE;
    }
    write_last(files, journal, out, counts);
    return EXIT_FINE;
}

int
apply_changes(const struct apply_files *files, struct journal *journal,
              const struct journal_entry *changes, size_t count, FILE *out,
              struct apply_count *counts)
{
    *counts = (struct apply_count){0};
    int code = EXIT_FINE;
    for (size_t i = 0; i < count && code == EXIT_FINE; i++)
        code = apply_one(files, journal, &changes[i], out, counts);
    return code == EXIT_FINE ? to_exit_code(counts) : code;
}

/* Undo an entry. Returns true if the entry needs no further attempt. */
static bool
undo_one(const struct apply_files *files, const struct journal_entry *e, FILE *out,
         struct apply_count *counts)
{
    char value[APPLY_VALUE_MAX] = "";
    int error = files->read(files->self, e->path, value);
    if (!error && strcmp(value, e->old_value) == 0) {
        say(out, e, "is as it was", 0);
        counts->done++;
        return true;
    }
    if (!error && strcmp(value, e->new_value) != 0 && !is_between(e, value)) {
        say(out, e, "was changed by somebody else since, and is left alone", 0);
        counts->left++;
        return true;
    }
    if (!error)
        error = files->write(files->self, e->path, e->old_value);
    if (!error)
        error = files->read(files->self, e->path, value);
    if (!error && strcmp(value, e->old_value) == 0) {
        char text[96];
        snprintf(text, sizeof text, "%s again", e->old_value);
        say(out, e, text, 0);
        counts->done++;
        return true;
    }
    say(out, e, error ? "cannot be undone" : "cannot be undone: it did not change",
        error);
    counts->refused++;
    return false;
}

int
apply_undo(const struct apply_files *files, struct journal *journal, FILE *out,
           struct apply_count *counts)
{
    *counts = (struct apply_count){0};
    for (size_t i = journal->count; i-- > 0;) {
        struct journal_entry e = journal->entries[i];
        if (!undo_one(files, &e, out, counts))
            continue;
        journal_remove(journal, i);
        int error = files->save(files->self, journal);
        if (error) {
            say(out, &e, "was undone, but the journal cannot be saved", error);
            counts->refused++;
        }
    }
    return to_exit_code(counts);
}
