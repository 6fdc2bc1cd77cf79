/* SPDX-License-Identifier: Apache-2.0 */

/*
 * base/treap against a walk over all items: two sets in one array of nodes, keys that
 * differ in the major, in the minor or only by index, and keys at both ends of 64 bits.
 */
#include "support/cmocka.h"

#include "base/bits.h"
#include "base/treap.h"
#include "support/random.h"

#define ITEMS 300
#define SETS 2

struct sets {
    struct dryi_treap_node nodes[ITEMS];
    uint32_t roots[SETS];
    uint8_t set_of[ITEMS]; /* 0: in none, else number + 1 */
};

static int
compare_keys(const struct sets *s, uint32_t item, uint64_t major, uint64_t minor)
{
    const struct dryi_treap_node *n = &s->nodes[item];
    if (n->major != major)
        return n->major < major ? -1 : 1;
    return n->minor < minor ? -1 : n->minor > minor;
}

static bool
is_less(const struct sets *s, uint32_t a, uint32_t b)
{
    int order = compare_keys(s, a, s->nodes[b].major, s->nodes[b].minor);
    return order ? order < 0 : a < b;
}

static uint32_t
naive_at_least(const struct sets *s, unsigned set, uint64_t major, uint64_t minor)
{
    uint32_t best = DRYI_TREAP_NONE;
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (s->set_of[i] == set + 1 && compare_keys(s, i, major, minor) >= 0 &&
            (best == DRYI_TREAP_NONE || is_less(s, i, best)))
            best = i;
    }
    return best;
}

static uint32_t
naive_below(const struct sets *s, unsigned set, uint64_t major, uint64_t minor)
{
    uint32_t best = DRYI_TREAP_NONE;
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (s->set_of[i] == set + 1 && compare_keys(s, i, major, minor) < 0 &&
            (best == DRYI_TREAP_NONE || is_less(s, best, i)))
            best = i;
    }
    return best;
}

/* What comes behind an item and all its equals. */
static uint32_t
naive_after(const struct sets *s, unsigned set, uint32_t item)
{
    uint32_t best = DRYI_TREAP_NONE;
    const struct dryi_treap_node *n = &s->nodes[item];
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (s->set_of[i] == set + 1 && compare_keys(s, i, n->major, n->minor) > 0 &&
            (best == DRYI_TREAP_NONE || is_less(s, i, best)))
            best = i;
    }
    return best;
}

static uint64_t
random_key(struct random *r, uint64_t range)
{
    uint64_t key = random_below(r, range);
    return random_below(r, 4) ? key : UINT64_MAX - key;
}

static void
init(struct sets *s)
{
    *s = (struct sets){.roots = {DRYI_TREAP_NONE, DRYI_TREAP_NONE}};
}

/* `shared` priorities: many alike, so that ties decide the shape. */
static void
move_one(struct sets *s, struct random *r, uint64_t range, bool shared)
{
    uint32_t item = (uint32_t)random_below(r, ITEMS);
    if (s->set_of[item]) {
        dryi_treap_remove(s->nodes, &s->roots[s->set_of[item] - 1], item);
        s->set_of[item] = 0;
        return;
    }
    unsigned set = (unsigned)random_below(r, SETS);
    uint64_t priority = shared ? random_below(r, 4) : dryi_mix64(item + UINT64_C(1));
    s->nodes[item] = (struct dryi_treap_node){.major = random_key(r, range),
                                              .minor = random_key(r, range),
                                              .priority = (uint32_t)priority};
    dryi_treap_insert(s->nodes, &s->roots[set], item);
    s->set_of[item] = (uint8_t)(set + 1);
}

static void
compare_searches(const struct sets *s, struct random *r, uint64_t range)
{
    for (unsigned set = 0; set < SETS; set++) {
        uint64_t major = random_key(r, range), minor = random_key(r, range);
        uint32_t root = s->roots[set];
        assert_int_equal(dryi_treap_at_least(s->nodes, root, major, minor),
                         naive_at_least(s, set, major, minor));
        assert_int_equal(dryi_treap_below(s->nodes, root, major, minor),
                         naive_below(s, set, major, minor));
        uint32_t item = (uint32_t)random_below(r, ITEMS);
        if (s->set_of[item] == set + 1)
            assert_int_equal(dryi_treap_after(s->nodes, root, item),
                             naive_after(s, set, item));
    }
}

