/* SPDX-License-Identifier: Apache-2.0 */

/* What `drystone pages` writes and takes back, with each step refused in turn. */
#include "support/cmocka.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "machine/doctor_files.h"
#include "machine/need.h"
#include "support/tree.h"

#define THP "/sys/kernel/mm/transparent_hugepage/enabled"
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
#define SWAP "/proc/sys/vm/swappiness"
#define HEADER "drystone.pages-journal/1\n"
#define TEXT(s) (s), sizeof(s) - 1

/* --- needs -------------------------------------------------------------------------------- */

static void
shapes_become_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"1024,1024,1024 float32", UINT64_C(4) << 30},
        {"(1024, 1024) torch.bfloat16", 2 << 20},
        {"[8x4096] int8", 8 * 4096},
        {"(5,) bool", 5},
        {"3 int4", 2},
        {"0,7 float64", 0},
        {"4GiB", UINT64_C(4) << 30},
        {"4 GB", UINT64_C(4000000000)},
        {"  512 MiB", 512 << 20},
        {"7 complex128", 7 * 16},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t bytes = 1;
        const char *wrong = need_parse(good[i].text, &bytes);
        if (wrong || bytes != good[i].bytes)
            fail_msg("%s: %s", good[i].text, wrong ? wrong : "other bytes");
    }
    static const char *const bad[] = {"",
                                      "float32",
                                      "1024,1024",
                                      "1024, float32",
                                      "(1,2 float32",
                                      "1,2) f4",
                                      "1,2 float33",
                                      "-1 float32",
                                      "1,,2 float32",
                                      "9999999999,9999999999,9999999999 float32",
                                      "99999999999999999999 float32",
                                      "8000000TiB"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t bytes;
        if (!need_parse(bad[i], &bytes))
            fail_msg("%s was taken", bad[i]);
    }
}

/* --- journals ----------------------------------------------------------------------------- */

static void
journals_read_as_they_were_written(void **state)
{
    (void)state;
    struct journal journal = {0}, again;
    struct dry_error err;
    size_t length = 0;
    assert_int_equal(journal_add(&journal, "thp-enabled", THP, "never", "madvise", &err),
                     DRY_OK);
    assert_int_equal(journal_add(&journal, "pool-need", POOL, "0", "2048", &err), DRY_OK);
    char *text = journal_write(&journal, &length);
    assert_non_null(text);
    assert_string_equal(text, HEADER "thp-enabled " THP " never madvise\n"
                                     "pool-need " POOL " 0 2048\n");
    /* Cut anywhere: the lines that are whole. */
    for (size_t cut = 0; cut <= length; cut++) {
        assert_int_equal(journal_read(text, cut, &again, &err), DRY_OK);
        size_t whole = 0;
        for (size_t i = sizeof HEADER - 1; i < cut; i++)
            whole += text[i] == '\n';
        assert_int_equal(again.count, whole);
        journal_finish(&again);
    }
    free(text);
    journal_finish(&journal);
}

static void
hostile_journals_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "x",
        "drystone.pages-journal/2\n",
        HEADER "a /etc/passwd 0 1\n",
        HEADER "a /proc/sys/vm/../kernel/panic 0 1\n",
        HEADER "a " SWAP " 0\n",
        HEADER "a " SWAP " 0 1 2\n",
        HEADER "a " SWAP " 0 x\n",
        HEADER "a  " SWAP " 0 1\n",
        HEADER "A " SWAP " 0 1\n",
        HEADER "\n",
        HEADER " " SWAP " 0 1\n",
        HEADER "a " SWAP " 0 1\n\n",
        HEADER "a " THP " never madvise;reboot\n",
    };
    struct journal journal = {0};
    struct dry_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (journal_read(bad[i], strlen(bad[i]), &journal, &err) != DRY_ERR_FORMAT)
            fail_msg("taken: %s", bad[i]);
    static const char zero[] = HEADER "a\0 " SWAP " 0 1\n";
    assert_int_equal(journal_read(TEXT(zero), &journal, &err), DRY_ERR_FORMAT);
    assert_int_equal(journal_add(&journal, "a", "/etc/passwd", "0", "1", &err),
                     DRY_ERR_ARGUMENT);
    assert_int_equal(journal_add(&journal, "a b", SWAP, "0", "1", &err),
                     DRY_ERR_ARGUMENT);
    assert_null(journal.entries);
}

static void
journals_have_an_end(void **state)
{
    (void)state;
    struct journal journal = {0};
    struct dry_error err;
    for (int i = 0; i < JOURNAL_ENTRIES_MAX; i++)
        assert_int_equal(journal_add(&journal, "a", SWAP, "0", "1", &err), DRY_OK);
    assert_int_equal(journal_add(&journal, "a", SWAP, "0", "1", &err), DRY_ERR_LIMIT);
    journal_finish(&journal);
}

