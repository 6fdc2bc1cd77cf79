/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every interleaving of two and of three threads of a model of os/lock.c, step by step as it
 * stands there. Each thread has a store buffer that drains at any time (total store order: an
 * exchange drains its own, the fence everybody's, one after the other); the kernel sleeps a
 * thread only while the word is 2, wakes any one, and now and then one for nothing.
 *
 * Nowhere do two threads hold the lock, nowhere do all that are not done sleep, and in the end
 * it is free. The same search finds what is wrong with each of a few spoilt locks, or it would
 * not have been able to see it. Four threads of two rounds each, 28 million states at most,
 * were gone through once, without a fault.
 */
#include "support/cmocka.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3
#define ROUNDS_MAX 3

enum spoilt {
    SOUND,
    NO_FENCE,            /* who finds it not contended says so, and no more */
    NO_SECOND_LOOK,      /* sleeps without a look at contended behind the exchange */
    NO_LOOK_BEHIND,      /* gives by a store, and does not look who sleeps */
    RESET_AND_STORE,     /* what ends the contended time gives by a store, too */
    RESET_BEHIND,        /* contended is ended when the lock is given already */
    SLEEPER_TAKES_ONE,   /* who slept leaves no 2 for the others that do */
    SLEEPER_LEAVES_CALM, /* who slept does not see to it that it is given as contended */
    RESET_WAKES_NONE, /* what ends the contended time wakes only whom the word tells of */
    TORN_TAKE,        /* looks whether it is free, and takes it a step later */
};

struct lock_case {
    unsigned threads, rounds; /* of take and give, each */
    unsigned calm_max;
    bool has_barrier;
    bool is_refused; /* the fence was promised, and is not to be had */
    bool is_woken_for_nothing;
    enum spoilt spoilt;
};

enum verdict { NO_FAULT, TWO_HOLDERS, LOST_WAKE, LEFT_TAKEN };

/* What a thread does next. */
enum at {
    TAKE,        /* the exchange if free */
    TAKE_LATE,   /* of TORN_TAKE */
    SLEEP_LOOK,  /* is it contended? */
    SLEEP_SET,   /* it is now */
    SLEEP_FENCE, /* one thread after the other */
    SLEEP_SWAP,  /* the exchange for 2 */
    SLEEP_AGAIN, /* is it contended still? */
    SLEEP_WAIT,  /* the kernel compares */
    ASLEEP,      /* until somebody wakes it */
    SLEEP_TAKEN, /* the exchange found it free; from here on it has the lock */
    HELD,        /* is it contended? */
    GIVE_STORE,  /* it was not */
    GIVE_LOOK,   /* behind the store; it has the lock no more */
    CALM_COUNT,  /* it is */
    CALM_RESET,  /* for long nobody slept */
    GIVE_LAST,   /* the exchange for 0 behind that */
    GIVE_SWAP,   /* the exchange for 0 */
    RESET_LATE,  /* of RESET_BEHIND */
    WAKE,        /* one, whoever it is */
    DONE,
};

enum store { NOTHING, WORD_0, CONTENDED_0, CONTENDED_1 };

struct actor {
    unsigned at;       /* enum at */
    unsigned rounds;   /* to go */
    unsigned unfenced; /* of those whose stores the fence waits for, a bit each */
    unsigned is_brief; /* it sleeps for a moment only */
    unsigned store;    /* enum store, the one on its way: no step makes a second */
};

struct state {
    unsigned word, is_contended, calm;
    struct actor actors[THREADS];
};

struct search {
    const struct lock_case *asked;
    uint64_t *seen; /* 0: nothing here */
    size_t seen_capacity, seen_count;
    uint64_t *todo;
    size_t todo_capacity, todo_count;
    enum verdict verdict;
};

/* --- states ------------------------------------------------------------------------------- */

static void
put_bits(uint64_t *packed, unsigned value, unsigned bits)
{
    assert_true(value < 1U << bits);
    *packed = *packed << bits | value;
}

static unsigned
take_bits(uint64_t *packed, unsigned bits)
{
    unsigned value = (unsigned)(*packed & ((1U << bits) - 1));
    *packed >>= bits;
    return value;
}

/* Never 0. */
static uint64_t
pack(const struct state *s)
{
    uint64_t packed = 1;
    for (unsigned i = 0; i < THREADS; i++) {
        const struct actor *a = &s->actors[i];
        put_bits(&packed, a->at, 5);
        put_bits(&packed, a->rounds, 2);
        put_bits(&packed, a->unfenced, THREADS);
        put_bits(&packed, a->is_brief, 1);
        put_bits(&packed, a->store, 2);
    }
    put_bits(&packed, s->word, 2);
    put_bits(&packed, s->is_contended, 1);
    put_bits(&packed, s->calm, 2);
    return packed;
}

static struct state
unpack(uint64_t packed)
{
    struct state s;
    s.calm = take_bits(&packed, 2);
    s.is_contended = take_bits(&packed, 1);
    s.word = take_bits(&packed, 2);
    for (unsigned i = THREADS; i-- > 0;) {
        struct actor *a = &s.actors[i];
        a->store = take_bits(&packed, 2);
        a->is_brief = take_bits(&packed, 1);
        a->unfenced = take_bits(&packed, THREADS);
        a->rounds = take_bits(&packed, 2);
        a->at = take_bits(&packed, 5);
    }
    return s;
}

/* --- the search --------------------------------------------------------------------------- */

static size_t
slot_of(const struct search *s, uint64_t packed)
{
    uint64_t hash = packed * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 20) & (s->seen_capacity - 1);
    while (s->seen[at] && s->seen[at] != packed)
        at = (at + 1) & (s->seen_capacity - 1);
    return at;
}

