/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests can fail: a device that lies is found out.
 *
 * Each program is right, and clean on an honest device. On one whose events always seem to
 * have passed, or that does not wait, the same place gives memory out or back too early, and
 * the checker of the simulated device must say exactly that.
 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/sim.h>

#include "base/bits.h"
#include "place/paged/paged.h"
#include "place/torch/torch.h"
#include "prop/place_device.h"
#include "prop/place_ops.h"
#include "support/random.h"

#define OTHER UINT64_C(7)

struct stage {
    struct dry_sim *sim;
    struct place_device device;
    struct dryi_place place;
    uint64_t owner_last;
};

struct piece {
    dryi_block handle;
    uint64_t addr, size, owner;
};

static void
open_stage(struct stage *stage, uint64_t capacity)
{
    *stage = (struct stage){0};
    struct dry_sim_options options;
    dry_sim_options_init(&options);
    options.capacity_bytes = capacity;
    options.check = true;
    assert_int_equal(dry_sim_create(&options, &stage->sim, NULL), DRY_OK);
    place_device_init(&stage->device, dry_sim_get_device(stage->sim));
}

static void
open_torch(struct stage *stage, const char *conf)
{
    struct dryi_torch_options options = {.device = place_device_get(&stage->device)};
    dryi_torch_conf_init(&options.conf);
    assert_int_equal(dryi_torch_conf_parse(conf, strlen(conf), NULL, &options.conf, NULL),
                     DRY_OK);
    struct dryi_torch *torch;
    assert_int_equal(dryi_torch_create(&options, &torch, NULL), DRY_OK);
    stage->place = dryi_torch_as_place(torch);
}

static void
open_paged(struct stage *stage)
{
    struct dryi_paged_options options = {.device = place_device_get(&stage->device)};
    dryi_paged_conf_init(&options.conf);
    assert_int_equal(dryi_paged_create(&options, &stage->place, NULL), DRY_OK);
}

/* How many findings there are; all must be of this fault. */
static uint64_t
close_stage(struct stage *stage, enum dry_sim_fault fault)
{
    const struct dry_device *device = &stage->device.below;
    device->ops->stream_wait(device->self, 0); /* as a program does before it ends */
    device->ops->stream_wait(device->self, OTHER);
    stage->place.ops->destroy(stage->place.self);
    uint64_t count = dry_sim_get_finding_count(stage->sim);
    struct dry_sim_finding finding = DRY_INIT(struct dry_sim_finding);
    for (uint64_t i = 0; dry_sim_get_finding(stage->sim, i, &finding) == DRY_OK; i++) {
        if (finding.fault != fault)
            fail_msg("%s", finding.text);
    }
    dry_sim_destroy(stage->sim);
    return count;
}

static void
use(struct stage *stage, const struct piece *piece, uint64_t stream)
{
    assert_int_equal(
        dry_sim_use(stage->sim, stream, piece->addr, piece->size, piece->owner), DRY_OK);
}

static struct piece
take(struct stage *stage, uint64_t size, uint64_t stream)
{
    struct piece piece = {.owner = ++stage->owner_last};
    assert_int_equal(
        stage->place.ops->alloc(stage->place.self, size, stream, &piece.handle), DRY_OK);
    struct dryi_block_info info;
    stage->place.ops->get_block(stage->place.self, piece.handle, &info);
    piece.addr = info.addr;
    piece.size = info.size;
    assert_int_equal(dry_sim_own(stage->sim, info.addr, info.size, stream, piece.owner),
                     DRY_OK);
    use(stage, &piece, stream);
    return piece;
}

static void
give(struct stage *stage, const struct piece *piece)
{
    dry_sim_disown(stage->sim, piece->owner);
    assert_int_equal(stage->place.ops->free(stage->place.self, piece->handle), DRY_OK);
}

/* A block that another stream still reads is freed, and as much is asked for again. */
static void
reuse_what_another_stream_reads(struct stage *stage)
{
    struct piece first = take(stage, 4 * DRYI_MIB, 0);
    assert_int_equal(dry_sim_stream_waits(stage->sim, OTHER, 0), DRY_OK);
    assert_int_equal(
        stage->place.ops->record_stream(stage->place.self, first.handle, OTHER), DRY_OK);
    use(stage, &first, OTHER);
    give(stage, &first);
    struct piece second = take(stage, 4 * DRYI_MIB, 0);
    give(stage, &second);
}

/* A block that its stream still writes is freed, and cached memory goes back. */
static void
give_back_what_a_stream_writes(struct stage *stage)
{
    struct piece piece = take(stage, 24 * DRYI_MIB, 0);
    give(stage, &piece);
    assert_int_equal(
        stage->place.ops->empty_cache(stage->place.self, (struct dryi_pool_id){0, 0}),
        DRY_OK);
}

