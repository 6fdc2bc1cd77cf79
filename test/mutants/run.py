#!/usr/bin/env python3
"""The tests of some parts can fail: each mutant of them is caught by a named test.

A mutant is a copy of a part (src/place/paged, src/pool/pool*, the lock, the pages, the
tensors, what pins and the pinned cache of src/host, most of src/plan, src/trace/pickle) with one
piece of text replaced, compiled into the named test without assertions, so that what catches it is
what the test knows from outside or the part's own check. Each piece must be there exactly once: a
mutant that no longer applies is a failure too. The tests pass on an unchanged copy first;
those of pin_cuda want the stand-in for a driver in DRY_TEST_CUDA and DRY_TEST_CUDA_OLD.

    run.py --root SOURCES --build FOLDER --libraries SUPPORT.a DRYSTONE.a [--changed] -- cc ...
    run.py --root SOURCES --texts

With --changed only mutants of what differs from the commit that scripts/base.sh names are run:
their file, their test, or their entry here. Where git cannot tell, all are. With --texts none
is run: each must apply.
"""
import argparse
import ast
import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import threading

# name: file, what is there, what is put there, program, test
MUTANTS = {
    "early_reuse": (
        "paged_bins.c",
        "b->size >= size && b->epoch <= epoch",
        "b->size >= size && b->epoch >= epoch",
        "prop_paged", "paged_keeps_the_contract"),
    "end_of_a_list_left": (
        "paged_bins.c",
        "    b->bin_prev = s->end;\n",
        "    b->bin_prev = head;\n",
        "prop_paged", "paged_keeps_the_contract"),
    "found_beyond_the_span": (
        "paged_index.h",
        "    if (offset >= f->range.size)\n        return NULL;\n",
        "    if (offset >= f->range.size)\n        offset %= f->range.size ? f->range.size : 1;\n",
        "test_paged_cache", "alone_a_request_at_a_cache_is_one_at_the_place"),
    "position_sought_ahead_alone": (
        "forecast.c",
        "h->position = is_ahead ? ahead : behind;",
        "h->position = ahead;",
        "test_forecast", "a_lost_position_is_found_nearby"),
    "position_before_the_first": (
        "forecast.c",
        "return (position > 0 ? position : h->step_count) - 1;",
        "return position > 0 ? position - 1 : 0;",
        "test_forecast", "a_lost_position_is_found_nearby"),
    "position_sought_without_wrap": (
        "forecast.c",
        "return position + 1 < h->step_count ? position + 1 : 0;",
        "return position;",
        "test_forecast", "a_lost_position_is_found_nearby"),
    "what_passes_lies_in_the_way": (
        "paged_adopt.c",
        "dryi_forecast_is_passing(p->forecast, b->bin_prev);",
        "!p->forecast;",
        "test_paged_layout", "gradients_of_the_last_step_are_in_nobodys_way"),
    "surplus_of_a_layout_is_kept": (
        "paged_adopt.c",
        "    uint64_t beyond = p->page_count > kept ? p->page_count - kept : 0;\n",
        "    uint64_t beyond = 0 * kept;\n",
        "test_paged_layout", "gradients_of_the_last_step_are_in_nobodys_way"),
    "moves_are_no_rent": (
        "paged_page.c",
        "        p->rent += page->was_mapped && !p->is_full;\n",
        "",
        "test_paged_layout", "pages_that_move_again_and_again_are_bought"),
    "rent_is_never_free": (
        "paged_stats.h",
        "p->rent > peak ? p->rent - peak : 0",
        "p->rent",
        "test_paged_layout", "pages_that_move_again_and_again_are_bought"),
    "an_oom_keeps_its_pages": (
        "paged_alloc.c",
        "    while (p->stock_count > 0 && p->capture_count == 0)\n        dryi_paged_page_release(p);\n",
        "",
        "test_paged_oom", "an_oom_leaves_the_device_as_it_was"),
    "a_limit_takes_what_is_left_for_others": (
        "paged.c",
        "p->limit_bytes = limit < most ? limit : most;",
        "p->limit_bytes = limit;",
        "test_paged_oom", "bytes_are_left_for_others"),
    "idle_pools_keep_their_pages": (
        "paged_reclaim.c",
        "if (is_emptied && empty_pool(p, pool, &reclaim) != DRY_OK)",
        "if (is_emptied && p->page_bytes == 0 && empty_pool(p, pool, &reclaim) != DRY_OK)",
        "test_paged", "pools_that_nobody_uses_do_not_pile_up"),
    "idle_pools_looked_at_from_the_first": (
        "paged_pool.c",
        "    idle_remove(p, pool);\n    idle_push(p, pool);\n",
        "    (void)pool;\n",
        "test_paged", "a_request_gets_the_pages_of_many_pools_that_nobody_uses"),
    "idle_pools_wait_for_the_next": (
        "paged.c",
        "    if (status == DRY_OK)\n        dryi_paged_forget_idle_pools(self);\n",
        "",
        "test_paged", "pools_of_captures_do_not_pile_up"),
    "a_pool_used_again_is_idle": (
        "paged_pool.c",
        "    if (o->users++ == 0)\n",
        "    if (o->users++ == UINT64_MAX)\n",
        "test_paged", "private_pools_do_not_mix"),
    "a_pool_that_is_gone_is_found": (
        "paged_pool.c",
        "    dryi_treap_remove(p->pool_nodes, &p->pools_by_id, pool);\n",
        "",
        "prop_paged", "paged_keeps_the_contract"),
    "arena_made_again": (
        "paged_pool.c",
        "    if (index == p->arena_count) {",
        "    if (index <= p->arena_count) {",
        "test_paged_recycle", "pools_that_cannot_be_opened_leave_nothing"),
    "events_for_each_idle_pool": (
        "paged_reclaim.c",
        "        status = reclaim_from_arena(p, arena, reclaim);\n    }\n    return status;\n}\n\nstatic void\nreturn_empty",
        "        struct reclaim own = *reclaim;\n        status = reclaim_from_arena(p, arena, &own);\n    }\n    return status;\n}\n\nstatic void\nreturn_empty",
        "test_paged_recycle", "one_that_is_opened_records_few_events"),
    "front_of_the_place_left": (
        "pool_cache.c",
        "    if (!made) {\n        pool->place.caches->give_back(cache);\n",
        "    if (!made) {\n",
        "test_paged_recycle", "streams_without_a_cache_leave_nothing"),
    "flags_of_before": (
        "paged_pool.c",
        "        o->flags = flags; /* it has nothing: as if it were not there */\n",
        "        o->flags |= 0;\n",
        "test_paged_recycle", "one_that_has_nothing_is_opened_anew"),
    "refused_event_is_out_of_memory": (
        "paged_event.c",
        "        dryi_paged_use_drop(p, use);\n    return dryi_note_hindered(&p->hindered, status);\n",
        "        dryi_paged_use_drop(p, use);\n    return status;\n",
        "test_pool_refusals", "event_that_is_refused_is_no_out_of_memory"),
    "refused_wait_is_out_of_memory": (
        "paged_event.c",
        "        if (dryi_note_hindered(&p->hindered, status) != DRY_OK)\n            return status;\n",
        "        if (status != DRY_OK)\n            return status;\n",
        "test_pool_refusals", "wait_that_is_refused_is_no_out_of_memory"),
    "held_back_and_not_asked_again": (
        "paged_ladder.c",
        "    dryi_paged_release_held(p);\n",
        "",
        "test_pool_refusals", "free_held_back_is_asked_for_again"),
    "lent_without_host_memory_is_out_of_memory": (
        "paged_ladder.c",
        "            (void)dryi_note_hindered(&p->hindered, DRY_ERR_MEMORY);\n",
        "",
        "test_pool_refusals", "host_memory_that_ends_is_no_out_of_memory"),
    "event_of_another_stream": (
        "pool_device.c",
        "        if (is_living(pool, stream, number))\n            return status;\n        if (status == DRY_OK)\n",
        "        return status;\n        if (status == DRY_OK)\n",
        "test_pool", "handle_given_away_meanwhile_is_noticed"),
    "what_nobody_can_tell_ends_the_request": (
        "paged_take.c",
        "        if (status == DRY_ERR_UNSUPPORTED)\n            continue; /* nobody can tell of that one */\n",
        "",
        "test_pool", "capture_is_no_time_to_wait_for_what_is_gone"),
    "addresses_of_what_is_free_stay": (
        "paged_ladder.c",
        "oom || rung != RUNG_LAST)\n            return status;\n        oom = true;",
        "oom || rung <= RUNG_LAST)\n            return status;\n        oom = true;",
        "test_paged_oom", "what_is_free_gives_its_addresses"),
    "returned_span_stays_linked": (
        "paged_page.c",
        "        p->segments[s->next].prev = s->prev;\n",
        "        p->segments[s->next].prev = segment;\n",
        "prop_paged", "paged_keeps_the_contract"),
    "small_spans_are_not_asked_for": (
        "paged_page.c",
        "while (status == DRY_ERR_NO_SPACE && bytes > least_bytes) {",
        "while (status == DRY_ERR_NO_SPACE && bytes > 2 * bytes) {",
        "test_paged_oom", "small_request_needs_few_addresses"),
    "least_spans_at_once": (
        "paged_page.c",
        "        bytes = page_ceil(p, bytes / 2);\n        if (bytes < least_bytes)\n            bytes = least_bytes;\n",
        "        bytes = least_bytes;\n",
        "test_paged_oom", "small_request_needs_few_addresses"),
    "small_requests_map_nothing_among_large": (
        "paged_ladder.c",
        "        status = take_new(p, &large, RUNG_LAST, block);",
        "        status = DRY_ERR_NO_SPACE;",
        "test_paged_oom", "small_request_lies_among_large_ones"),
    "long_runs_in_parts": (
        "paged_spot.c",
        "    search->part_max = measure_longest(search);\n",
        "    search->part_max = measure_longest(search);\n    if (search->part_max > RUN_MAX)\n        search->part_max = RUN_MAX;\n",
        "test_paged_spot", "long_runs_are_looked_at_whole"),
    "lent_blocks_are_looked_at_in_part": (
        "paged_ladder.c",
        "        uint32_t block = take_any(p, &lent);",
        "        uint32_t block = dryi_paged_take_some(p, &lent);",
        "test_paged_oom", "lent_blocks_are_all_looked_at"),
    "lent_blocks_of_others_are_missed": (
        "paged_ladder.c",
        "    for (uint32_t at = a->lists; at != NONE && !any; at = p->lists[at]->next)\n",
        "    for (uint32_t at = NONE; at != NONE && !any; at = p->lists[at]->next)\n",
        "test_paged_oom", "what_is_lent_may_be_of_another_stream"),
    "blocks_side_by_side_are_two": (
        "paged_ladder.c",
        "        status = dryi_paged_spot_take(p, r, &spot, &block);\n    }",
        "    }",
        "test_paged_oom", "blocks_side_by_side_are_one"),
    "captured_streams_take_in_what_is_over": (
        "paged_block.c",
        "           !waits_for_capture(p, b);",
        "           (true || !waits_for_capture(p, b));",
        "test_paged_oom", "captured_streams_take_nothing_in"),
    "captured_requests_lie_in_one_block": (
        "paged_ladder.c",
        "        block = take_joined(p, r, SEARCH_JOINED);\n",
        "        block = NONE;\n",
        "test_paged", "captured_requests_are_put_together"),
    "captures_end_before_they_are_dropped": (
        "pool_private.c",
        "        drop_scope(pool, true, (struct dryi_pool_id){0, 0});\n    status =\n        has_begun ? pool->place.ops->end_capture(pool->place.self) : DRY_ERR_ARGUMENT;\n",
        "        status = pool->place.ops->end_capture(pool->place.self);\n    if (has_begun)\n        drop_scope(pool, true, (struct dryi_pool_id){0, 0});\n    else\n        status = DRY_ERR_ARGUMENT;\n",
        "test_paged_recycle", "those_of_captures_go_with_their_streams"),
    "captured_streams_alone_take_nothing_in": (
        "paged_block.c",
        "p->capture_count > 0 && (s->prev != NONE || s->next != NONE) &&",
        "p->capture_count > 0 &&",
        "test_paged", "a_captured_stream_alone_takes_all_in"),
    "captures_hold_all_frees": (
        "paged_free.c",
        "    bool is_held = is_of_capture(p, s, b->uses);",
        "    bool is_held = p->capture_count > 0 || is_of_capture(p, s, b->uses);",
        "test_paged_oom", "frees_go_on_beside_a_capture"),
    "captures_hold_frees_of_their_blocks_alone": (
        "paged_free.c",
        "    return use != NONE;\n}\n\n/*\n * Other streams may still",
        "    return use == NONE && false;\n}\n\n/*\n * Other streams may still",
        "test_paged_oom", "frees_go_on_beside_a_capture"),
    "ends_of_spans_are_no_bounds": (
        "paged_spot.c",
        "if (is_amid || (is_all && !part->is_hole))",
        "if (is_amid)",
        "test_paged_oom", "spots_at_the_end_of_a_segment_are_found"),
    "whole_pages_are_no_bounds": (
        "paged_spot.c",
        "    if (is_all && part->lo < part->hi && !part->is_hole) {",
        "    if (is_all && part->lo > part->hi && !part->is_hole) {",
        "test_paged_oom", "spots_between_whole_pages_are_found"),
    "what_never_will_be_over_moves": (
        "paged_spot.c",
        "    return search->kind < SEARCH_ALL &&\n",
        "    return search->kind <= SEARCH_LAST &&\n",
        "test_paged_oom", "what_never_will_be_over_costs_nothing"),
    "lent_blocks_give_their_pages_first": (
        "paged_ladder.c",
        "    enum dry_status status = take_new(p, r, RUNG_ALL, block);\n",
        "    enum dry_status status = take_new(p, r, RUNG_LAST, block);\n",
        "test_paged_oom", "what_is_lent_is_not_broken_before"),
    "capture_is_a_failure": (
        "pool_device.c",
        "        return DRY_ERR_UNSUPPORTED;\n    begin(pool);\n",
        "        return DRY_ERR_SYSTEM;\n    begin(pool);\n",
        "test_pool", "capture_is_no_time_to_wait_for_what_is_gone"),
    "empty_shelves_stay": (
        "paged_list.c",
        "    if (arena / 2 > 0)\n        drop_some(p, stream);\n",
        "    if (arena / 2 > 0 && p->list_count == 0)\n        drop_some(p, stream);\n",
        "test_paged_recycle", "streams_beside_pools_leave_nothing"),
    "gone_shelf_on_the_list_of_fronts": (
        "paged_list.c",
        "    dryi_paged_cache_unnote(p, s);\n",
        "",
        "test_paged_recycle", "streams_go_from_the_caches_of_pools"),
    "gone_shelf_is_asked_last": (
        "paged_list.c",
        "        a->last_list = a->last_stream = NONE;\n",
        "        a->last_list = list;\n",
        "prop_paged", "paged_keeps_the_contract"),
    "gone_shelf_is_found": (
        "paged_list.c",
        "    dryi_map_take(&p->list_ids, list_key(s->arena, s->stream));\n",
        "",
        "prop_paged", "paged_keeps_the_contract"),
    "gone_shelf_stays_linked": (
        "paged_list.c",
        "        p->lists[s->next_of_stream]->prev_of_stream = s->prev_of_stream;\n",
        "        p->lists[s->next_of_stream]->prev_of_stream = NONE;\n",
        "prop_paged", "paged_keeps_the_contract"),
    "shelf_with_blocks_goes": (
        "paged_list.c",
        "            s->block_count == 0)\n            drop_list",
        "            s->octaves == 0)\n            drop_list",
        "prop_paged", "paged_keeps_the_contract"),
    "addresses_do_not_come_back": (
        "paged_ladder.c",
        "dryi_paged_return_addresses(p, oom))",
        "p->segment_slots == 0)",
        "test_paged_oom", "private_pools_share_few_addresses"),
    "private_pools_as_large_as_the_device": (
        "paged_page.c",
        "if (arena / 2 == 0 || bytes > most)",
        "if (bytes <= most)",
        "test_pool", "private_pool_begins_small"),
    "small_requests_from_small_holes_alone": (
        "paged_alloc.c",
        "if (status == DRY_ERR_NO_SPACE && arena_is_small(r->arena))",
        "if (status == DRY_ERR_NO_SPACE && arena_is_small(r->arena) && !r->size)",
        "test_pool", "small_request_takes_what_is_left_of_large_ones"),
    "fraction_for_ever": (
        "paged.c",
        "    uint64_t limit = bytes < mapped_bytes ? bytes : mapped_bytes;\n",
        "    uint64_t limit = bytes < mapped_bytes ? bytes : mapped_bytes;\n"
        "    if (p->limit_bytes > 0 && p->conf.per_process_memory_fraction < 1)\n"
        "        return;\n",
        "test_pool", "fraction_of_the_options_is_lifted"),
    "span_made_in_vain": (
        "paged_spot.c",
        "        if (p->blocks[at].size < size)\n            continue;\n        try_run",
        "        if (p->blocks[at].size < UINT64_MAX)\n            continue;\n        try_run",
        "test_paged", "segment_made_for_a_request_serves_it"),
    "hidden_in_its_bin": (
        "paged_ladder.c",
        "    uint32_t block = take_any(p, r);\n",
        "    uint32_t block = dryi_paged_take_some(p, r);\n",
        "test_paged", "nothing_hides_behind_its_bin"),
    "graph_orders_what_was_before": (
        "paged_stream.c",
        "    if (dryi_paged_is_captured(p, to) || dryi_paged_is_captured(p, from))\n"
        "        return DRY_OK;\n",
        "",
        "test_paged", "waits_inside_a_capture_are_no_order"),
    "knowledge_of_another": (
        "paged_stream.c",
        "    dryi_paged_orders_forget(p, stream);\n",
        "",
        "test_paged_recycle", "what_a_stream_knew_goes_with_it"),
    "record_of_a_busy_stream": (
        "paged_stream.c",
        "s->uses > 0 || s->freed > s->completed",
        "s->uses > 0",
        "prop_paged", "paged_keeps_the_contract"),
    "record_with_uses": (
        "paged_stream.c",
        "s->uses > 0 || s->freed > s->completed",
        "s->freed > s->completed",
        "prop_paged", "paged_keeps_the_contract"),
    "record_with_blocks": (
        "paged_stream.c",
        "    return s->block_count == 0;\n}",
        "    return s->octaves == 0;\n}",
        "prop_paged", "paged_keeps_the_contract"),
    "record_for_ever": (
        "paged_stream.c",
        "if (p->stream_count < p->streams_kept ||",
        "if (p->stream_count > 0 ||",
        "test_paged_recycle", "streams_that_come_and_go_leave_nothing"),
    "record_without_an_event": (
        "paged_stream.c",
        "        mark_left(p);\n",
        "        (void)mark_left;\n",
        "test_paged_recycle", "streams_that_come_and_go_leave_nothing"),
    "record_of_a_front": (
        "paged_stream.c",
        "!was_asked && !s->has_cache &&",
        "!was_asked &&",
        "test_paged_recycle", "streams_that_come_and_go_leave_nothing"),
    "front_with_a_block": (
        "pool_cache.c",
        "return cache->table.count == 0 ? cache : NULL;",
        "return cache;",
        "test_paged_recycle", "caches_go_from_stream_to_stream"),
    "front_for_ever": (
        "pool_cache.c",
        "        made = find_idle(pool);\n",
        "        (void)find_idle;\n",
        "test_paged_recycle", "caches_go_from_stream_to_stream"),
    "handle_for_ever": (
        "pool_stream.c",
        "            forget_streams(pool);\n",
        "            (void)forget_streams;\n",
        "test_paged_recycle", "streams_that_come_and_go_leave_nothing"),
    "given_whatever_options_say": (
        "paged_stream.c",
        "if (s->block_count == 0 || !p->conf.reuse_passed)",
        "if (s->block_count == 0)",
        "test_paged_recycle", "what_is_over_stays_where_options_say_so"),
    "owner_for_ever": (
        "torch_pool.c",
        "    if (o->segments == 0)\n        free_record(t, owner);\n",
        "",
        "test_paged_recycle", "pools_that_come_and_go_leave_nothing"),
    "pool_ends_in_its_scope": (
        "torch_release.c",
        "if (t->owners[owner].reserved_bytes == 0 && !dryi_torch_is_in_scope(t, owner))",
        "if (t->owners[owner].reserved_bytes == 0)",
        "test_torch_place", "a_pool_without_users_lasts_while_its_scope_is_open"),
    "all_frees_for_one_request": (
        "paged_alloc.c",
        "dryi_paged_process(p, PROCESS_HIT, PROCESS_HIT_USES);",
        "dryi_paged_process(p, PROCESS_HIT, PROCESS_HIT_USES << 8);",
        "test_paged", "many_frees_that_are_over_cost_a_request_little"),
    "unmapped_though_not_waited": (
        "torch_segment.c",
        "        return; /* work may still go on there: it stays mapped */\n",
        "        t->rejected = t->rejected;\n",
        "test_pool", "nothing_is_unmapped_where_the_device_does_not_wait"),
    "over_though_not_waited": (
        "paged_event.c",
        "        if (dryi_note_hindered(&p->hindered, status) != DRY_OK)\n            return status;\n        finish_first_use",
        "        (void)status;\n        finish_first_use",
        "test_pool", "nothing_is_unmapped_where_the_device_does_not_wait"),
    "queue_ends_though_not_waited": (
        "torch_stream.c",
        "NONE && wait_for_use(t, stream->queue_first))",
        "NONE && (wait_for_use(t, stream->queue_first) || t->device.self))",
        "test_pool", "nothing_is_unmapped_where_the_device_does_not_wait"),
    "early_unmap": (
        "paged_reclaim.c",
        "    if (dryi_paged_is_complete(p, b))\n        return true;\n",
        "    if (b->size > 0)\n        return true;\n",
        "prop_paged", "paged_keeps_the_contract"),
    "lost_coalesce": (
        "paged_block.c",
        "while (may_merge(p, b, b->next))",
        "while (false && may_merge(p, b, b->next))",
        "prop_paged", "paged_keeps_the_contract"),
    "lost_page_count": (
        "paged_page.c",
        "stat_sub(p, STAT_RESERVED_BYTES, false, p->page_bytes);",
        "",
        "prop_paged", "paged_keeps_the_contract"),
    "wrong_bin_bit": (
        "paged_bins.c",
        "(uint32_t)(head == end) << (bin % 32)",
        "(uint32_t)(head == end) << ((bin + 1) % 32)",
        "prop_paged", "paged_keeps_the_contract"),
    "forgotten_use": (
        "paged_free.c",
        "if (b->uses != NONE)\n        return free_recorded(",
        "if (b->size == 0)\n        return free_recorded(",
        "prop_paged", "paged_keeps_the_contract"),
    "unasked_event": (
        "paged_event.c",
        "while (most-- > 0 && s->first_use != NONE &&\n",
        "while (s->first_use != NONE || s->first_use != NONE &&\n",
        "prop_paged", "paged_keeps_the_contract"),
    "order_overrated": (
        "paged_stream.c",
        "dryi_paged_learn(p, to, from, p->streams[from].epoch)",
        "dryi_paged_learn(p, to, from, p->streams[from].epoch + 1)",
        "prop_paged", "paged_keeps_the_contract"),
    "limit_ignored": (
        "paged_page.c",
        "return reserved <= p->limit_bytes && bytes <= p->limit_bytes - reserved;",
        "return reserved < UINT64_MAX - bytes;",
        "prop_paged", "paged_keeps_the_contract"),
    "lost_page": (
        "paged_page.c",
        "p->stock[p->stock_count++] = segment->pages[i] - 1;",
        "if (i > first) p->stock[p->stock_count++] = segment->pages[i] - 1;",
        "prop_paged", "paged_keeps_the_contract"),
    "front_without_flush": (
        "paged_cache.c",
        "any |= s->stacked > 0;\n        dryi_paged_flush_list(p, s);\n",
        "any |= s->stacked > 0;\n",
        "prop_paged", "paged_keeps_the_contract"),
    "cut_while_blocks_wait": (
        "paged_cache_shared.c",
        "p->is_shared && p->waiting_uses == 0 &&",
        "p->is_shared &&",
        "test_paged_cache", "caches_beside_the_place_are_what_a_list_says"),
    "merge_of_a_used_block": (
        "paged_cache_shared.c",
        "b->uses != NONE || b->has_ticket",
        "b->has_ticket",
        "test_paged_cache", "caches_beside_the_place_are_what_a_list_says"),
    "wanted_or_not": (
        "paged_cache_shared.c",
        "return (s->is_small || dryi_paged_cache_wants(s, bytes)) &&",
        "return",
        "test_paged_cache", "large_blocks_stay_only_if_wanted"),
    "every_link_is_ours": (
        "paged_block.c",
        "return its == list || its == p->arenas",
        "return true || its == p->arenas",
        "test_paged_cache", "neighbours_need_the_place_once"),
    "merge_of_three": (
        "paged_block.c",
        "return !is_free(p, b->prev) ||",
        "return true ||",
        "test_paged_cache", "what_is_behind_the_next_one_counts"),
    "merge_of_other_streams": (
        "paged_block.c",
        "(p->is_beside || !p->conf.reuse_passed)",
        "!p->conf.reuse_passed",
        "test_paged_cache", "neighbours_are_left_alone"),
    "run_that_ends_at_a_fence": (
        "paged_spot.c",
        "BLOCK_DIVIDER ? p->blocks[prev].prev",
        "BLOCK_DIVIDER ? prev",
        "test_paged_cache", "neighbours_need_the_place_once"),
    "fences_kept_when_alone": (
        "paged_cache_shared.c",
        "    if (!is_shared)\n        drop_dividers(p);\n",
        "",
        "test_paged_cache", "what_is_behind_the_next_one_counts"),
    "fence_that_stays": (
        "paged_block.c",
        "    dryi_paged_divider_drop(p, p->blocks[block].prev);\n",
        "",
        "test_paged_cache", "caches_beside_the_place_are_what_a_list_says"),
    "over_behind_a_fence": (
        "paged_cache_shared.c",
        "        merge_across(p, at);\n",
        "",
        "test_paged_cache", "what_is_over_is_merged_before_pages_are_asked_for"),
    "merged_though_not_over": (
        "paged_cache_shared.c",
        "(!is_next_complete && !dryi_paged_is_complete(p, &p->blocks[prev]))",
        "false",
        "test_paged_cache", "what_is_over_is_merged_before_pages_are_asked_for"),
    "fence_absorbed": (
        "paged_block.c",
        "    dryi_paged_block_assign(p, other, b->list);\n",
        "",
        "test_paged_cache", "caches_beside_the_place_are_what_a_list_says"),
    "records_kept_when_alone": (
        "paged_cache_shared.c",
        "p->is_shared ? RECORDS_REFILL : 0",
        "RECORDS_REFILL",
        "test_paged_cache", "alone_a_request_at_a_cache_is_one_at_the_place"),
    "handed_out_and_kept": (
        "paged_alloc.c",
        "    dryi_paged_cache_forget(p, b);\n",
        "    b->address = ADDRESS_UNKNOWN;\n",
        "test_paged_cache", "caches_beside_the_place_are_what_a_list_says"),
    "uncounted_cut": (
        "paged_cache_shared.c",
        "    count_taken(cache, is_small, b->size, size);\n    *block = found;",
        "    *block = found;",
        "test_paged_cache", "caches_beside_the_place_are_what_a_list_says"),
    "untold_request": (
        "paged_alloc.c",
        "slot >= s->stack_count || p->observer.event ||",
        "slot >= s->stack_count ||",
        "test_paged_cache", "alone_every_request_is_told"),
    "stream_gone_for_good": (
        "pool_device.c",
        "    return end(pool, device->ops->wait_all(device->self));\n",
        "    if (pool->total_bytes & 1)\n"
        "        return DRY_OK;\n"
        "    pool->total_bytes |= 1;\n"
        "    return end(pool, device->ops->wait_all(device->self));\n",
        "test_pool_at_hand", "a_stream_found_gone_may_come_back"),
    "whole_device_amid_a_capture": (
        "pool_device.c",
        " || dryi_pool_is_capturing(pool))",
        ")",
        "test_pool", "capture_is_no_time_to_wait_for_what_is_gone"),
    "at_hand_in_a_pool": (
        "pool_lock.c",
        "    f->last = NULL;\n    while (f->open_count > 0)",
        "    while (f->open_count > 0)",
        "test_pool_at_hand", "a_private_pool_begins_for_it_too"),
    "at_hand_without_context": (
        "pool.c",
        "    pool->asking = context;\n    struct dryi_cache_block got;",
        "    (void)context;\n    struct dryi_cache_block got;",
        "test_pool_at_hand", "history_knows_who_asked"),
    "at_hand_unseen": (
        "pool.c",
        "        if (status != DRY_OK)\n            (void)dryi_pool_saw_oom(pool);\n    } else {",
        "    } else {",
        "test_pool_at_hand", "an_out_of_memory_is_seen"),
    "unseen_out_of_memory": (
        "pool.c",
        "    if (status != DRY_OK && pool->callback_count == 0)\n"
        "        (void)dryi_pool_saw_oom(pool);",
        "",
        "test_pool_at_hand", "an_out_of_memory_is_seen"),
    "room_asked_for_in_vain": (
        "paged_alloc.c",
        "    if (slot >= s->stack_count ||",
        "    if (!has_room || slot >= s->stack_count ||",
        "test_pool_at_hand", "what_lies_on_its_cache_needs_no_memory"),
    "peak_without_what_waits": (
        "paged_alloc.c",
        "p->waiting_uses > 0 ||\n        p->first_held",
        "p->first_held",
        "test_pool_at_hand", "peaks_count_what_waits"),
    "kept_by_nobody": (
        "pool.c",
        "return cache->at_place && request->alignment",
        "return request->alignment",
        "test_pool_at_hand", "streams_without_a_cache_are_served"),
    "uncounted_request": (
        "paged_alloc.c",
        "    stat_taken(p->stats, true, round_to_grains(size), size);\n",
        "",
        "test_paged_cache", "alone_a_request_at_a_cache_is_one_at_the_place"),
    "take_without_balance": (
        "paged_cache_shared.c",
        "is_beyond_local(cache, bytes) || dryi_paged_cache_top(",
        "dryi_paged_cache_top(",
        "test_paged_cache", "peaks_of_caches_hardly_add_up"),
    "cut_without_balance": (
        "paged_cache_shared.c",
        " &&\n           !is_beyond_local(cache, r->bytes);",
        ";",
        "test_paged_cache", "caches_beside_the_place_are_what_a_list_says"),
    "cut_beside_the_front": (
        "paged_cache_shared.c",
        "dryi_paged_cache_take_top(p, p->lists[r.list], r.bytes)",
        "NONE",
        "test_paged_cache", "unknown_blocks_come_from_the_cache"),
    "other_run_left_out": (
        "paged_spot.c",
        "bool is_new = *tried != first;",
        "bool is_new = *tried == NIL;",
        "test_paged_spot", "nothing_that_is_left_out_is_better"),
    "one_cursor_for_two": (
        "paged_spot.c",
        "try_before(search, run, before, part->end);",
        "try_before(search, run, behind, part->end);",
        "test_paged_spot", "nothing_that_is_left_out_is_better"),
    "spot_left_out": (
        "paged_spot.c",
        "    return a->addr < b->addr;\n",
        "    return a->addr > b->addr;\n",
        "test_paged_spot", "nothing_that_is_left_out_is_better"),
    "too_small_block": (
        "paged_bins.h",
        "if (p->blocks[at].size >= size)",
        "if (p->blocks[at].size + GRAIN >= size)",
        "prop_paged", "paged_keeps_the_contract"),
    "unchecked_hint": (
        "paged_alloc.c",
        "(!is_hole && b->state != BLOCK_FREE)",
        "(!is_hole && b->state == BLOCK_PENDING)",
        "test_paged_layout", "a_request_more_is_packed_around"),
    "follow_overrated": (
        "paged_take.c",
        "dryi_paged_learn(p, stream, on, p->uses[use].epoch)",
        "dryi_paged_learn(p, stream, on, p->uses[use].epoch + 1)",
        "test_paged_layout", "streams_of_a_loop_share_a_plan"),
    "unordered_hint": (
        "paged_alloc.c",
        "!dryi_paged_is_usable(p, r->list, b) && !note_wait(p, b, range)",
        "false && !note_wait(p, b, range)",
        "test_paged_layout", "streams_of_a_loop_share_a_plan"),
    "waiting_for_private_pools": (
        "paged_ladder.c",
        "r->arena == 0 && dryi_paged_unpark_all(p)",
        "dryi_paged_unpark_all(p)",
        "test_paged_layout", "what_waits_is_the_default_pools"),
    "waiting_in_a_capture": (
        "paged_alloc.c",
        "dryi_paged_unpark_all(p);\n        return NONE;",
        "return NONE;",
        "test_paged_layout", "what_waits_is_the_default_pools"),
    "waiting_without_bounds": (
        "paged_park.h",
        "layout->parked_count < PARKED_MAX",
        "true",
        "test_paged_layout", "only_so_many_wait"),
    "letters_seen_that_are_gone": (
        "forecast_period.c",
        "if (needed < h->oldest && h->rolled < h->oldest) {",
        "if (needed < h->oldest && h->oldest == h->now) {",
        "test_forecast", "the_period_is_the_outer_loop"),
    "letters_never_seen": (
        "forecast_period.c",
        "    uint64_t distance = see(h, key);\n",
        "    h->seen_to = h->now - 1;\n    uint64_t distance = see(h, key);\n",
        "test_forecast", "the_period_is_the_outer_loop"),
    "heir_of_another_size": (
        "forecast_next.c",
        "s->ranges[at - 1].lo == lo && s->ranges[at - 1].hi != hi)",
        "false)",
        "test_forecast", "lives_of_streams_share_what_they_may"),
    "heir_of_another_stream": (
        "forecast_next.c",
        "s->range_of[last] == at && lives[last].stream == lives[life].stream",
        "s->range_of[last] == at",
        "test_forecast", "a_successor_has_the_place_next_and_whole"),
    "heir_of_an_earlier_one": (
        "forecast_next.c",
        "last_use->last = age < *least ? k : last_use->last;",
        "last_use->last = k;",
        "test_forecast", "a_successor_has_the_place_next_and_whole"),
    "moved_onto_another_life": (
        "forecast_next.c",
        "!last_use.is_free || !inherits(s, life, at, last_use.last)",
        "!inherits(s, life, at, last_use.last)",
        "test_forecast", "a_loop_is_learnt"),
    "moved_never": (
        "forecast_next.c",
        "        move_to_inherit(&ranges);\n",
        "        (void)move_to_inherit;\n",
        "test_forecast", "a_successor_has_the_place_next_and_whole"),
    "moved_never_of_streams": (
        "forecast_next.c",
        "        move_to_inherit(&ranges);\n",
        "        if (job->stream_count == 1)\n            move_to_inherit(&ranges);\n",
        "test_forecast", "a_successor_has_the_place_next_and_whole"),
    "moved_onto_another_stream": (
        "forecast_next.c",
        "!dryi_packing_is_conflict(s->job, life, k)",
        "(s->job->lives[life].begin >= s->job->lives[k].end ||\n"
        "                          s->job->lives[k].begin >= s->job->lives[life].end)",
        "test_forecast", "lives_of_streams_share_what_they_may"),
    "changed_a_little_for_ever": (
        "forecast.c",
        "bool is_changed = h->skipped > 0 &&",
        "bool is_changed = false &&",
        "test_forecast", "a_small_change_whose_hints_are_refused_is_learnt_anew"),
    "changed_by_noise": (
        "forecast.c",
        "!was_refused || ",
        "",
        "test_forecast", "a_small_change_whose_hints_are_refused_is_learnt_anew"),
    "interrupted_for_good": (
        "forecast.c",
        "(h->followed < DRYI_FORECAST_PERIOD_MAX && !h->is_cleared)",
        "true",
        "test_forecast", "an_interruption_costs_no_layout"),
    "interrupted_after_a_break_for_good": (
        "forecast.c",
        " && !h->is_cleared)",
        ")",
        "test_forecast", "an_interruption_costs_no_layout"),
    "paused_until_all_is_seen": (
        "forecast.c",
        "        give_hint(h, hint);\n        h->position = step_behind",
        "        h->position = step_behind",
        "test_forecast", "an_interruption_costs_no_layout"),
    "paused_for_ever": (
        "forecast.c",
        "!h->is_calm && h->now - h->interrupted > PAUSE_MAX",
        "false",
        "test_forecast", "a_program_that_changed_for_good_is_learnt_anew"),
    "changed_for_good_and_paused_for_ever": (
        "forecast.c",
        "    h->is_calm = false;\n",
        "",
        "test_forecast", "a_program_that_changed_for_good_is_learnt_anew"),
    "left_where_a_stray_request_came": (
        "forecast.c",
        "h->skipped == 0 || h->again == CONTEXT ?",
        "h->skipped == 0 ?",
        "test_forecast", "the_period_goes_on_where_it_was_left"),
    "out_of_step_for_ever": (
        "forecast.c",
        "for (uint32_t count = CONTEXT; count > 0; count--) {",
        "for (uint32_t count = 1; count > 0; count--) {",
        "test_forecast", "a_pause_ends_though_the_seam_is_of_equal_requests"),
    "waiting_for_an_older_plan": (
        "paged_park.h",
        " && !p->is_full &&\n           dryi_paged_is_successors_place(p, s, b);",
        " && !p->is_full;",
        "test_paged_layout", "what_an_older_plan_placed_has_no_successor"),
    "waiting_while_one_needs_it": (
        "paged_ladder.c",
        "r->arena == 0 && dryi_paged_unpark_all(p)",
        "false",
        "test_paged_layout", "what_waits_is_there_for_a_step_without_a_place"),
    "waiting_when_all_is_flushed": (
        "paged_cache.c",
        "bool any = dryi_paged_unpark_all(p);",
        "bool any = false;",
        "test_paged_layout", "the_segment_of_a_plan_may_go"),
    "waiting_known_for_ever": (
        "paged_park.c",
        "    p->blocks[block].address = ADDRESS_UNKNOWN;\n",
        "",
        "test_pool_packing", "what_waits_for_its_successor_is_nobodys"),
    "waiting_known_to_another": (
        "paged_alloc.c",
        "if (!r->is_at_cache)",
        "if (!r->is_at_cache && b->state != BLOCK_PARKED)",
        "test_pool_packing", "what_waits_for_its_successor_is_nobodys"),
    "who_asked_is_forgotten": (
        "pool.c",
        "if (!got.was_registered || size > pool->place.cache_max)",
        "if (!got.was_registered)",
        "test_pool_packing", "threads_in_turn_keep_their_plan"),
    "waiting_in_use": (
        "paged_index.c",
        "b->state == BLOCK_USED && b->address",
        "b->address",
        "test_pool_packing", "what_waits_for_its_successor_is_nobodys"),
    "found_inside": (
        "paged_index.c",
        "b->addr == address && b->state",
        "address - b->addr < b->size && b->state",
        "test_pool_find", "addresses_are_those_handed_out"),
    "found_unsaid": (
        "paged_index.c",
        "b->state == BLOCK_USED && b->address == ADDRESS_BY_INDEX;",
        "b->state == BLOCK_USED;",
        "test_pool_find", "addresses_are_those_handed_out"),
    "found_once": (
        "paged_index.h",
        "    if (begun)\n        *begun = block;",
        "    if (begun && *begun == NIL)\n        *begun = block;",
        "test_pool_find", "addresses_are_those_handed_out"),
    "found_where_nothing_was": (
        "paged_index.c",
        "        if (!f->leaves[i])\n",
        "",
        "test_pool_find", "addresses_are_those_handed_out"),
    "waiting_beside_the_unexpected": (
        "paged_alloc.c",
        "hint.step == DRYI_STEP_NONE && p->layout.parked_count > 0",
        "false",
        "test_paged_layout", "a_successor_that_does_not_come_costs_no_hint"),
    "waiting_in_the_way": (
        "paged_alloc.c",
        "if (range->parked == NONE)",
        "if (true)",
        "test_paged_layout", "what_waits_in_vain_makes_way"),
    "handed_out_unfilled": (
        "pages_try.c",
        "    if (!fill_region(t, deadline_ns, false))\n        return false;\n",
        "    if (t->bytes == 0 && !fill_region(t, deadline_ns, false))\n        return false;\n",
        "test_pages", "pool_pages_come_from_the_node"),
    "unmapped_unrounded": (
        "pages_try.c",
        "    t->outer_bytes = t->bytes;\n    t->address = t->outer_address;",
        "    t->outer_bytes = t->order->options.bytes;\n    t->address = t->outer_address;",
        "test_pages", "pool_pages_come_from_the_node"),
    "mapped_without_reserve": (
        "pages_try.c",
        "MAP_ANONYMOUS | MAP_HUGETLB |",
        "MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE |",
        "test_pages", "pool_too_small_is_known_before_a_page_is_taken"),
    "preferred_for_strict": (
        "pages_try.c",
        "? DRYI_BIND_PREFERRED : DRYI_BIND_STRICTLY;",
        "? DRYI_BIND_PREFERRED : DRYI_BIND_PREFERRED;",
        "test_pages", "strict_on_a_dry_node_says_so"),
    "left_behind_after_refusal": (
        "pages_try.c",
        "    release(t);\n    return false;",
        "    (void)release;\n    return false;",
        "test_pages", "strict_on_a_dry_node_says_so"),
    "spill_not_counted": (
        "pages_prove.c",
        "        s->elsewhere_bytes += bytes;\n",
        "        s->elsewhere_bytes += 0;\n",
        "test_pages", "any_lets_the_rest_come_from_elsewhere_and_counts_it"),
    "signal_for_status": (
        "populate.c",
        "    if (result != -EINVAL)\n        return result;\n",
        "    if (result != -EINVAL)\n        return 0;\n",
        "test_pages", "strict_on_a_dry_node_says_so"),
    "threads_anywhere": (
        "populate.c",
        "    if (goes)\n        go_to_cpus(w);\n",
        "    if (goes && w->piece_count == 0)\n        go_to_cpus(w);\n",
        "test_pages", "forbidden_binding_is_done_by_threads_on_the_node"),
    "deadline_ignored": (
        "populate.c",
        "return p->deadline_ns && p->kernel",
        "return p->deadline_ns == 1 && p->kernel",
        "test_pages", "time_out_gives_everything_back"),
    "memory_taken_unasked": (
        "populate.c",
        "    return p->may_go_on(p->may_go_on_self, p->bytes - atomic_load(&w->done_bytes));",
        "    return true;",
        "test_pages", "filling_stops_where_memory_goes"),
    "group_above_forgotten": (
        "pages_reason.c",
        "    if (is_short(t, dryi_facts_cgroup_free_bytes(&o->facts)))\n"
        "        return DRY_PAGES_CGROUP_LIMIT;\n",
        "",
        "test_pages", "base_pages_are_asked_for_only_where_there_are_some"),
    "child_unmaps": (
        "pages.c",
        "    if (pages->kernel.process_id(pages->kernel.self) == pages->owner)\n",
        "    if (pages->owner)\n",
        "test_pages", "child_gives_nothing_back"),
    "forked_with_the_child": (
        "pages_try.c",
        "fork == DRY_PAGES_WIPE ? DRYI_ADVISE_WIPEONFORK : DRYI_ADVISE_DONTFORK",
        "DRYI_ADVISE_WIPEONFORK",
        "test_pages", "pool_pages_come_from_the_node"),
    "promises_forgotten": (
        "pages_need.c",
        "    add_promised(&order->facts, need);\n",
        "    (void)add_promised;\n",
        "test_pages", "what_a_node_lacks_is_counted_there"),
    "only_what_is_missing": (
        "pages_need.c",
        "dryi_add_saturating(p->total_count, p->missing_count)",
        "p->missing_count",
        "test_pages", "what_a_pool_lacks_is_counted_and_mended"),
    "weights_ignored": (
        "pages_try.c",
        "        return DRYI_BIND_WEIGHTED;",
        "        return DRYI_BIND_INTERLEAVE;",
        "test_pages", "weights_are_those_of_the_administrator"),
    "evenly_without_a_word": (
        "pages_try.c",
        "t->is_even ? DRY_PAGES_NO_WEIGHTS : DRY_PAGES_REASON_NONE;",
        "DRY_PAGES_REASON_NONE;",
        "test_pages", "kernels_without_weights_interleave_evenly"),
    "export_not_counted": (
        "tensor_export.c",
        "    atomic_fetch_add_explicit(&tensor->users, 1, memory_order_relaxed);\n",
        "",
        "test_tensor", "memory_lives_as_long_as_anybody_has_it"),
    "product_unchecked": (
        "tensor_form.c",
        "        if (length && __builtin_mul_overflow(span, (uint64_t)length, &span))\n"
        "            span = UINT64_MAX;\n",
        "        span *= length ? (uint64_t)length : 1;\n",
        "test_tensor", "products_that_overflow_are_refused"),
    "strides_of_zero": (
        "tensor_form.c",
        "        step *= form->shape[i] ? form->shape[i] : 1;\n",
        "        step *= form->shape[i];\n",
        "test_tensor", "without_elements_there_is_no_memory"),
    "part_beyond_the_end": (
        "tensor_export.c",
        "        size.bytes > tensor->bytes - view->offset_bytes)\n",
        "        size.bytes > tensor->bytes)\n",
        "test_tensor", "parts_share_the_pages"),
    "pinned_early_reuse": (
        "pinned_event.c",
        "        if (is_done == 0)\n            break;\n",
        "",
        "prop_pinned", "fit_keeps_the_contract"),
    "pinned_one_stream_is_enough": (
        "pinned_event.c",
        "if (--cell->uses_left == 0)",
        "if (cell->uses_left-- != 0)",
        "prop_pinned", "fit_keeps_the_contract"),
    "pinned_forgotten_use": (
        "pinned.c",
        "if (t && !(dryi_pinned_tag(cell) & DRYI_PINNED_HAS_USES) &&\n        ",
        "if (t && ",
        "prop_pinned", "fit_keeps_the_contract"),
    "pinned_lost_coalesce_behind": (
        "pinned_heap.c",
        "if (behind < a->cells + a->count && is_free(behind)) {",
        "if (behind < a->cells && is_free(behind)) {",
        "prop_pinned", "fit_keeps_the_contract"),
    "pinned_lost_coalesce_before": (
        "pinned_heap.c",
        "if (cell > a->cells) {",
        "if (cell > a->cells + 1) {",
        "prop_pinned", "fit_keeps_the_contract"),
    "pinned_lost_buddy": (
        "pinned_heap.c",
        "while (size < a->count) {",
        "while (size < a->count / 2) {",
        "prop_pinned", "buddy_keeps_the_contract"),
    "pinned_wrong_buddy": (
        "pinned_heap.c",
        "if (!is_free(other) || other->size != size)",
        "if (!is_free(other))",
        "prop_pinned", "buddy_keeps_the_contract"),
    "pinned_wrong_arena_border": (
        "pinned_arena.c",
        "return begin && address >= begin",
        "return begin",
        "prop_pinned", "fit_keeps_the_contract"),
    "pinned_too_small_block": (
        "pinned_heap.c",
        "granules = (granules + step) & ~step;",
        "granules = granules & ~step;",
        "test_pinned", "rounding_is_a_32nd_at_most"),
    "pinned_giant_waste": (
        "pinned_heap.c",
        "waste <= UINT32_MAX ? bytes",
        "waste <= DRYI_PINNED_BYTES_MAX ? bytes",
        "test_pinned", "the_rounding_of_a_giant_fits_its_cell"),
    "pinned_clear_gives_used": (
        "pinned_grow.c",
        "if (a->used == 0 && (!is_unwanted",
        "if (a->used < 2 && (!is_unwanted",
        "prop_pinned", "fit_keeps_the_contract"),
    "pinned_lost_peak": (
        "pinned_thread_cache.c",
        "    if (stat->current + delta->most > stat->peak)\n"
        "        stat->peak = stat->current + delta->most;\n",
        "",
        "prop_pinned", "fit_keeps_the_contract"),
    "pinned_forgotten_follower": (
        "pinned_event.c",
        "    while (can_close(",
        "    if (can_close(",
        "test_pinned", "an_event_is_recorded_without_the_lock"),
    "pinned_graph_ends_early": (
        "pinned_event.c",
        "if (p->streams.list[p->streams.uses[use].stream].is_released) {",
        "if (p->streams.list[p->streams.uses[use].stream].is_graph) {",
        "test_pinned", "a_graph_keeps_its_blocks"),
    "pinned_over_budget": (
        "pinned_grow.c",
        "return pinned < p->options.budget_bytes ? p->options.budget_bytes - pinned : 0;",
        "return p->options.budget_bytes;",
        "test_pinned", "a_budget_is_kept"),
    "never_given": (
        "lock.h",
        "    atomic_store_explicit(&lock->word, 0, memory_order_release);\n",
        "",
        "test_lock", "try_tells_whether_another_has_it"),
    "never_given_alone": (
        "lock.h",
        "{ /* nobody sleeps */\n"
        "        atomic_store_explicit(&lock->word, 0, memory_order_relaxed);\n",
        "{\n",
        "test_lock", "one_thread_takes_and_gives"),
    "taken_twice": (
        "lock.h",
        "uint32_t free = 0;",
        "uint32_t free = atomic_load(&lock->word);",
        "test_lock", "lock_held_alone_holds_against_the_next_thread"),
    "never_woken": (
        "lock.c",
        "FUTEX_WAKE_PRIVATE, 1,",
        "FUTEX_WAKE, 1,",
        "test_lock", "lock_held_alone_holds_against_the_next_thread"),
    "only_one_woken": (
        "lock.c",
        "atomic_exchange_explicit(&lock->word, 2, memory_order_seq_cst) == 0) {",
        "dryi_lock_try(lock) || atomic_exchange(&lock->word, 2) == 0) {",
        "test_lock", "all_sleepers_are_woken_by_one_gift"),
    "left_asleep": (
        "lock.c",
        "memory_order_seq_cst) == 2 || is_over)",
        "memory_order_seq_cst) == 2)",
        "test_lock", "end_of_contention_leaves_nobody_asleep"),
    "never_calm": (
        "lock.c",
        "lock->calm = has_sleeper ? 0 : lock->calm + 1;",
        "lock->calm = 0 * has_sleeper;",
        "test_lock", "contention_begins_with_a_sleeper_and_ends_in_calm"),
    "calm_without_a_fence": (
        "lock.c",
        "lock->calm > lock->calm_wanted && lock->has_barrier;",
        "lock->calm > lock->calm_wanted;",
        "test_lock", "without_a_fence_contention_has_no_end"),
    "long_sleep_without_a_fence": (
        "lock.c",
        "is_fenced ? NULL : &moment",
        "is_fenced ? NULL : NULL",
        "test_lock", "fence_refused_after_it_was_promised"),
    "pin_unmapped_first": (
        "pin_cuda.c",
        "    if (unregister_range(p, range->address)) {\n"
        "        dry_pages_destroy(range->handle);\n        return;\n    }\n",
        "    dry_pages_destroy(range->handle);\n"
        "    if (unregister_range(p, range->address) || p)\n        return;\n",
        "test_pin_cuda", "range_is_one_registration_of_pages_that_are_there"),
    "pin_refused_stays_mapped": (
        "pin_cuda.c",
        "    else\n        dry_pages_destroy(taken.handle);\n",
        "",
        "test_pin_cuda", "refused_registration_is_unmapped_and_explained"),
    "pin_stale_not_held": (
        "pin_cuda.c",
        "        stale = taken;\n        taken.handle = NULL;\n",
        "        dry_pages_destroy(taken.handle);\n        taken.handle = NULL;\n",
        "test_pin_cuda", "stale_registration_is_gone_around"),
    "pin_event_too_early": (
        "pin_events.c",
        "return result == DRYI_CUDA_SUCCESS ? 1 : -1;",
        "return 1;",
        "test_pin_cuda", "broken_context_keeps_what_it_has"),
    "pin_event_of_wrong_context": (
        "pin_events.c",
        "*context = find_context(events, handle);",
        "*context = 0 * find_context(events, handle);",
        "test_pin_cuda", "streams_of_other_gpus_have_events_of_theirs"),
    "pin_lost_event": (
        "pin_events.c",
        "slot->next = events->contexts[slot->context].free_slot;",
        "slot->next = 0;",
        "test_pin_cuda", "returned_events_are_used_again"),
    "pin_lock_left": (
        "pin_lock.c",
        "(void)k->unlock(k->self, range->address, range->bytes);",
        "(void)k->lock;",
        "test_pin", "range_is_locked_whole_and_unlocked_whole"),
    "pin_refused_lock_leaks": (
        "pin_lock.c",
        "        dry_pages_destroy(pages);\n        return fail_lock",
        "        return fail_lock",
        "test_pin", "refused_lock_names_the_limit_and_leaves_nothing"),
    "pin_room_beyond_groups": (
        "pin_source.c",
        "return dryi_min(available_bytes, dryi_facts_cgroup_free_bytes(facts));",
        "return available_bytes;",
        "test_pin", "available_bytes_are_the_least_of_node_groups_and_machine"),
    "pin_gpu_node_or_nowhere": (
        "pin_source.c",
        "o.policy = DRY_PAGES_ANY;",
        "o.policy = DRY_PAGES_PREFER;",
        "test_pin", "pages_are_on_the_gpu_s_node_as_far_as_there_are"),
    "evaluate_one_gradient": (
        "plan_evaluate.c",
        "stage->gradient_bytes + below +",
        "stage->gradient_bytes + 0 * below +",
        "test_plan_evaluate", "peaks_of_four_stages_are_those_by_hand"),
    "evaluate_gradient_late": (
        "plan_evaluate.c",
        "e->gradients = last->gradient_bytes + e->grads;",
        "e->gradients = last->gradient_bytes;",
        "test_plan_evaluate", "an_evaluation_with_single_tensors_says_the_same"),
    "evaluate_swapped_temporaries": (
        "plan_evaluate.c",
        "uint64_t tmp = dryi_stage_forward_tmp(stage, option);",
        "uint64_t tmp = dryi_stage_backward_tmp(stage, option);",
        "test_plan_evaluate", "each_phase_counts_what_it_needs"),
    "evaluate_output_kept": (
        "plan_evaluate.c",
        "    e->held -= last->output_bytes;\n",
        "",
        "test_plan_evaluate", "peaks_of_four_stages_are_those_by_hand"),
    "evaluate_input_charged_twice": (
        "plan_evaluate.c",
        "uint64_t input = 0;",
        "uint64_t input = first ? e->stages[first - 1].output_bytes : 0;",
        "test_plan_evaluate", "offloaded_bytes_are_away_between_the_passes"),
    "evaluate_sends_the_last": (
        "plan_evaluate.c",
        "    e->leaving = 0; /*",
        "    e->held -= e->leaving; /*",
        "test_plan_evaluate", "offloaded_bytes_are_away_between_the_passes"),
    "evaluate_sends_too_early": (
        "plan_evaluate.c",
        "    uint64_t needed = e->held + e->gradients + saved + tmp;\n"
        "    let_leave(e, i);\n",
        "    let_leave(e, i);\n"
        "    uint64_t needed = e->held + e->gradients + saved + tmp;\n",
        "test_plan_evaluate", "an_evaluation_with_single_tensors_says_the_same"),
    "evaluate_no_way_back": (
        "plan_evaluate.c",
        "while (at != DRYI_NO_ITEM && e->links[at].prev == DRYI_NO_ITEM)",
        "if (at != DRYI_NO_ITEM && e->links[at].prev == DRYI_NO_ITEM)",
        "test_plan_evaluate", "an_evaluation_with_single_tensors_says_the_same"),
    "evaluate_forward_of_the_stage": (
        "plan_evaluate.c",
        "dryi_stage_forward_tmp(stage, option);",
        "stage->forward_tmp_bytes;",
        "test_plan_evaluate", "an_option_s_forward_may_take_its_own"),
    "items_fixed_run_twice": (
        "plan_items.c",
        "for (uint32_t i = item->first; !outer && i <= item->last; i++) {",
        "for (uint32_t i = item->first; !outer && i < item->last; i++) {",
        "test_plan_evaluate", "items_that_are_no_plan_are_refused"),
    "items_inner_leaves_its_range": (
        "plan_items.c",
        "if (item->inner_count > end_of_open(c) - at - 1)",
        "if (item->inner_count > c->count - at - 1)",
        "test_plan_evaluate", "items_that_are_no_plan_are_refused"),
    "items_merged_across_ranges": (
        "plan_items.c",
        "    if (list->count > list->level) {",
        "    if (list->count > 0) {",
        "test_plan_rules", "the_optimizers_step_may_be_what_binds"),
    "ranges_shorter_first": (
        "plan_rules.c",
        "(k < longer);",
        "(k + 1 >= count - longer);",
        "test_plan_rules", "blocks_of_transformers_want_a_range_each"),
    "revolve_splits_late": (
        "plan_revolve.c",
        "uint64_t above = binomial(t->snapshots - 1, t->repeats - 1);",
        "uint64_t above = 1;",
        "test_plan_rules", "revolve_plans_run_as_often_as_counted"),
    "estimate_gradients_split_early": (
        "estimate_state.c",
        "[DRYI_KEPT_GRADS] = 2,",
        "[DRYI_KEPT_GRADS] = 1,",
        "test_estimate", "zero_divides_as_its_table_says"),
    "estimate_small_tensors_in_8_bits": (
        "estimate_state.c",
        "if (p->elements < SMALL_8BIT) {",
        "if (p->elements == 0) {",
        "test_estimate", "states_go_by_the_shapes_of_tensors"),
    "estimate_experts_split_by_all": (
        "estimate_state.c",
        "return setup->data > setup->expert ? setup->data / setup->expert : 1;",
        "return setup->data;",
        "test_estimate", "spread_experts_are_split_by_fewer"),
    "estimate_keys_not_repeated": (
        "estimate_attention.c",
        "    h.keys = keys;\n    h.values = values;\n    return h;",
        "    return h;",
        "test_estimate", "repeated_keys_are_saved_for_all_heads"),
    "estimate_outer_product_of_rows": (
        "estimate_state.c",
        "sizes[count++] = dryi_product(cols, 4);",
        "sizes[count++] = dryi_product(rows, 4);",
        "test_estimate", "states_go_by_the_shapes_of_tensors"),
    "keep_ties_are_loose": (
        "knapsack.c",
        "join(k->cluster, item->tied_to - 1, i);",
        "(void)item;",
        "test_knapsack", "random_problems_are_solved_as_by_trying_all"),
    "keep_unread_are_wanted": (
        "knapsack_cut.c",
        "c->residual[6 * i + 4] = k->items[i].is_unread ? 0 : UNLIMITED;",
        "c->residual[6 * i + 4] = UNLIMITED;",
        "test_knapsack", "random_problems_are_solved_as_by_trying_all"),
    "keep_bound_one_too_high": (
        "knapsack_search.c",
        "uint64_t bound = forced + f.values - f.saved;",
        "uint64_t bound = forced + f.values - f.saved + 1;",
        "test_knapsack", "random_problems_are_solved_as_by_trying_all"),
    "graph_results_die_at_once": (
        "graph_evaluate.c",
        "held += is_read ? 0 : node->bytes;",
        "held += 0 * (is_read ? 0 : node->bytes);",
        "test_graph", "evaluation_agrees_with_the_naive_one"),
    "graph_inputs_paid_twice": (
        "graph_bound.c",
        "        b->items[g->inputs[e]].bytes = 0; /* own_need() has them */\n",
        "",
        "test_graph", "small_graphs_are_planned_as_by_trying_all"),
    "graph_evicts_who_waits": (
        "graph_evict.c",
        "        c->pins[g->inputs[e]]++;\n",
        "        c->pins[g->inputs[e]] += 0;\n",
        "test_graph", "small_graphs_are_planned_as_by_trying_all"),
    "graph_fixed_run_twice": (
        "graph_exact.c",
        "!(node->is_fixed && rank < from->done);",
        "true;",
        "test_graph", "small_graphs_are_planned_as_by_trying_all"),
    "one_range_out_of_reach": (
        "plan_one_pruning.c",
        "while (q.begin < q.end && s->reach[q.at[q.begin]] < i)",
        "while (q.begin < q.end && s->reach[q.at[q.begin]] <= i)",
        "prop_plan_one", "every_plan_of_one_level_is_no_better"),
    "one_block_takes_no_time": (
        "plan_one_pruning.c",
        "    r->time += block->range.time;\n",
        "",
        "prop_plan_one", "ranges_go_over_many_stages"),
    "one_slot_for_nothing": (
        "plan_one_table.c",
        "lent[c] = cells[c] < cells[c - 1] - price ? cells[c] : cells[c - 1] - price;",
        "lent[c] = cells[c];",
        "prop_plan_one", "every_plan_of_one_level_is_no_better"),
    "nested_tells_the_dearest": (
        "plan_nested_pruning.c",
        "(end == last || to[s] < to[end])",
        "(end == last || to[s] > to[end])",
        "prop_plan_nested", "more_memory_takes_no_more_time"),
    "nested_trims_what_is_of_use": (
        "plan_nested_table.c",
        "cells[cut] > table->most",
        "cells[cut] > table->most / 4",
        "prop_plan_nested", "more_memory_takes_no_more_time"),
    "context_dropped_by_its_first_holder": (
        "contexts.c",
        "if (--record->holders > 0)",
        "if (false)",
        "test_pool_contexts", "what_is_told_is_held_and_nothing_else"),
    "context_released_once_alone": (
        "contexts.c",
        "i < times;",
        "i < times && i < 1;",
        "test_pool_contexts", "what_is_told_is_held_and_nothing_else"),
    "entry_goes_with_its_context": (
        "history.c",
        "        dryi_contexts_drop(&h->contexts, h->entries[h->next].context);\n",
        "        h->entries[h->next].context = DRY_NONE;\n",
        "test_pool_contexts", "what_is_told_is_held_and_nothing_else"),
    "checkpoint_lends_pages": (
        "paged_pool.c",
        "o->holds == 0",
        "true",
        "test_pool_checkpoint", "pages_stay_while_there_is_a_checkpoint"),
    "restore_waits_for_nobody": (
        "paged_checkpoint.c",
        "        r->waits[stream] = WAIT_WANTED;\n",
        "        r->waits[stream] = WAIT_NOT;\n",
        "test_pool_checkpoint", "foreign_stream_is_waited_for"),
    "restore_tells_where_blocks_begin": (
        "pool_checkpoint.c",
        "    uint64_t address = r->c->addresses[index];",
        "    uint64_t address = r->c->blocks[index].addr;",
        "test_pool_checkpoint", "aligned_block_comes_back_by_its_address"),
    "restore_leaves_what_was_free": (
        "torch_checkpoint.c",
        "if (run->blocks[i].allocated) {",
        "if (run->blocks[i].allocated || i % 7 == 6) {",
        "test_pool_checkpoint", "pool_goes_back_as_the_model_says"),
    "half_a_page_is_read": (
        "live_reader.c",
        "    if (slot->sequence % 2 != 0)\n        return TRY_HALF;\n",
        "",
        "test_live", "a_file_that_shrinks_is_an_error"),
    "page_that_others_may_read": (
        "live_reader.c",
        "#define OTHERS_MAY 077",
        "#define OTHERS_MAY 022",
        "test_live", "files_that_are_no_pages_are_refused"),
    "child_removes_the_page": (
        "live_page.c",
        "    if (!dryi_fork_mark_is_child(&live->fork)) {\n        dry_live_stop(live);",
        "    if (true) {\n        dry_live_stop(live);",
        "test_live", "a_child_has_no_part_in_the_page"),
    "private_memory_is_releasable": (
        "live_detail.c",
        "s->pool.a != 0 || s->pool.b != 0",
        "false",
        "test_live", "a_page_has_what_the_pool_counts"),
    "page_lives_for_ever": (
        "live_reader.c",
        "    return dryi_shared_file_is_held(reader->file, process);",
        "    dryi_shared_file_is_held(reader->file, process);\n    return true;",
        "test_live", "a_file_that_shrinks_is_an_error"),
    "straight_key_twice": (
        "pickle_straight.c",
        "!p || key >= KEY_COUNT || s->keys >> key & 1",
        "!p || key >= KEY_COUNT",
        "prop_pickle", "straight_events_are_those_of_the_walk"),
    "straight_keys_missing": (
        "pickle_straight.c",
        "(s->keys & NEEDED_KEYS) == NEEDED_KEYS &&",
        "s->keys &&",
        "prop_pickle", "straight_events_are_those_of_the_walk"),
    "straight_other_actions": (
        "pickle_straight.c",
        "s->action - DRYI_TEXT_COUNT <= DRY_ACTION_SEGMENT_UNMAP",
        "s->action - DRYI_TEXT_COUNT <= DRY_ACTION_OTHER",
        "prop_pickle", "straight_events_are_those_of_the_walk"),
    "straight_put_anywhere": (
        "pickle_straight.c",
        "*p == DRYI_OP_BINPUT && p[1] == index",
        "*p == DRYI_OP_BINPUT",
        "prop_pickle", "straight_events_are_those_of_the_walk"),
    "straight_get_of_any_kind": (
        "pickle_straight.c",
        "index >= w->memo_count || !dryi_value_is(w->memo[index], kind)",
        "index >= w->memo_count",
        "prop_pickle", "straight_events_are_those_of_the_walk"),
    "straight_empty_stack_early": (
        "pickle_straight.c",
        "    s->has_empty_stack = *p != DRYI_OP_MARK;\n    if (s->has_empty_stack)\n        return p;\n",
        "    s->has_empty_stack = *p != DRYI_OP_MARK;\n    if (s->has_empty_stack)\n        return dryi_intern_put(&w->trace->stacks, \"\", 0) == DRY_NONE ? NULL : p;\n",
        "prop_pickle", "straight_events_are_those_of_the_walk"),
    "straight_other_text": (
        "pickle_straight.c",
        "known == length && memcmp(text, bytes, length) == 0",
        "known == length",
        "prop_pickle", "straight_events_are_those_of_the_walk"),
    "straight_without_time": (
        "pickle_straight.c",
        "    if (s->keys >> DRYI_KEY_TIME_US & 1)\n        f->note.flags",
        "    if (s->time_us)\n        f->note.flags",
        "prop_pickle", "straight_events_are_those_of_the_walk"),
}