static void
grow_seen(struct search *s)
{
    struct search larger = *s;
    larger.seen_capacity = s->seen_capacity ? 2 * s->seen_capacity : 1U << 16;
    larger.seen = calloc(larger.seen_capacity, sizeof *larger.seen);
    assert_non_null(larger.seen);
    for (size_t i = 0; i < s->seen_capacity; i++) {
        if (s->seen[i])
            larger.seen[slot_of(&larger, s->seen[i])] = s->seen[i];
    }
    free(s->seen);
    *s = larger;
}

static void
push(struct search *s, const struct state *state)
{
    uint64_t packed = pack(state);
    if (2 * s->seen_count >= s->seen_capacity)
        grow_seen(s);
    size_t at = slot_of(s, packed);
    if (s->seen[at])
        return;
    s->seen[at] = packed;
    s->seen_count++;
    if (s->todo_count == s->todo_capacity) {
        s->todo_capacity = s->todo_capacity ? 2 * s->todo_capacity : 1U << 12;
        s->todo = realloc(s->todo, s->todo_capacity * sizeof *s->todo);
        assert_non_null(s->todo);
    }
    s->todo[s->todo_count++] = packed;
}

/* --- memory ------------------------------------------------------------------------------- */

static void
drain(struct state *s, struct actor *a)
{
    if (a->store == WORD_0)
        s->word = 0;
    else if (a->store != NOTHING)
        s->is_contended = a->store == CONTENDED_1;
    a->store = NOTHING;
}

static void
store(struct actor *a, enum store what)
{
    assert_int_equal(a->store, NOTHING);
    a->store = what;
}

/* As the thread sees it: its own store first. */
static bool
is_contended(const struct state *s, const struct actor *a)
{
    return a->store >= CONTENDED_0 ? a->store == CONTENDED_1 : s->is_contended != 0;
}

static unsigned
swap_word(struct state *s, struct actor *a, unsigned word)
{
    drain(s, a);
    unsigned was = s->word;
    s->word = word;
    return was;
}

/* --- the lock: what follows is os/lock.c --------------------------------------------------- */

static void
end_round(struct actor *a)
{
    a->rounds--;
    a->at = a->rounds ? TAKE : DONE;
}

static void
step_take(const struct lock_case *asked, struct state *s, struct actor *a)
{
    drain(s, a);
    bool is_free = s->word == 0 || a->at == TAKE_LATE;
    if (is_free && a->at == TAKE && asked->spoilt == TORN_TAKE) {
        a->at = TAKE_LATE;
        return;
    }
    a->at = is_free ? HELD : SLEEP_LOOK;
    if (is_free)
        s->word = 1;
}

static void
step_fence(const struct lock_case *asked, struct state *s, struct actor *a)
{
    if (asked->is_refused || asked->spoilt == NO_FENCE) {
        a->is_brief |= asked->is_refused;
        a->at = SLEEP_SWAP;
        return;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        if (a->unfenced >> i & 1 && s->actors[i].store == NOTHING)
            a->unfenced &= ~(1U << i);
    }
    if (!a->unfenced)
        a->at = SLEEP_SWAP;
}

