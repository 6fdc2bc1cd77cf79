/* SPDX-License-Identifier: Apache-2.0 */
/* The idea stands in sweep_result.h. */
#include "sweep/sweep_result.h"

#include <stdio.h>
#include <string.h>

#include "base/json_out.h"

static char *
dump(json_t *root)
{
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

char *
sweep_result_write(const struct dry_run *run)
{
    return dump(json_pack(
        "{s:o, s:o, s:o, s:o, s:I, s:b}", "capacity_bytes",
        run->capacity_bytes ? json_out_number(run->capacity_bytes) : json_null(),
        "reserved_peak_bytes", json_out_number(run->reserved_peak_bytes),
        "driver_time_ns", json_out_number(run->driver_time_ns), "driver_calls",
        json_out_number(run->driver_calls), "num_alloc_retries",
        (json_int_t)run->stats.num_alloc_retries, "oom", (int)run->oom));
}

char *
sweep_result_write_error(const char *error)
{
    return dump(json_pack("{s:o}", "error", json_out_text(error, strlen(error))));
}

static bool
read_number(const json_t *root, const char *key, uint64_t *number)
{
    const json_t *value = json_object_get(root, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *number = (uint64_t)json_integer_value(value);
    return true;
}

static bool
read_figures(const json_t *root, struct sweep_figures *f)
{
    const json_t *oom = json_object_get(root, "oom");
    bool has_device = !json_is_null(json_object_get(root, "capacity_bytes"));
    f->device_bytes = SWEEP_NO_DEVICE;
    f->fits = json_is_false(oom);
    return json_is_boolean(oom) &&
           (!has_device || read_number(root, "capacity_bytes", &f->device_bytes)) &&
           read_number(root, "reserved_peak_bytes", &f->reserved_bytes) &&
           read_number(root, "driver_time_ns", &f->driver_time_ns) &&
           read_number(root, "driver_calls", &f->driver_calls) &&
           read_number(root, "num_alloc_retries", &f->retries);
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