# program: its source, the part of src/ it is compiled with
PROGRAMS = {
    "prop_pickle": ("test/prop/prop_pickle.c", ["trace/pickle/*"]),
    "prop_paged": ("test/prop/prop_paged.c", ["place/paged/**/*"]),
    "test_paged": ("test/unit/place/paged/test_paged.c", ["place/paged/**/*"]),
    "test_paged_cache": ("test/unit/place/paged/test_paged_cache.c", ["place/paged/**/*"]),
    "test_torch_place": ("test/unit/place/torch/test_torch_place.c", ["place/torch/*"]),
    "test_forecast": ("test/unit/place/forecast/test_forecast.c", ["place/forecast/*"]),
    "test_paged_layout": ("test/unit/place/paged/test_paged_layout.c", ["place/paged/**/*"]),
    "test_paged_spot": ("test/unit/place/paged/test_paged_spot.c", ["place/paged/**/*"]),
    "test_pool": ("test/unit/pool/test_pool.c", ["pool/pool*", "place/paged/**/*", "place/torch/*"]),
    "test_pool_find": ("test/unit/pool/test_pool_find.c", ["pool/pool*", "place/paged/**/*"]),
    "test_pool_packing": ("test/unit/pool/test_pool_packing.c", ["pool/pool*", "place/paged/**/*"]),
    "test_pool_at_hand": ("test/unit/pool/test_pool_at_hand.c", ["pool/pool*", "place/paged/**/*"]),
    "test_paged_recycle": ("test/unit/place/paged/test_paged_recycle.c", ["pool/pool*", "place/paged/**/*", "place/torch/*"]),
    "test_paged_oom": ("test/unit/place/paged/test_paged_oom.c", ["pool/pool*", "place/paged/**/*"]),
    "test_pool_refusals": ("test/unit/pool/test_pool_refusals.c", ["pool/pool*", "place/paged/**/*", "place/torch/*"]),
    "test_pool_contexts": ("test/unit/pool/test_pool_contexts.c", ["pool/history*", "pool/context/*"]),
    "test_pool_checkpoint": ("test/unit/pool/test_pool_checkpoint.c",
                             ["pool/checkpoint/*", "place/paged/**/*", "place/torch/*"]),
    "prop_pinned": ("test/prop/prop_pinned.c", ["host/pinned/pinned*"]),
    "test_pinned": ("test/unit/host/pinned/test_pinned.c", ["host/pinned/pinned*"]),
    "test_lock": ("test/unit/os/test_lock.c", ["os/lock*"]),
    "test_pin": ("test/unit/host/pinned/test_pin.c", ["host/pinned/pin_*"]),
    "test_pin_cuda": ("test/unit/host/pinned/test_pin_cuda.c", ["host/pinned/pin_*"]),
    "test_pages": ("test/unit/host/pages/test_pages.c", ["host/pages/pages*", "host/pages/populate*"]),
    "test_tensor": ("test/unit/host/tensor/test_tensor.c", ["host/tensor/tensor*"]),
    "prop_plan_one": ("test/prop/prop_plan_one.c", ["plan/one/*"]),
    "prop_plan_nested": ("test/prop/prop_plan_nested.c", ["plan/nested/*"]),
    "test_plan_evaluate": ("test/unit/plan/chain/test_plan_evaluate.c",
                           ["plan/chain/plan_evaluate*", "plan/chain/plan_items*"]),
    "test_plan_rules": ("test/unit/plan/rules/test_plan_rules.c",
                        ["plan/chain/plan_items*", "plan/rules/plan_r*"]),
    "test_estimate": ("test/unit/plan/estimate/test_estimate.c", ["plan/estimate/*"]),
    "test_knapsack": ("test/unit/plan/knapsack/test_knapsack.c", ["plan/knapsack/*"]),
    "test_graph": ("test/unit/plan/graph/test_graph.c", ["plan/graph/*"]),
    "test_live": ("test/unit/live/test_live.c", ["live/live*"]),
}
# A mutant without end is ended by the work it has done, so that a busy machine ends nothing
# else; one that sleeps for ever by a wait that no machine is too busy for.
PROCESSOR_SECONDS, WALL_SECONDS = 120, 1800
RUN = re.compile(r"\[ RUN +\] (\w+)")
FAILED = re.compile(r"\[ +(?:FAILED|ERROR) +\] (\w+)")


