/* SPDX-License-Identifier: Apache-2.0 */
/* Cards by name, by the beginning of one, and from files, good and bad. */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "dryrun/card_file.h"

static int
find_text(const char *text, struct dry_card *card)
{
    char path[] = "/tmp/drystone-card-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, strlen(text)), strlen(text));
    close(descriptor);
    struct card_file file;
    const struct dry_card *found = NULL;
    int code = card_file_find(&file, "dry-run", path, &found);
    if (code == EXIT_FINE) {
        *card = *found;
        card->name = card->title = ""; /* the file's */
    }
    card_file_finish(&file);
    unlink(path);
    return code;
}

static int
find_name(const char *name, const struct dry_card **card)
{
    struct card_file file;
    int code = card_file_find(&file, "dry-run", name, card);
    card_file_finish(&file);
    return code;
}

static void
a_name_or_its_beginning_is_a_card(void **state)
{
    (void)state;
    const struct dry_card *card = NULL;
    assert_int_equal(find_name("a100-40", &card), EXIT_FINE);
    assert_ptr_equal(card, dry_card_find("a100-40"));
    assert_int_equal(find_name("t4", &card), EXIT_FINE);
    assert_ptr_equal(card, dry_card_find("t4-16"));
    assert_int_equal(find_name("l4", &card), EXIT_FINE); /* not l40-48 */
    assert_ptr_equal(card, dry_card_find("l4-24"));
    assert_int_equal(find_name("h100", &card), EXIT_FINE);
    assert_ptr_equal(card, dry_card_find("h100-80"));
    assert_int_equal(find_name("l40", &card), EXIT_FINE);
    assert_ptr_equal(card, dry_card_find("l40-48"));
    assert_int_equal(find_name("a100", &card), EXIT_USAGE); /* which of two? */
    assert_int_equal(find_name("tpu", &card), EXIT_USAGE);
    assert_int_equal(find_name("", &card), EXIT_USAGE);
}

static void
a_file_changes_what_it_names(void **state)
{
    (void)state;
    struct dry_card card;
    const struct dry_card *like = dry_card_find("a100-40");
    assert_int_equal(find_text("{\"like\": \"a100-40\", \"usable_bytes\": 12000000000,"
                               "\"capability\": \"8.6\", \"sm_count\": 7,"
                               "\"descends\": true}",
                               &card),
                     EXIT_FINE);
    assert_int_equal(card.usable_bytes, 12000000000);
    assert_int_equal(card.capability_major, 8);
    assert_int_equal(card.capability_minor, 6);
    assert_int_equal(card.sm_count, 7);
    assert_true(card.descends);
    assert_int_equal(card.context_bytes, like->context_bytes);
    assert_int_equal(card.threads_per_sm, like->threads_per_sm);
}

static void
a_wrong_file_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "[]",
        "{\"usable\": 1}",
        "{\"like\": \"none\"}",
        "{\"usable_bytes\": 5}",
        "{\"usable_bytes\": -1}",
        "{\"usable_bytes\": 99999999999999999}",
        "{\"capability\": \"9\"}",
        "{\"capability\": \"a.b\"}",
        "{\"capability\": 9.0}",
        "{\"sm_count\": 0}",
        "{\"title\": \"a;total=1\"}",
        "{\"descends\": 1}",
    };
    struct dry_card card;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(find_text(wrong[i], &card), EXIT_INPUT);
    const struct dry_card *found;
    assert_int_equal(find_name("./no-such-file.json", &found), EXIT_INPUT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_or_its_beginning_is_a_card),
        cmocka_unit_test(a_file_changes_what_it_names),
        cmocka_unit_test(a_wrong_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
