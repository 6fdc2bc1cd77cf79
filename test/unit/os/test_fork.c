/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fork.h"

/* What a child forked now says about the mark; `depth` 2: a grandchild. */
static bool
child_says(const struct dryi_fork_mark *mark, int depth)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (depth == 2) {
            pid_t grandchild = fork();
            int status = 0;
            if (grandchild > 0)
                waitpid(grandchild, &status, 0);
            if (grandchild != 0)
                _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
        }
        _exit(dryi_fork_mark_is_child(mark) ? 17 : 18);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == 17 || WEXITSTATUS(status) == 18);
    return WEXITSTATUS(status) == 17;
}

static void
child_and_grandchild_know_it(void **state)
{
    (void)state;
    struct dryi_fork_mark mark;
    dryi_fork_mark_init(&mark);
    assert_false(dryi_fork_mark_is_child(&mark));
    assert_true(child_says(&mark, 1));
    assert_true(child_says(&mark, 2));
    assert_false(dryi_fork_mark_is_child(&mark)); /* the parent stays what it is */
    dryi_fork_mark_finish(&mark);
    dryi_fork_mark_finish(&mark);
}

static void
process_id_serves_where_no_page_is_wiped(void **state)
{
    (void)state;
    struct dryi_fork_mark mark;
    dryi_fork_mark_init(&mark);
    dryi_fork_mark_finish(&mark); /* what is left is the process id */
    assert_int_equal(mark.page_bytes, 0);
    assert_false(dryi_fork_mark_is_child(&mark));
    assert_true(child_says(&mark, 1));
    assert_true(child_says(&mark, 2));
}

static void
finish_accepts_a_zeroed_mark(void **state)
{
    (void)state;
    struct dryi_fork_mark mark = {0};
    dryi_fork_mark_finish(&mark);
    assert_int_equal(mark.page_bytes, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(child_and_grandchild_know_it),
        cmocka_unit_test(process_id_serves_where_no_page_is_wiped),
        cmocka_unit_test(finish_accepts_a_zeroed_mark),
    };
    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