def sources_of(setup, program):
    """The part that is compiled apart, and the program itself."""
    source = setup.root / "src"
    part = sorted(path for glob in PROGRAMS[program][1] for path in source.glob(glob + ".c"))
    return part + [setup.root / PROGRAMS[program][0]]


def compile_into(setup, folder, sources):
    """An object each, in folder; what lies in folder/src goes before what is in the tree."""
    flags = ["-std=c11", "-O1", "-D_GNU_SOURCE", "-DDRYI_ASSERT_LEVEL=0",
             f"-I{folder}/src", f"-I{setup.root}/src", f"-I{setup.root}/include",
             f"-I{setup.root}/test", f"-I{setup.root}/standin"]
    for source in sources:
        subprocess.run(setup.cc + flags + ["-c", str(source), "-o",
                                           str(folder / f"{source.stem}.o")], check=True)


def link(setup, folder, program):
    """The program, of the objects in folder and, where there is none, of the unchanged."""
    own = [folder / f"{source.stem}.o" for source in sources_of(setup, program)]
    objects = [str(o if o.exists() else setup.build / "unchanged" / o.name) for o in own]
    binary = folder / program
    subprocess.run(setup.cc + objects + ["-o", str(binary)] + setup.libraries
                   + ["-lcmocka", "-lm"], check=True)
    return binary