static void
random_operations_as_in_a_list(void **state)
{
    (void)state;
    static const uint64_t ranges[] = {3, 40, UINT64_C(1) << 40};
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct random r;
        struct sets s;
        random_init(&r, seed);
        init(&s);
        for (int step = 0; step < 3000; step++) {
            move_one(&s, &r, ranges[seed % 3], seed % 2);
            compare_searches(&s, &r, ranges[seed % 3]);
        }
        for (uint32_t i = 0; i < ITEMS; i++) {
            if (s.set_of[i])
                dryi_treap_remove(s.nodes, &s.roots[s.set_of[i] - 1], i);
        }
        assert_int_equal(s.roots[0], DRYI_TREAP_NONE);
        assert_int_equal(s.roots[1], DRYI_TREAP_NONE);
    }
}

/* The shape is a function of the contents: the way there does not matter. */
static void
the_shape_forgets_its_history(void **state)
{
    (void)state;
    struct random r;
    struct sets up, down;
    random_init(&r, 1);
    init(&up);
    for (uint32_t i = 0; i < ITEMS; i++)
        up.nodes[i] = (struct dryi_treap_node){.major = random_below(&r, 50),
                                               .minor = random_below(&r, 50),
                                               .priority = (uint32_t)random_below(&r, 9)};
    down = up;
    for (uint32_t i = 0; i < ITEMS; i++) {
        dryi_treap_insert(up.nodes, &up.roots[0], i);
        dryi_treap_insert(down.nodes, &down.roots[0], ITEMS - 1 - i);
    }
    for (uint32_t i = 0; i < ITEMS; i += 3) {
        dryi_treap_remove(up.nodes, &up.roots[0], i);
        dryi_treap_insert(up.nodes, &up.roots[0], i);
    }
    assert_int_equal(up.roots[0], down.roots[0]);
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(up.nodes[i].left, down.nodes[i].left);
        assert_int_equal(up.nodes[i].right, down.nodes[i].right);
    }
}

/* Depth is logarithmic even where keys arrive in order. */
static void
ascending_keys_stay_shallow(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    static struct dryi_treap_node nodes[COUNT];
    uint32_t root = DRYI_TREAP_NONE;
    for (uint32_t i = 0; i < COUNT; i++) {
        nodes[i] = (struct dryi_treap_node){
            .major = i, .priority = (uint32_t)dryi_mix64(i + UINT64_C(1))};
        dryi_treap_insert(nodes, &root, i);
    }
    for (uint32_t i = 0; i < COUNT; i += 7) {
        unsigned depth = 0;
        for (uint32_t at = root; at != i; depth++)
            at = nodes[at].major < i ? nodes[at].right : nodes[at].left;
        assert_true(depth < 60);
    }
}

static void
an_empty_set(void **state)
{
    (void)state;
    struct dryi_treap_node node = {.major = UINT64_MAX, .minor = UINT64_MAX};
    uint32_t root = DRYI_TREAP_NONE;
    assert_int_equal(dryi_treap_at_least(&node, root, 0, 0), DRYI_TREAP_NONE);
    assert_int_equal(dryi_treap_below(&node, root, UINT64_MAX, UINT64_MAX),
                     DRYI_TREAP_NONE);
    dryi_treap_insert(&node, &root, 0);
    assert_int_equal(dryi_treap_at_least(&node, root, UINT64_MAX, UINT64_MAX), 0);
    assert_int_equal(dryi_treap_below(&node, root, UINT64_MAX, UINT64_MAX),
                     DRYI_TREAP_NONE);
    assert_int_equal(dryi_treap_after(&node, root, 0), DRYI_TREAP_NONE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_as_in_a_list),
        cmocka_unit_test(the_shape_forgets_its_history),
        cmocka_unit_test(ascending_keys_stay_shallow),
        cmocka_unit_test(an_empty_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
