/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any trace, explained: every device of it, at the moment that matters and at others. The
 * sums must add up whatever the record claims. The input is that of support/spoilt_record.h.
 */
#include "support/fuzz.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "support/spoilt_record.h"

#define INPUT_BYTES_MAX (256u << 10)
#define DEVICES_MAX 4u
#define RUNS_MAX 3u

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
check_proof(const struct dry_proof *p)
{
    uint64_t left = 0, right = 0;
    require(p->left_count > 0 && p->left_count <= DRY_PROOF_TERMS_MAX);
    require(p->right_count > 0 && p->right_count <= DRY_PROOF_TERMS_MAX);
    for (unsigned i = 0; i < p->left_count; i++)
        left += p->left[i].bytes;
    for (unsigned i = 0; i < p->right_count; i++)
        right += p->right[i].bytes;
    require(left == p->left_sum && right == p->right_sum);
    require(p->relation != '=' || left == right);
    require(p->relation != '<' || left <= right);
    require(p->relation != '>' || left >= right);
}

static void
check_view(const struct dry_explanation_view *v)
{
    const struct dry_state *s = v->state;
    uint64_t categories = 0;
    require(s->reserved == s->active + s->releasable + s->stranded);
    require(s->active == s->allocated + s->pending);
    require(v->finding_count > 0);
    for (size_t i = 0; i < v->finding_count; i++) {
        require(v->findings[i].confidence <= 100);
        for (unsigned k = 0; k < v->findings[i].proof_count; k++)
            check_proof(&v->findings[i].proofs[k]);
    }
    for (unsigned c = 0; c < DRY_CATEGORY_COUNT; c++)
        categories += v->category_bytes[c];
    require(categories == dry_owners_total(v->owners));
    require(s->overlap_count > 0 || categories == s->active + s->unplaced_bytes);
    for (size_t i = 0; i < v->change_count; i++)
        require(!v->changes[i].setting || v->changes[i].kind == DRY_CHANGE_SETTING ||
                v->changes[i].kind == DRY_CHANGE_LIMIT);
}

static void
explain(struct dry_explain_options *options, uint32_t moment)
{
    struct dry_explanation *e;
    struct dry_error err = {0};
    options->moment = moment;
    enum dry_status status = dry_explanation_create(options, &e, &err);
    if (status != DRY_OK) {
        require(err.status == status && err.text[0]);
        return;
    }
    check_view(dry_explanation_get_view(e));
    dry_explanation_destroy(e);
}

static void
explain_trace(const struct dry_trace *trace)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    struct dry_explain_device devices[DEVICES_MAX];
    struct dry_timeline *timelines[DEVICES_MAX];
    struct dry_explain_options options;
    dry_explain_options_init(&options);
    options.devices = devices;
    options.run_max = RUNS_MAX;
    for (size_t i = 0; i < v->device_count && options.device_count < DEVICES_MAX; i++) {
        struct dry_replay_options o;
        dry_replay_options_init(&o);
        o.device = v->devices[i].device;
        struct dry_explain_device *d = &devices[options.device_count];
        struct dry_timeline **t = &timelines[options.device_count];
        if (dry_replay_create(trace, &o, &d->replay, NULL) != DRY_OK)
            continue;
        if (dry_timeline_create(d->replay, NULL, t, NULL) != DRY_OK) {
            dry_replay_destroy(d->replay);
            continue;
        }
        d->timeline = *t;
        options.device_count++;
    }
    for (size_t i = 0; i < options.device_count; i++) {
        uint32_t last = dry_timeline_get_view(timelines[i])->dump_moment;
        options.subject = i;
        explain(&options, DRY_MOMENT_AUTO);
        options.run_max = 0;
        explain(&options, last / 2);
        explain(&options, last);
        options.run_max = RUNS_MAX;
    }
    for (size_t i = 0; i < options.device_count; i++) {
        dry_timeline_destroy(timelines[i]);
        dry_replay_destroy(devices[i].replay);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_BYTES_MAX)
        return 0;
    struct dry_trace *trace = spoilt_record_read(data, size);
    if (trace)
        explain_trace(trace);
    dry_trace_destroy(trace);
    return 0;
}
