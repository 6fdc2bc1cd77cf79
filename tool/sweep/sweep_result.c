/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep_result.h. */
#include "sweep/sweep_result.h"

#include <stdio.h>

#include "base/fields.h"
#include "base/json_out.h"

/* clang-format off */
#define FIGURE(key, kind, unit, member, known, meaning)                                  \
    DRY_FIELD_OF(struct sweep_figures, key, kind, unit, member, DRY_KNOWN_##known,       \
                 offsetof(struct sweep_figures, member), true, meaning)

static const struct dry_field rows[] = {
    FIGURE("fits", BOOL, NONE, fits, ALWAYS, "it fits on the run's device"),
    FIGURE("runs_on_bytes", U64, BYTES, device_bytes, UNLESS_MAX, "the smallest device that suffices"),
    FIGURE("reserved_peak_bytes", U64, BYTES, reserved_bytes, ALWAYS, "reserved at the peak"),
    FIGURE("driver_time_us", U64, NANOSECONDS, driver_time_ns, ALWAYS, "time in the driver, modelled"),
    FIGURE("driver_calls", U64, COUNT, driver_calls, ALWAYS, "calls that take, map, unmap or give back"),
    FIGURE("num_alloc_retries", U64, COUNT, retries, ALWAYS, "requests tried again after the cache was emptied"),
};
const struct dry_fields sweep_fields = {rows, sizeof rows / sizeof *rows};
/* clang-format on */

char *
sweep_result_write(const struct dry_run *run)
{
    return json_out_dump(
        fields_add_json(json_object(), dry_run_get_fields(DRY_RUN_WHOLE), run),
        JSON_COMPACT);
}

char *
sweep_result_write_error(const char *error)
{
    return json_out_dump(json_pack("{s:o}", "error", json_out_string(error)),
                         JSON_COMPACT);
}

static bool
read_figures(json_t *root, struct sweep_figures *f)
{
    struct dry_run run = {0};
    struct json_in in = {0};
    struct json_at at = {.value = root};
    fields_read_json(&in, &at, dry_run_get_fields(DRY_RUN_WHOLE), &run, NULL);
    if (in.status != DRY_OK)
        return false;
    *f = (struct sweep_figures){
        .device_bytes = run.capacity_bytes ? run.capacity_bytes : SWEEP_NO_DEVICE,
        .fits = !run.oom,
        .reserved_bytes = run.reserved_peak_bytes,
        .driver_time_ns = run.driver_time_ns,
        .driver_calls = run.driver_calls,
        .retries = (uint64_t)run.stats.num_alloc_retries,
    };
    return true;
}

bool
sweep_result_is_whole(const char *text)
{
    struct sweep_figures figures;
    json_t *root = json_loads(text, 0, NULL);
    bool is_whole =
        json_is_string(json_object_get(root, "error")) || read_figures(root, &figures);
    json_decref(root);
    return is_whole;
}

bool
sweep_result_read(const char *text, struct sweep_figures *figures,
                  char error[SWEEP_ERROR_BYTES])
{
    json_t *root = json_loads(text, 0, NULL);
    const char *failed = json_string_value(json_object_get(root, "error"));
    bool is_good = !failed && read_figures(root, figures);
    snprintf(error, SWEEP_ERROR_BYTES, "%s",
             failed ? failed : "the store has a damaged result of it");
    json_decref(root);
    return is_good;
}