def limit_work():
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))


def run(program, rounds):
    """(passed, the test that failed first or ran last, the last line that says why).

    The program is ended at its first test that fails: what follows tells nothing more.
    """
    env = dict(os.environ, DRY_TEST_ROUNDS=str(rounds), CMOCKA_MESSAGE_OUTPUT="stdout")
    lines = []
    with subprocess.Popen(["stdbuf", "-oL", str(program)], env=env, preexec_fn=limit_work,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace") as process:
        limit = threading.Timer(WALL_SECONDS, process.kill)
        limit.start()
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if FAILED.search(line):
                process.kill()
        if not limit.is_alive():
            lines.append("no end")
        limit.cancel()
    text, passed = "\n".join(lines), process.returncode == 0
    ran = FAILED.findall(text)[:1] or RUN.findall(text)
    why = [line for line in lines if re.match("place_ops:|ERROR:", line)]
    return passed, ran[-1] if ran else "", (why or lines or [""])[-1]


def find_source(root, change):
    """The file that the mutant changes, and None or why it does not apply."""
    found = [path for glob in PROGRAMS[change[3]][1]
             for path in (root / "src").glob(glob) if path.name == change[0]]
    if not found:
        return None, f"{change[0]} is not there"
    count = found[0].read_text().count(change[1])
    return found[0], None if count == 1 else f"what is replaced is in {change[0]} {count} times"


def change_source(setup, folder, program, change):
    found, wrong = find_source(setup.root, change)
    if wrong:
        return None, wrong
    copy = folder / found.relative_to(setup.root)
    copy.parent.mkdir(parents=True)
    copy.write_text(found.read_text().replace(change[1], change[2]))
    return [copy] if copy.suffix == ".c" else sources_of(setup, program), None


def check_texts(root):
    """Every mutant applies: a second, without a build."""
    wrongs = [(name, find_source(root, change)[1]) for name, change in MUTANTS.items()]
    for name, wrong in wrongs:
        if wrong:
            print(f"{name}: {wrong}")
    return 1 if any(wrong for _, wrong in wrongs) else 0


def check_mutant(setup, name):
    """What caught it and None, or None and what is wrong with it."""
    change = MUTANTS[name]
    folder = setup.build / name
    folder.mkdir()
    changed, wrong = change_source(setup, folder, change[3], change)
    if wrong:
        return None, wrong
    try:
        compile_into(setup, folder, changed)
        program = link(setup, folder, change[3])
    except subprocess.CalledProcessError:
        return None, "does not compile"
    passed, test, why = run(program, setup.rounds)
    if passed:
        return None, f"is not caught by {change[3]}"
    if test != change[4]:
        return None, f"is caught by {test}, not by {change[4]}"
    return f"{test}: {why}", None


def check_unchanged(setup, program):
    """None, or what is wrong without any change."""
    passed, test, why = run(link(setup, setup.build / "unchanged", program), setup.rounds)
    return None if passed else f"{program} fails in {test}: {why}"


def check_all(setup, chosen):
    """How many are wrong; one more at once than there are processors, for some sleep."""
    programs = sorted({MUTANTS[name][3] for name in chosen})
    sources = sorted({s for program in programs for s in sources_of(setup, program)})
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(1 + (os.cpu_count() or 1)) as pool:
        unchanged = setup.build / "unchanged"
        list(pool.map(lambda source: compile_into(setup, unchanged, [source]), sources))
        for wrong in pool.map(lambda program: check_unchanged(setup, program), programs):
            if wrong:
                print(f"unchanged: {wrong}", flush=True)
                failed += 1
        if failed:
            return failed
        results = pool.map(lambda name: check_mutant(setup, name), chosen)
        for number, (name, (caught, wrong)) in enumerate(zip(chosen, results), 1):
            print(f"{number}/{len(chosen)} {name}: {'WRONG: ' + wrong if wrong else caught}",
                  flush=True)
            failed += wrong is not None
    return failed


def git(setup, *words):
    """What it prints, or None."""
    done = subprocess.run(["git", "-C", str(setup.root), *words], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False, text=True)
    return done.stdout if done.returncode == 0 else None


def entries_at(setup, commit):
    """The table of mutants as it was, or an empty one."""
    here = pathlib.Path(__file__).resolve().relative_to(setup.root.resolve())
    text = git(setup, "show", f"{commit}:{here.as_posix()}")
    for node in ast.parse(text or "").body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "MUTANTS":
            return ast.literal_eval(node.value)
    return {}


def changed_mutants(setup):
    base = subprocess.run([setup.root / "scripts/base.sh"], cwd=setup.root, text=True,
                          stdout=subprocess.PIPE, check=False).stdout.strip()
    names = git(setup, "diff", "--name-only", base) if base else None
    if names is None:
        return list(MUTANTS)
    changed = {pathlib.PurePath(name).name for name in names.splitlines()}
    old = entries_at(setup, base)
    return [name for name, entry in MUTANTS.items()
            if entry[0] in changed or old.get(name) != entry
            or pathlib.PurePath(PROGRAMS[entry[3]][0]).name in changed]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--libraries", nargs="+")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--only")
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--texts", action="store_true")
    parser.add_argument("cc", nargs="*")
    setup = parser.parse_args()
    if setup.texts:
        return check_texts(setup.root)
    if not (setup.build and setup.libraries and setup.cc):
        parser.error("--build, --libraries and a compiler are needed")
    chosen = [name for name in (changed_mutants(setup) if setup.changed else MUTANTS)
              if setup.only in (None, name)]
    shutil.rmtree(setup.build, ignore_errors=True)
    (setup.build / "unchanged").mkdir(parents=True)
    failed = check_all(setup, chosen)
    print(f"{len(chosen)} of {len(MUTANTS)} mutants, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