static void
step_sleep(const struct lock_case *asked, struct state *s, struct actor *a)
{
    switch (a->at) {
    case SLEEP_LOOK:
        a->at = is_contended(s, a) ? SLEEP_SWAP : SLEEP_SET;
        break;
    case SLEEP_SET:
        drain(s, a);
        s->is_contended = 1;
        a->unfenced = (1U << asked->threads) - 1;
        a->at = SLEEP_FENCE;
        break;
    case SLEEP_FENCE:
        step_fence(asked, s, a);
        break;
    case SLEEP_SWAP:
        a->at = swap_word(s, a, 2) == 0 ? SLEEP_TAKEN : SLEEP_AGAIN;
        if (a->at == SLEEP_TAKEN && asked->spoilt == SLEEPER_TAKES_ONE)
            s->word = 1;
        break;
    case SLEEP_AGAIN:
        a->at = is_contended(s, a) || asked->spoilt == NO_SECOND_LOOK ? SLEEP_WAIT
                                                                      : SLEEP_LOOK;
        break;
    case SLEEP_WAIT:
        a->at = s->word == 2 ? ASLEEP : SLEEP_LOOK;
        break;
    default: /* SLEEP_TAKEN */
        if (asked->spoilt != SLEEPER_LEAVES_CALM)
            store(a, CONTENDED_1);
        a->is_brief = 0;
        a->at = HELD;
    }
}

static void
step_calm(const struct lock_case *asked, struct state *s, struct actor *a)
{
    s->calm = s->word == 2 ? 0 : s->calm + 1;
    bool ends = s->calm > asked->calm_max && asked->has_barrier;
    if (ends || s->calm > asked->calm_max + 1)
        s->calm = 0;
    a->at = !ends ? GIVE_SWAP : CALM_RESET;
}

static void
step_give(const struct lock_case *asked, struct state *s, struct actor *a)
{
    unsigned was;
    switch (a->at) {
    case HELD:
        a->at = is_contended(s, a) ? CALM_COUNT : GIVE_STORE;
        break;
    case GIVE_STORE:
        store(a, WORD_0);
        a->at = GIVE_LOOK;
        break;
    case GIVE_LOOK:
        if (is_contended(s, a) && asked->spoilt != NO_LOOK_BEHIND)
            a->at = WAKE;
        else
            end_round(a);
        break;
    case CALM_COUNT:
        step_calm(asked, s, a);
        if (a->at == CALM_RESET && asked->spoilt == RESET_BEHIND)
            a->at = RESET_LATE;
        break;
    case CALM_RESET:
        drain(s, a);
        s->is_contended = 0;
        a->at = asked->spoilt == RESET_AND_STORE ? GIVE_STORE : GIVE_LAST;
        break;
    case GIVE_LAST:
        was = swap_word(s, a, 0);
        if (was == 2 || asked->spoilt != RESET_WAKES_NONE)
            a->at = WAKE;
        else
            end_round(a);
        break;
    case GIVE_SWAP:
        was = swap_word(s, a, 0);
        if (was == 2)
            a->at = WAKE;
        else
            end_round(a);
        break;
    default: /* RESET_LATE */
        swap_word(s, a, 0);
        store(a, CONTENDED_0);
        a->at = WAKE;
    }
}

/* --- every way ----------------------------------------------------------------------------- */

static void
push_wakes(struct search *search, const struct state *state, unsigned who)
{
    struct state next = *state;
    drain(&next, &next.actors[who]);
    end_round(&next.actors[who]);
    bool any = false;
    for (unsigned i = 0; i < THREADS; i++) {
        struct state woken = next;
        if (woken.actors[i].at != ASLEEP)
            continue;
        woken.actors[i].at = SLEEP_LOOK;
        push(search, &woken);
        any = true;
    }
    if (!any)
        push(search, &next);
}

static void
push_step(struct search *search, const struct state *state, unsigned who)
{
    const struct lock_case *asked = search->asked;
    struct state next = *state;
    struct actor *a = &next.actors[who];
    if (a->at == ASLEEP) {
        if (!a->is_brief && !asked->is_woken_for_nothing)
            return;
        a->at = SLEEP_LOOK;
    } else if (a->at == WAKE) {
        push_wakes(search, state, who);
        return;
    } else if (a->at == DONE) {
        return;
    } else if (a->at <= TAKE_LATE) {
        step_take(asked, &next, a);
    } else if (a->at < HELD) {
        step_sleep(asked, &next, a);
    } else {
        step_give(asked, &next, a);
    }
    push(search, &next);
}

static bool
has_lock(const struct actor *a)
{
    if (a->at >= SLEEP_TAKEN && a->at <= RESET_LATE && a->at != GIVE_LOOK)
        return true;
    return a->store == WORD_0; /* for the others it is given when the store is there */
}