/* --- a machine of three values ------------------------------------------------------------ */

#define VALUES 3

struct fake {
    struct apply_files table;
    char values[VALUES][APPLY_VALUE_MAX];
    uint64_t pool_max; /* what the kernel finds of pages */
    size_t left;       /* calls that are still fine */
    bool has_refused;
    char saved[VALUES * 2][APPLY_VALUE_MAX]; /* old values of the journal on the disk */
    size_t saved_count;
};

static const char *const fake_paths[VALUES] = {THP, POOL, SWAP};

static int
fake_refuse(struct fake *f)
{
    if (f->left-- != 0)
        return 0;
    f->has_refused = true;
    return -EIO;
}

static size_t
fake_find(const char *path)
{
    size_t i = 0;
    while (i < VALUES && strcmp(fake_paths[i], path) != 0)
        i++;
    assert_true(i < VALUES);
    return i;
}

static int
fake_read(void *self, const char *path, char value[APPLY_VALUE_MAX])
{
    struct fake *f = self;
    memcpy(value, f->values[fake_find(path)], APPLY_VALUE_MAX);
    return fake_refuse(f);
}

static int
fake_write(void *self, const char *path, const char *value)
{
    struct fake *f = self;
    size_t i = fake_find(path);
    /* What is changed is on the disk, so that it can be undone. */
    bool is_saved = false;
    for (size_t j = 0; j < f->saved_count; j++)
        is_saved = is_saved || strcmp(f->saved[j], f->values[i]) == 0 ||
                   strcmp(f->saved[j], value) == 0;
    assert_true(is_saved);
    int error = fake_refuse(f);
    if (error)
        return error;
    uint64_t pages = strtoull(value, NULL, 10);
    if (i == 1 && pages > f->pool_max)
        pages = f->pool_max;
    if (i == 1)
        snprintf(f->values[i], APPLY_VALUE_MAX, "%llu", (unsigned long long)pages);
    else
        snprintf(f->values[i], APPLY_VALUE_MAX, "%s", value);
    return 0;
}

static int
fake_save(void *self, const struct journal *journal)
{
    struct fake *f = self;
    int error = fake_refuse(f);
    if (error)
        return error;
    assert_true(journal->count <= VALUES * 2);
    for (size_t i = 0; i < journal->count; i++)
        snprintf(f->saved[i], APPLY_VALUE_MAX, "%s", journal->entries[i].old_value);
    f->saved_count = journal->count;
    return 0;
}

static void
fake_init(struct fake *f)
{
    *f = (struct fake){.values = {"never", "16", "60"}, .pool_max = 4096};
    f->left = SIZE_MAX;
    f->table = (struct apply_files){
        .read = fake_read, .write = fake_write, .save = fake_save, .self = f};
}

static const struct journal_entry changes[VALUES] = {
    {"thp-enabled", THP, "never", "madvise"},
    {"pool-need", POOL, "16", "2048"},
    {"swappiness", SWAP, "60", "10"},
};

static bool
is_as_it_was(const struct fake *f)
{
    return strcmp(f->values[0], "never") == 0 && strcmp(f->values[1], "16") == 0 &&
           strcmp(f->values[2], "60") == 0;
}

static FILE *
nowhere(void)
{
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    return out;
}

static void
changes_are_made_and_undone(void **state)
{
    (void)state;
    struct fake f;
    struct journal journal = {0};
    struct apply_count counts;
    FILE *out = nowhere();
    fake_init(&f);
    assert_int_equal(apply_changes(&f.table, &journal, changes, VALUES, out, &counts),
                     EXIT_FINE);
    assert_true(counts.done == 3 && journal.count == 3 && f.saved_count == 3);
    assert_string_equal(f.values[0], "madvise");
    assert_string_equal(f.values[1], "2048");
    assert_string_equal(f.values[2], "10");
    assert_int_equal(apply_undo(&f.table, &journal, out, &counts), EXIT_FINE);
    assert_true(counts.done == 3 && journal.count == 0 && f.saved_count == 0);
    assert_true(is_as_it_was(&f));
    journal_finish(&journal);
    fclose(out);
}

static void
a_pool_of_fewer_pages_is_told_and_undone(void **state)
{
    (void)state;
    struct fake f;
    struct journal journal = {0};
    struct apply_count counts;
    FILE *out = nowhere();
    fake_init(&f);
    f.pool_max = 1000;
    assert_int_equal(apply_changes(&f.table, &journal, changes, VALUES, out, &counts),
                     EXIT_MACHINE);
    assert_true(counts.done == 2 && counts.refused == 1 && journal.count == 3);
    assert_string_equal(journal.entries[1].new_value, "1000");
    assert_int_equal(apply_undo(&f.table, &journal, out, &counts), EXIT_FINE);
    assert_true(is_as_it_was(&f));
    journal_finish(&journal);
    fclose(out);
}

