/* SPDX-License-Identifier: Apache-2.0 */
/* See estimate_remedies.h. Cost: one or two estimates per change, some 30 in all. */
#include "estimate/estimate_remedies.h"

#include <stdarg.h>
#include <stdio.h>

#define DEVICES_MAX 1024u

struct search {
    struct remedies *found;
    struct dry_model model;     /* the model, with the change being tried */
    struct dry_run_setup setup; /* the setup, with the change being tried */
    uint64_t capacity_bytes, needed_bytes;
    struct dry_error *err;
    enum dry_status status; /* DRY_ERR_MEMORY stops the search */
};

static uint64_t
count_devices(const struct dry_run_setup *s)
{
    return s->data * s->tensor * s->pipeline * s->context;
}

/* Estimate on a device of `capacity` bytes. Returns 0 if the run does not fit, or if the
   model contradicts the change. */
static uint64_t
weigh_on(struct search *s, uint64_t capacity)
{
    struct dry_estimate *estimate = NULL;
    struct dry_error err;
    uint64_t bytes = 0;
    if (s->status != DRY_OK)
        return 0;
    s->setup.capacity_bytes = capacity;
    enum dry_status status =
        dry_estimate_create(&s->model, &s->setup, NULL, &estimate, &err);
    if (estimate && dry_estimate_get_summary(estimate)->fits)
        bytes = dry_estimate_get_summary(estimate)->device_bytes;
    dry_estimate_destroy(estimate);
    if (status == DRY_ERR_MEMORY) {
        s->status = status;
        *s->err = err;
    }
    return bytes;
}

/*
 * Estimate on the given device, where the allocator frees its cache before failing. If
 * the run does not fit, estimate without a limit. Returns 0 if the model refuses the
 * change.
 */
static uint64_t
weigh(struct search *s)
{
    uint64_t bytes = weigh_on(s, s->capacity_bytes);
    return bytes ? bytes : weigh_on(s, 0);
}

/* Add the change being tried, described by `format`, if it saves memory. */
__attribute__((format(printf, 3, 4))) static void
add(struct search *s, uint64_t bytes, const char *format, ...)
{
    va_list args;
    if (bytes == 0 || bytes >= s->needed_bytes || s->found->count == REMEDIES_MAX)
        return;
    struct remedy *r = &s->found->all[s->found->count++];
    *r = (struct remedy){.device_bytes = bytes,
                         .devices = count_devices(&s->setup),
                         .fits = bytes <= s->capacity_bytes};
    va_start(args, format);
    vsnprintf(r->text, sizeof r->text, format, args);
    va_end(args);
}

static unsigned long long
ull(uint64_t x)
{
    return (unsigned long long)x;
}

/* Find the smallest degree that fits, else the largest one tried. *bytes is what the run
   then needs per device. */
static uint64_t
least_degree(struct search *s, uint64_t *degree, uint64_t most, bool by_halves,
             uint64_t *bytes)
{
    uint64_t low = *degree, high = low > 1 ? low : 2, last = 0;
    *bytes = 0;
    for (; high <= most; high *= 2) {
        *degree = high;
        last = weigh(s);
        if (last == 0)
            continue;
        *bytes = last;
        if (last <= s->capacity_bytes)
            break;
        low = high;
    }
    if (high > most) {
        *degree = low;
        return low;
    }
    while (by_halves && high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        *degree = middle;
        last = weigh(s);
        bool fits = last && last <= s->capacity_bytes;
        low = fits ? low : middle;
        high = fits ? middle : high;
        *bytes = fits ? last : *bytes;
    }
    *degree = high;
    return high;
}

/* --- training ----------------------------------------------------------------------------- */

static void
try_batch(struct search *s, const struct dry_run_setup *plain, uint64_t batch)
{
    s->setup = *plain;
    s->setup.batch = batch ? batch : 1;
    if (s->setup.batch < plain->batch)
        add(s, weigh(s), "--batch %llu", ull(s->setup.batch));
}

static void
try_settings(struct search *s, const struct dry_run_setup *plain)
{
    s->setup = *plain;
    s->setup.checkpointing = DRY_CHECKPOINTING_FULL;
    s->setup.checkpoint_count = 0;
    if (s->model.kind != DRY_MODEL_CONV && plain->checkpointing != DRY_CHECKPOINTING_FULL)
        add(s, weigh(s), "--checkpointing full");
    s->setup = *plain;
    s->setup.precision = DRY_PRECISION_BF16;
    if (plain->precision != DRY_PRECISION_BF16)
        add(s, weigh(s), "--precision bf16");
    s->setup = *plain;
    s->setup.optimizer = DRY_OPTIMIZER_ADAMW_8BIT;
    if (plain->optimizer != DRY_OPTIMIZER_ADAMW_8BIT)
        add(s, weigh(s), "--optimizer adamw-8bit");
}