/* The pages of what one stream freed are all there is for another. */
static void
take_pages_of_another_stream(struct stage *stage)
{
    struct piece first = take(stage, 12 * DRYI_MIB, 0);
    struct piece second = take(stage, 12 * DRYI_MIB, 0);
    give(stage, &first);
    struct piece third = take(stage, 16 * DRYI_MIB, OTHER);
    give(stage, &second);
    give(stage, &third);
}

static void
early_reuse_is_found_in_torch(void **state)
{
    (void)state;
    for (int lies = 0; lies <= 1; lies++) {
        struct stage stage;
        open_stage(&stage, DRYI_GIB);
        open_torch(&stage, "");
        stage.device.says_done = lies;
        reuse_what_another_stream_reads(&stage);
        assert_int_equal(close_stage(&stage, DRY_SIM_EARLY_REUSE) > 0, lies);
    }
}

static void
early_reuse_is_found_in_paged(void **state)
{
    (void)state;
    for (int lies = 0; lies <= 1; lies++) {
        struct stage stage;
        open_stage(&stage, DRYI_GIB);
        open_paged(&stage);
        stage.device.says_done = lies;
        reuse_what_another_stream_reads(&stage);
        assert_int_equal(close_stage(&stage, DRY_SIM_EARLY_REUSE) > 0, lies);
    }
}

static void
early_unmap_is_found_in_torch(void **state)
{
    (void)state;
    for (int lies = 0; lies <= 1; lies++) {
        struct stage stage;
        open_stage(&stage, DRYI_GIB);
        open_torch(&stage, "expandable_segments:True");
        stage.device.never_waits = lies;
        give_back_what_a_stream_writes(&stage);
        assert_int_equal(close_stage(&stage, DRY_SIM_EARLY_UNMAP) > 0, lies);
    }
}

static void
early_unmap_is_found_in_paged(void **state)
{
    (void)state;
    for (int lies = 0; lies <= 1; lies++) {
        struct stage stage;
        open_stage(&stage, DRYI_GIB);
        open_paged(&stage);
        stage.device.never_waits = lies;
        give_back_what_a_stream_writes(&stage);
        assert_int_equal(close_stage(&stage, DRY_SIM_EARLY_UNMAP) > 0, lies);
    }
}

static void
early_steal_is_found_in_paged(void **state)
{
    (void)state;
    for (int lies = 0; lies <= 1; lies++) {
        struct stage stage;
        open_stage(&stage, 28 * DRYI_MIB);
        open_paged(&stage);
        stage.device.never_waits = stage.device.says_done = lies;
        take_pages_of_another_stream(&stage);
        assert_int_equal(close_stage(&stage, DRY_SIM_EARLY_UNMAP) > 0, lies);
    }
}

/* Random programs find lies without being made for them. */
static uint64_t
count_findings(const struct place_ops_options *options, uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    uint8_t header[PLACE_OPS_HEADER], step[PLACE_OPS_STEP];
    for (int i = 0; i < PLACE_OPS_HEADER; i++)
        header[i] = (uint8_t)(random_next(&random) >> 24);
    header[5] &= 0xbe; /* with other streams and releases */
    header[0] |= 0x70; /* and eight streams */
    struct place_ops *ops = place_ops_create(options, header);
    for (int i = 0; i < 600; i++) {
        for (int k = 0; k < PLACE_OPS_STEP; k++)
            step[k] = (uint8_t)(random_next(&random) >> 24);
        place_ops_step(ops, step);
    }
    struct place_ops_tally tally;
    place_ops_destroy(ops, &tally);
    return tally.findings;
}

static void
random_programs_find_lies(void **state)
{
    (void)state;
    static const enum place_kind kinds[] = {PLACE_TORCH, PLACE_PAGED};
    for (size_t k = 0; k < 2; k++) {
        for (int lie = 0; lie < 2; lie++) {
            struct place_ops_options options = {.kind = kinds[k],
                                                .survey_every = 64,
                                                .no_faults = true,
                                                .expects_findings = true,
                                                .says_done = lie == 0,
                                                .never_waits = lie == 1};
            uint64_t found = 0;
            for (uint64_t seed = 1; seed <= 20; seed++)
                found += count_findings(&options, seed) > 0;
            assert_true(found > 0);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early_reuse_is_found_in_torch),
        cmocka_unit_test(early_reuse_is_found_in_paged),
        cmocka_unit_test(early_unmap_is_found_in_torch),
        cmocka_unit_test(early_unmap_is_found_in_paged),
        cmocka_unit_test(early_steal_is_found_in_paged),
        cmocka_unit_test(random_programs_find_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