static void
what_others_changed_is_left_alone(void **state)
{
    (void)state;
    struct fake f;
    struct journal journal = {0};
    struct apply_count counts;
    FILE *out = nowhere();
    fake_init(&f);
    snprintf(f.values[2], APPLY_VALUE_MAX, "30");
    assert_int_equal(apply_changes(&f.table, &journal, changes, VALUES, out, &counts),
                     EXIT_FOUND);
    assert_true(counts.done == 2 && counts.left == 1 && journal.count == 2);
    snprintf(f.values[0], APPLY_VALUE_MAX, "always");
    snprintf(f.values[1], APPLY_VALUE_MAX, "9000");
    assert_int_equal(apply_undo(&f.table, &journal, out, &counts), EXIT_FOUND);
    assert_true(counts.left == 2 && journal.count == 0);
    assert_string_equal(f.values[0], "always");
    assert_string_equal(f.values[1], "9000");
    assert_string_equal(f.values[2], "30");
    journal_finish(&journal);
    fclose(out);
}

/* The n-th call of apply is refused, then undo: the machine is as it was. */
static void
every_refused_step_can_be_undone(void **state)
{
    (void)state;
    FILE *out = nowhere();
    for (size_t n = 0;; n++) {
        struct fake f;
        struct journal journal = {0};
        struct apply_count counts;
        fake_init(&f);
        f.left = n;
        int code = apply_changes(&f.table, &journal, changes, VALUES, out, &counts);
        bool has_refused = f.has_refused;
        assert_int_equal(code, has_refused ? EXIT_MACHINE : EXIT_FINE);
        f.left = SIZE_MAX;
        assert_int_equal(apply_undo(&f.table, &journal, out, &counts), EXIT_FINE);
        assert_true(is_as_it_was(&f));
        journal_finish(&journal);
        if (!has_refused)
            break;
    }
    fclose(out);
}

/* The n-th call of undo is refused; the next undo goes the rest of the way. */
static void
every_refused_undo_can_be_repeated(void **state)
{
    (void)state;
    FILE *out = nowhere();
    for (size_t n = 0;; n++) {
        struct fake f;
        struct journal journal = {0};
        struct apply_count counts;
        fake_init(&f);
        assert_int_equal(apply_changes(&f.table, &journal, changes, VALUES, out, &counts),
                         EXIT_FINE);
        f.left = n;
        int code = apply_undo(&f.table, &journal, out, &counts);
        bool has_refused = f.has_refused;
        assert_int_equal(code, has_refused ? EXIT_MACHINE : EXIT_FINE);
        f.left = SIZE_MAX;
        assert_int_equal(apply_undo(&f.table, &journal, out, &counts), EXIT_FINE);
        assert_true(is_as_it_was(&f) && journal.count == 0);
        journal_finish(&journal);
        if (!has_refused)
            break;
    }
    fclose(out);
}

/* Killed at any moment: what is on the disk then suffices to go back. */
static void
interrupted_journals_suffice(void **state)
{
    (void)state;
    FILE *out = nowhere();
    for (size_t done = 0; done <= VALUES; done++) {
        struct fake f;
        struct journal whole = {0}, journal = {0};
        struct apply_count counts;
        struct dry_error err;
        size_t length = 0;
        fake_init(&f);
        assert_int_equal(apply_changes(&f.table, &whole, changes, done, out, &counts),
                         EXIT_FINE);
        if (done < VALUES) /* the entry was saved, its change was not made */
            assert_int_equal(journal_add(&whole, changes[done].id, changes[done].path,
                                         changes[done].old_value, changes[done].new_value,
                                         &err),
                             DRY_OK);
        char *text = journal_write(&whole, &length);
        assert_non_null(text);
        assert_int_equal(journal_read(text, length, &journal, &err), DRY_OK);
        f.saved_count = 0;
        assert_int_equal(fake_save(&f, &journal), 0);
        assert_int_equal(apply_undo(&f.table, &journal, out, &counts), EXIT_FINE);
        assert_true(is_as_it_was(&f));
        free(text);
        journal_finish(&whole);
        journal_finish(&journal);
    }
    fclose(out);
}

/* --- files -------------------------------------------------------------------------------- */

