/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place/torch where everything that can fail does, one thing at a time: each request for
 * memory of its own, each call of the device. After each failure the invariants hold and
 * the place goes on; at the end everything is given back.
 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/sim.h>

#include "base/bits.h"
#include "place/torch/torch.h"
#include "prop/torch_ops.h"
#include "support/failing_memory.h"

/* ---- one program of known calls, under each failure ---- */

#define BLOCKS 12

struct run {
    struct dry_sim *sim;
    struct dryi_torch *place;
    dryi_block blocks[BLOCKS];
    size_t count;
    size_t failures; /* calls refused */
};

static void
note(struct run *run, enum dry_status status)
{
    struct dry_error err = {.text = ""};
    enum dry_status checked = dryi_torch_check(run->place, &err);
    if (checked != DRY_OK && checked != DRY_ERR_MEMORY)
        fail_msg("%s", err.text);
    if (status == DRY_OK)
        return;
    if (status != DRY_ERR_MEMORY && status != DRY_ERR_NO_SPACE &&
        status != DRY_ERR_SYSTEM)
        fail_msg("a failure becomes %s", dry_status_name(status));
    run->failures++;
}

static void
try_alloc(struct run *run, uint64_t size, uint64_t stream)
{
    dryi_block block;
    enum dry_status status = dryi_torch_alloc(run->place, size, stream, &block);
    note(run, status);
    if (status == DRY_OK && run->count < BLOCKS)
        run->blocks[run->count++] = block;
}

static void
try_free(struct run *run)
{
    if (run->count == 0)
        return;
    enum dry_status status = dryi_torch_free(run->place, run->blocks[run->count - 1]);
    note(run, status);
    run->count -= status == DRY_OK; /* else it is still in use */
}

static void
try_record(struct run *run, uint64_t stream)
{
    if (run->count > 0)
        note(run,
             dryi_torch_record_stream(run->place, run->blocks[run->count - 1], stream));
}

/* Small, large, oversize, cross-stream, private; twice, so that caches are used too. */
static void
call_everything(struct run *run)
{
    static const uint64_t sizes[] = {100, DRYI_MIB, 3 * DRYI_MIB, 40 * DRYI_MIB,
                                     64 * DRYI_MIB};
    static const struct dryi_pool_id pool = {0, 1};
    for (int round = 0; round < 2; round++) {
        enum dry_status begun = dryi_torch_begin_pool(run->place, pool);
        note(run, begun);
        for (size_t i = 0; i < 5; i++)
            try_alloc(run, sizes[i], i % 2);
        if (begun == DRY_OK)
            assert_int_equal(dryi_torch_end_pool(run->place, pool), DRY_OK);
        for (size_t i = 0; i < 5; i++)
            try_alloc(run, sizes[4 - i], i % 3);
        try_record(run, 5);
        try_record(run, 6);
        for (int i = 0; i < 8; i++)
            try_free(run);
        note(run, dryi_torch_empty_cache(run->place, (struct dryi_pool_id){0, 0}));
        dry_sim_complete_stream(run->sim, 5);
        try_alloc(run, 512, 0);
    }
}

/* Whatever has failed: with the device in order it gives memory again. */
static void
still_serves(struct run *run)
{
    dry_sim_fail_at(run->sim, UINT64_MAX);
    dryi_block block;
    enum dry_status status = dryi_torch_alloc(run->place, 4096, 0, &block);
    assert_int_equal(status, DRY_OK);
    assert_int_equal(dryi_torch_free(run->place, block), DRY_OK);
}

static const char *const confs[] = {
    "",
    "max_split_size_mb:32",
    "expandable_segments:True",
    "garbage_collection_threshold:0.2,per_process_memory_fraction:0.9",
};
#define CONFS (sizeof confs / sizeof *confs)

