/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the largest number that fits, against programs of every shape. */
#include "support/cmocka.h"

#include "dryrun/find.h"

typedef uint64_t memory_function(uint64_t number);

/* Search as the command does. Returns the runs that were needed. */
static unsigned
search(struct find *find, memory_function *memory, uint64_t torch_bytes)
{
    unsigned runs = 0;
    uint64_t number;
    while ((number = find_next(find, torch_bytes)) != 0) {
        assert_in_range(number, find->first, find->last);
        assert_true(number > find->low);
        assert_true(find->high == 0 || number < find->high);
        uint64_t bytes = memory(number);
        find_note(find, number, bytes <= torch_bytes,
                  bytes < torch_bytes ? bytes : torch_bytes);
        assert_true(++runs < 200);
    }
    return runs;
}

static uint64_t
straight(uint64_t number)
{
    return 500 + 70 * number;
}

static uint64_t
bent(uint64_t number)
{
    return 500 + number * number / 3;
}

static uint64_t
stepped(uint64_t number)
{
    return 500 + number / 16 * 1000;
}

static uint64_t
flat(uint64_t number)
{
    return number < 900 ? 500 : 1000000000;
}

/* The answer by trying every number. */
static uint64_t
largest(memory_function *memory, uint64_t last, uint64_t torch_bytes)
{
    uint64_t found = 0;
    for (uint64_t n = 1; n <= last && memory(n) <= torch_bytes; n++)
        found = n;
    return found;
}

static void
a_search_finds_what_trying_all_finds(void **state)
{
    (void)state;
    static memory_function *const functions[] = {straight, bent, stepped, flat};
    static const uint64_t lasts[] = {1, 2, 3, 64, 1000, 5000};
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        for (size_t l = 0; l < sizeof lasts / sizeof *lasts; l++) {
            for (uint64_t torch_bytes = 100; torch_bytes < 400000;
                 torch_bytes = torch_bytes * 5 / 4 + 7) {
                struct find find = find_begin(1, lasts[l]);
                search(&find, functions[f], torch_bytes);
                assert_int_equal(find.low, largest(functions[f], lasts[l], torch_bytes));
            }
        }
    }
}

static void
a_straight_line_takes_few_runs(void **state)
{
    (void)state;
    struct find find = find_begin(1, 65536);
    unsigned runs = search(&find, straight, 500 + 70 * 431);
    assert_int_equal(find.low, 431);
    assert_true(runs <= 8);
}

static void
the_first_number_may_not_fit(void **state)
{
    (void)state;
    struct find find = find_begin(8, 64);
    assert_int_equal(search(&find, straight, 600), 1);
    assert_int_equal(find.low, 0);
    assert_int_equal(find.high, 8);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_finds_what_trying_all_finds),
        cmocka_unit_test(a_straight_line_takes_few_runs),
        cmocka_unit_test(the_first_number_may_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