static void
files_are_written_below_the_root(void **state)
{
    (void)state;
    struct tree tree;
    struct doctor_files files;
    struct journal journal = {0}, again;
    struct dry_error err;
    char name[128], value[APPLY_VALUE_MAX];
    tree_init(&tree);
    tree_add(&tree, THP, "always madvise [never]\n");
    tree_add(&tree, SWAP, "60\n");
    snprintf(name, sizeof name, "%s/var/lib/drystone/pages.journal", tree.root);
    doctor_files_init(&files, tree.root, name);
    assert_int_equal(files.table.read(&files, THP, value), 0);
    assert_string_equal(value, "never");
    assert_int_equal(files.table.write(&files, SWAP, "10"), 0);
    assert_int_equal(files.table.read(&files, SWAP, value), 0);
    assert_string_equal(value, "10");
    assert_int_equal(files.table.read(&files, POOL, value), -ENOENT);

    assert_int_equal(doctor_files_read_journal(&files, &again, &err), DRY_OK);
    assert_int_equal(again.count, 0);
    assert_int_equal(journal_add(&journal, "swappiness", SWAP, "60", "10", &err), DRY_OK);
    assert_int_equal(files.table.save(&files, &journal), 0);
    assert_int_equal(doctor_files_read_journal(&files, &again, &err), DRY_OK);
    assert_int_equal(again.count, 1);
    journal_finish(&again);
    journal_remove(&journal, 0);
    assert_int_equal(files.table.save(&files, &journal), 0);
    assert_int_equal(access(name, F_OK), -1);
    journal_finish(&journal);
    tree_finish(&tree);
}

static void
links_lead_nowhere(void **state)
{
    (void)state;
    struct tree tree, victim;
    struct doctor_files files;
    struct journal journal;
    struct dry_error err;
    char from[128], to[128], value[APPLY_VALUE_MAX];
    tree_init(&tree);
    tree_init(&victim);
    tree_add(&victim, "/vm/swappiness", "60\n");
    tree_add(&victim, "/journal", HEADER);
    /* The last step, and a step on the way. */
    tree_add(&tree, "/sys/kernel/mm/transparent_hugepage/defrag", "[never]\n");
    snprintf(from, sizeof from, "%s/vm/swappiness", victim.root);
    snprintf(to, sizeof to, "%s%s", tree.root, THP);
    assert_int_equal(symlink(from, to), 0);
    tree_add(&tree, "/proc/sys/kernel/numa_balancing", "0\n");
    snprintf(from, sizeof from, "%s/vm", victim.root);
    snprintf(to, sizeof to, "%s/proc/sys/vm", tree.root);
    assert_int_equal(symlink(from, to), 0);
    snprintf(from, sizeof from, "%s/journal", victim.root);
    snprintf(to, sizeof to, "%s/journal", tree.root);
    assert_int_equal(symlink(from, to), 0);

    doctor_files_init(&files, tree.root, to);
    assert_int_not_equal(files.table.write(&files, THP, "never"), 0);
    assert_int_not_equal(files.table.write(&files, SWAP, "10"), 0);
    assert_int_not_equal(files.table.read(&files, SWAP, value), 0);
    assert_int_equal(doctor_files_read_journal(&files, &journal, &err), DRY_ERR_SYSTEM);
    tree_finish(&tree);
    tree_finish(&victim);
}

static void
odd_values_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",         "\n",   "a b\n",
                                      "[never\n", "[]\n", "1234567890123456789012345\n"};
    struct tree tree;
    struct doctor_files files;
    char value[APPLY_VALUE_MAX];
    tree_init(&tree);
    doctor_files_init(&files, tree.root, "none");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tree_add(&tree, SWAP, bad[i]);
        assert_int_equal(files.table.read(&files, SWAP, value), -EINVAL);
    }
    assert_int_equal(files.table.write(&files, SWAP, "123456789012345678901234567"),
                     -EINVAL);
    /* A folder is no value. */
    tree_add(&tree, POOL "/x", "1\n");
    assert_int_not_equal(files.table.read(&files, POOL, value), 0);
    assert_int_not_equal(files.table.write(&files, POOL, "1"), 0);
    tree_finish(&tree);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_become_bytes),
        cmocka_unit_test(journals_read_as_they_were_written),
        cmocka_unit_test(hostile_journals_are_refused),
        cmocka_unit_test(journals_have_an_end),
        cmocka_unit_test(changes_are_made_and_undone),
        cmocka_unit_test(a_pool_of_fewer_pages_is_told_and_undone),
        cmocka_unit_test(what_others_changed_is_left_alone),
        cmocka_unit_test(every_refused_step_can_be_undone),
        cmocka_unit_test(every_refused_undo_can_be_repeated),
        cmocka_unit_test(interrupted_journals_suffice),
        cmocka_unit_test(files_are_written_below_the_root),
        cmocka_unit_test(links_lead_nowhere),
        cmocka_unit_test(odd_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