/* False: not even the objects could be made. */
static bool
open_run(struct run *run, const char *conf, const struct dry_memory *memory)
{
    *run = (struct run){0};
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = 256 * DRYI_MIB;
    assert_int_equal(dry_sim_create(&so, &run->sim, NULL), DRY_OK);
    struct dryi_torch_options o = {.device = dry_sim_get_device(run->sim),
                                   .memory = memory};
    dryi_torch_conf_init(&o.conf);
    assert_int_equal(dryi_torch_conf_parse(conf, strlen(conf), NULL, &o.conf, NULL),
                     DRY_OK);
    struct dry_error err;
    enum dry_status status = dryi_torch_create(&o, &run->place, &err);
    if (status == DRY_OK)
        return true;
    assert_int_equal(status, DRY_ERR_MEMORY);
    assert_int_equal(err.status, DRY_ERR_MEMORY);
    dry_sim_destroy(run->sim);
    return false;
}

static void
close_run(struct run *run)
{
    dryi_torch_destroy(run->place);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(run->sim, &account);
    assert_int_equal(account.used_bytes, 0);
    assert_int_equal(account.reserved_address_bytes, 0);
    assert_int_equal(account.events_live, 0);
    dry_sim_destroy(run->sim);
}

/* True: some request of this run was refused. */
static bool
run_with_memory(const char *conf, size_t n)
{
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, n);
    struct run run;
    bool refused = true;
    if (open_run(&run, conf, &memory)) {
        call_everything(&run);
        refused = fm.failed;
        fm.failed = false; /* there is memory again */
        fm.left = SIZE_MAX;
        still_serves(&run);
        close_run(&run);
    }
    failing_memory_finish(&fm);
    return refused;
}

static void
each_request_for_memory_may_fail(void **state)
{
    (void)state;
    for (size_t c = 0; c < CONFS; c++) {
        size_t n = 0;
        while (run_with_memory(confs[c], n))
            n++;
        assert_true(n > 10);
    }
}

/* How many calls the device refused, the n-th among them. */
static uint64_t
run_with_device(const char *conf, uint64_t n)
{
    struct run run;
    assert_true(open_run(&run, conf, NULL));
    dry_sim_fail_at(run.sim, n);
    call_everything(&run);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(run.sim, &account);
    still_serves(&run);
    close_run(&run);
    return account.failures;
}

static void
each_call_of_the_device_may_fail(void **state)
{
    (void)state;
    for (size_t c = 0; c < CONFS; c++) {
        uint64_t most = 0, unharmed = run_with_device(confs[c], UINT64_MAX);
        for (uint64_t n = 0; n < 100; n++) {
            uint64_t refused = run_with_device(confs[c], n);
            most = refused > most ? refused : most;
        }
        assert_true(most > unharmed);
    }
}

/* ---- random programs, cut short ---- */

static uint64_t
next_random(uint64_t *state)
{
    return dryi_mix64(*state += UINT64_C(0x9e3779b97f4a7c15));
}

#define STEPS 60

static void
make_program(uint64_t seed, uint8_t data[OPS_HEADER + 3 * STEPS])
{
    for (size_t i = 0; i < OPS_HEADER + 3 * STEPS; i++)
        data[i] = (uint8_t)(next_random(&seed) >> 24);
    data[2] = (uint8_t)(seed & 1 ? 0 : data[2]);
}

static void
random_programs_survive_want_of_memory(void **state)
{
    (void)state;
    uint8_t data[OPS_HEADER + 3 * STEPS];
    for (uint64_t seed = 0; seed < 24; seed++) {
        make_program(seed, data);
        for (size_t n = 0;; n++) {
            struct failing_memory fm;
            struct dry_memory memory = failing_memory_init(&fm, n);
            torch_ops_run_alone(data, sizeof data, &memory, UINT64_MAX);
            bool failed = fm.failed;
            failing_memory_finish(&fm);
            if (!failed)
                break;
        }
    }
}

static void
random_programs_survive_a_failing_device(void **state)
{
    (void)state;
    uint8_t data[OPS_HEADER + 3 * STEPS];
    for (uint64_t seed = 0; seed < 24; seed++) {
        make_program(seed, data);
        for (uint64_t n = 0; n < 40; n++)
            torch_ops_run_alone(data, sizeof data, NULL, n);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_for_memory_may_fail),
        cmocka_unit_test(each_call_of_the_device_may_fail),
        cmocka_unit_test(random_programs_survive_want_of_memory),
        cmocka_unit_test(random_programs_survive_a_failing_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