static void
try_stages(struct search *s, const struct dry_run_setup *plain)
{
    for (uint32_t zero = plain->zero + 1; zero <= 3 && plain->data > 1; zero++) {
        s->setup = *plain;
        s->setup.zero = zero;
        s->setup.has_bucket_view = false;
        add(s, weigh(s), "--zero %u", zero);
    }
}

/* Shard everything (ZeRO 3) over the fewest devices that suffice. If none do, try with
   full checkpointing. */
static void
try_devices(struct search *s, const struct dry_run_setup *plain)
{
    uint64_t bytes = 0;
    for (int full = 0; full < 2 && (bytes == 0 || bytes > s->capacity_bytes); full++) {
        s->setup = *plain;
        s->setup.zero = 3;
        s->setup.has_bucket_view = false;
        if (full)
            s->setup.checkpointing = DRY_CHECKPOINTING_FULL;
        if (full && (plain->checkpointing == DRY_CHECKPOINTING_FULL ||
                     s->model.kind == DRY_MODEL_CONV))
            break;
        uint64_t data = least_degree(s, &s->setup.data, DEVICES_MAX, true, &bytes);
        add(s, bytes, "--zero 3 --data %llu%s", ull(data),
            full ? " --checkpointing full" : "");
    }
}

/* Try all changes that need no further devices together, if no single one suffices. */
static void
try_together(struct search *s, const struct dry_run_setup *plain)
{
    bool is_conv = s->model.kind == DRY_MODEL_CONV;
    for (size_t i = 0; i < s->found->count; i++) {
        if (s->found->all[i].fits && s->found->all[i].devices == count_devices(plain))
            return;
    }
    s->setup = *plain;
    s->setup.batch = 1;
    s->setup.precision = DRY_PRECISION_BF16;
    s->setup.optimizer = DRY_OPTIMIZER_ADAMW_8BIT;
    s->setup.zero = plain->data > 1 ? 3 : 0;
    s->setup.has_bucket_view = false;
    if (!is_conv)
        s->setup.checkpointing = DRY_CHECKPOINTING_FULL;
    add(s, weigh(s), "-b 1 -p bf16 -o adamw-8bit%s%s", is_conv ? "" : " -c full",
        s->setup.zero ? " -z 3" : "");
}

/* --- inference ---------------------------------------------------------------------------- */

static void
infer(struct search *s, const struct dry_run_setup *plain, uint64_t requests)
{
    static const enum dry_quantization kinds[] = {DRY_QUANTIZATION_INT8,
                                                  DRY_QUANTIZATION_NF4};
    uint64_t bytes;
    s->setup = *plain;
    s->setup.requests = requests ? requests : 1;
    if (s->setup.requests < plain->requests)
        add(s, weigh(s), "--requests %llu", ull(s->setup.requests));
    s->setup = *plain;
    s->setup.precision = DRY_PRECISION_BF16;
    if (plain->precision != DRY_PRECISION_BF16)
        add(s, weigh(s), "--precision bf16");
    for (size_t i = 0; i < 2 && s->model.quantization == DRY_QUANTIZATION_NONE; i++) {
        enum dry_quantization none = s->model.quantization;
        s->setup = *plain;
        s->model.quantization = kinds[i];
        add(s, weigh(s), "matrices in %d bits (bitsandbytes)", i ? 4 : 8);
        s->model.quantization = none;
    }
    s->setup = *plain;
    uint64_t tensor = least_degree(s, &s->setup.tensor, s->model.heads, false, &bytes);
    add(s, bytes, "--tensor %llu", ull(tensor));
}

enum dry_status
remedies_find(struct remedies *remedies, const struct dry_model *model,
              const struct dry_run_setup *setup, const struct remedies_limits *limits,
              struct dry_error *err)
{
    struct search s = {.found = remedies,
                       .model = *model,
                       .capacity_bytes = limits->capacity_bytes,
                       .err = err,
                       .status = DRY_OK};
    remedies->count = 0;
    s.setup = *setup;
    s.needed_bytes = weigh_on(&s, 0);
    if (setup->is_inference) {
        infer(&s, setup, limits->requests);
        return s.status;
    }
    try_batch(&s, setup, limits->batch);
    try_settings(&s, setup);
    try_stages(&s, setup);
    try_devices(&s, setup);
    try_together(&s, setup);
    return s.status;
}
