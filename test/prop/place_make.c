/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device and the place that a header asks for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "place/paged/paged.h"
#include "place/torch/torch.h"
#include "prop/place_state.h"

static void
observe(void *self, const struct dryi_place_event *event)
{
    struct place_ops *ops = self;
    struct ops_told *told = &ops->told;
    enum dry_action action = event->action;
    told->allocs += action == DRY_ACTION_ALLOC;
    told->frees += action == DRY_ACTION_FREE_REQUESTED;
    told->completed += action == DRY_ACTION_FREE_COMPLETED;
    told->ooms += action == DRY_ACTION_OOM;
    if (action == DRY_ACTION_ALLOC)
        told->last_alloc = event->addr;
    if (action == DRY_ACTION_SEGMENT_ALLOC || action == DRY_ACTION_SEGMENT_MAP)
        told->mapped_bytes += event->size;
    if (action == DRY_ACTION_SEGMENT_FREE || action == DRY_ACTION_SEGMENT_UNMAP)
        told->mapped_bytes -= event->size;
}

static enum dry_status
make_torch(struct place_ops *ops, const uint8_t *header)
{
    static const char *const texts[] = {
        "",
        "expandable_segments:True",
        "max_split_size_mb:32",
        "garbage_collection_threshold:0.5",
        "roundup_power2_divisions:4",
        "expandable_segments:True,max_split_size_mb:32",
        "per_process_memory_fraction:0.7",
        "",
    };
    struct dryi_torch_options options = {
        .device = place_device_get(&ops->device),
        .memory = &ops->memory_of_place,
        .observer = {.event = observe, .self = ops},
        .progress_is_told = ops->progress_is_told,
    };
    dryi_torch_conf_init(&options.conf);
    const char *text = texts[header[7] % 8];
    struct dryi_torch *torch = NULL;
    enum dry_status status =
        dryi_torch_conf_parse(text, strlen(text), NULL, &options.conf, NULL);
    if (status == DRY_OK)
        status = dryi_torch_create(&options, &torch, NULL);
    if (status == DRY_OK)
        ops->place = dryi_torch_as_place(torch);
    return status;
}

static enum dry_status
make_paged(struct place_ops *ops, const uint8_t *header)
{
    static const double budgets[] = {1.0, 1.02, 1.05, 1.05, 1.05, 1.25, 2.0, 8.0};
    static const uint64_t small[] = {4 * DRYI_KIB, 64 * DRYI_KIB, DRYI_MIB};
    struct dryi_paged_options options = {
        .device = place_device_get(&ops->device),
        .memory = &ops->memory_of_place,
        .observer = {.event = observe, .self = ops},
        .progress_is_told = ops->progress_is_told,
        .streams_kept = header[6] >> 5, /* 0: more than there are here */
    };
    struct dryi_paged_conf *conf = &options.conf;
    dryi_paged_conf_init(conf);
    conf->remap = (header[3] & 7) != 7;
    conf->reuse_ordered = !(header[3] & 8);
    conf->reuse_passed = !(header[3] & 16);
    conf->reuse_waiting = !(header[3] & 32);
    conf->budget = budgets[header[4] & 7];
    if ((header[6] & 15) < 3)
        conf->small_max = small[header[6] & 15];
    if (header[6] & 16)
        conf->segment_bytes = ops->capacity / 4;
    return dryi_paged_create(&options, &ops->place, NULL);
}

static void
read_header(struct place_ops *ops, const uint8_t *header)
{
    static const uint64_t capacities[] = {16 * DRYI_MIB,  64 * DRYI_MIB, 256 * DRYI_MIB,
                                          DRYI_GIB,       4 * DRYI_GIB,  40 * DRYI_MIB,
                                          128 * DRYI_MIB, 2 * DRYI_GIB};
    static const uint32_t live[] = {4, 16, 64, 128, 256, 512, 1024, 2000};
    ops->progress_is_told = header[0] & 1;
    static const uint64_t pages[] = {
        2 * DRYI_MIB, 2 * DRYI_MIB,  2 * DRYI_MIB,  2 * DRYI_MIB,
        2 * DRYI_MIB, 64 * DRYI_KIB, 64 * DRYI_KIB, 0};
    ops->page_bytes = pages[header[0] >> 1 & 7];
    ops->stream_count = 1 + (header[0] >> 4) % PLACE_STREAMS;
    ops->capacity = ops->capacity_first = capacities[header[1] % 8];
    ops->live_max = live[header[1] >> 4 & 7];
    ops->mix = header[2];
    ops->features = header[5];
    ops->limit = UINT64_MAX;
}

void
ops_make(struct place_ops *ops, const uint8_t header[PLACE_OPS_HEADER])
{
    read_header(ops, header);
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = ops->capacity;
    so.page_bytes = ops->page_bytes;
    if (ops->page_bytes > 0)
        so.granularity_bytes = ops->page_bytes;
    so.check = true;
    if (dry_sim_create(&so, &ops->sim, NULL) != DRY_OK)
        abort();
    place_device_init(&ops->device, dry_sim_get_device(ops->sim));
    if (header[1] & 8)
        ops->device.addresses_left = 3 * ops->capacity;
    ops->device.says_done = ops->options.says_done;
    ops->device.never_waits = ops->options.never_waits;
    ops->memory_of_place = failing_memory_init(&ops->memory, SIZE_MAX);
    enum dry_status status = ops->options.kind == PLACE_TORCH ? make_torch(ops, header)
                                                              : make_paged(ops, header);
    if (status != DRY_OK)
        ops_differ(ops, "the place cannot be made: %s", dry_status_name(status));
}