static enum verdict
judge(const struct lock_case *asked, const struct state *s)
{
    unsigned holders = 0, done = 0, asleep = 0;
    bool is_quiet = true;
    for (unsigned i = 0; i < asked->threads; i++) {
        const struct actor *a = &s->actors[i];
        holders += has_lock(a);
        done += a->at == DONE;
        asleep += a->at == ASLEEP && !a->is_brief;
        is_quiet = is_quiet && a->store == NOTHING;
    }
    if (holders > 1)
        return TWO_HOLDERS;
    if (!is_quiet || done + asleep < asked->threads)
        return NO_FAULT;
    if (asleep > 0)
        return LOST_WAKE;
    return s->word ? LEFT_TAKEN : NO_FAULT;
}

static void
push_all(struct search *search, const struct state *state)
{
    for (unsigned i = 0; i < search->asked->threads; i++) {
        if (state->actors[i].store != NOTHING) {
            struct state next = *state;
            drain(&next, &next.actors[i]);
            push(search, &next);
        }
        push_step(search, state, i);
    }
}

static enum verdict
search_all(const struct lock_case *asked, size_t *count)
{
    struct search search = {.asked = asked};
    struct state first = {.is_contended = !asked->has_barrier};
    for (unsigned i = 0; i < THREADS; i++) {
        struct actor *a = &first.actors[i];
        a->rounds = i < asked->threads ? asked->rounds : 0;
        a->at = a->rounds ? TAKE : DONE;
    }
    push(&search, &first);
    while (search.verdict == NO_FAULT && search.todo_count > 0) {
        struct state now = unpack(search.todo[--search.todo_count]);
        search.verdict = judge(asked, &now);
        push_all(&search, &now);
    }
    *count = search.seen_count;
    free(search.seen);
    free(search.todo);
    return search.verdict;
}

/* --- tests --------------------------------------------------------------------------------- */

static void
require_verdict(const struct lock_case *asked, enum verdict wanted)
{
    size_t count;
    enum verdict verdict = search_all(asked, &count);
    if (verdict != wanted)
        fail_msg("%u threads, %u rounds, spoilt %d: verdict %d after %zu states",
                 asked->threads, asked->rounds, (int)asked->spoilt, (int)verdict, count);
}

/* Of calm, 0 and 1; of threads, two and three. */
static void
require_sound(struct lock_case asked)
{
    for (asked.threads = 2; asked.threads <= THREADS; asked.threads++) {
        for (asked.calm_max = 0; asked.calm_max <= 1; asked.calm_max++)
            require_verdict(&asked, NO_FAULT);
    }
}

static void
nobody_is_left_asleep(void **state)
{
    (void)state;
    require_sound((struct lock_case){.rounds = ROUNDS_MAX, .has_barrier = true});
}

static void
waking_for_nothing_harms_nobody(void **state)
{
    (void)state;
    require_sound((struct lock_case){
        .rounds = 2, .has_barrier = true, .is_woken_for_nothing = true});
}

static void
without_a_fence_it_is_contended_for_ever(void **state)
{
    (void)state;
    require_sound((struct lock_case){.rounds = ROUNDS_MAX});
}

static void
fence_refused_later_makes_sleep_short(void **state)
{
    (void)state;
    require_sound(
        (struct lock_case){.rounds = 2, .has_barrier = true, .is_refused = true});
}

static void
every_spoilt_lock_is_found_out(void **state)
{
    (void)state;
    for (int spoilt = SOUND + 1; spoilt <= RESET_WAKES_NONE; spoilt++) {
        struct lock_case asked = {.threads = THREADS,
                                  .rounds = ROUNDS_MAX,
                                  .calm_max = 1,
                                  .has_barrier = true,
                                  .spoilt = (enum spoilt)spoilt};
        require_verdict(&asked, LOST_WAKE);
        asked.is_woken_for_nothing = true;
        require_verdict(&asked, LOST_WAKE);
    }
}

/* A lock whose two steps of taking are not one: the search sees two holders, too. */
static void
torn_exchange_lets_two_in(void **state)
{
    (void)state;
    struct lock_case asked = {
        .threads = 2, .rounds = 1, .has_barrier = true, .spoilt = TORN_TAKE};
    require_verdict(&asked, TWO_HOLDERS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_left_asleep),
        cmocka_unit_test(waking_for_nothing_harms_nobody),
        cmocka_unit_test(without_a_fence_it_is_contended_for_ever),
        cmocka_unit_test(fence_refused_later_makes_sleep_short),
        cmocka_unit_test(every_spoilt_lock_is_found_out),
        cmocka_unit_test(torn_exchange_lets_two_in),
    };
    return cmocka_run_group_tests_name("model_lock", tests, NULL, NULL);
}
