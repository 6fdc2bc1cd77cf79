/* SPDX-License-Identifier: Apache-2.0 */
/* See series_in.h. Members that the page does not show are skipped, whatever they hold. */
#include "view/series_in.h"

#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/report.h"

/* Find a member that may be null, which is taken as absent. */
static struct json_at
find(const struct json_at *object, const char *key)
{
    struct json_at at = json_in_key(object, key);
    at.value = json_is_null(at.value) ? NULL : at.value;
    return at;
}

static json_t *
take_text(struct json_in *in, const struct json_at *object, const char *key)
{
    const char *text = json_in_text(in, find(object, key), NULL);
    return text ? json_string(text) : json_null();
}

static json_t *
take_bytes(struct json_in *in, const struct json_at *object, const char *key)
{
    struct json_at at = find(object, key);
    return at.value ? json_out_number(json_in_unsigned(in, at)) : json_null();
}

static json_t *
take_run(struct json_in *in, const struct json_at *run)
{
    struct json_at fits = find(run, "fits");
    const char *snapshot = json_in_text(in, find(run, "snapshot"), NULL);
    const char *slash = snapshot ? strrchr(snapshot, '/') : NULL;
    if (!json_in_text(in, json_in_key(run, "run"), NULL))
        json_in_fail(in, run, "expected a run of dry-run, with its label as \"run\"");
    bool is_fitting = json_in_flag(in, fits, false);
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:s?}", "run", take_text(in, run, "run"), "fits",
        fits.value ? json_boolean(is_fitting) : json_null(), "unseen",
        take_text(in, run, "unseen"), "reserved_peak_bytes",
        take_bytes(in, run, "reserved_peak_bytes"), "allocated_peak_bytes",
        take_bytes(in, run, "allocated_peak_bytes"), "room_bytes",
        take_bytes(in, run, "room_bytes"), "snapshot", slash ? slash + 1 : snapshot);
}

static json_t *
take_series(struct json_in *in, const struct json_at *root)
{
    struct json_at schema = json_in_key(root, "schema"), runs = json_in_key(root, "runs");
    const char *text = json_in_text(in, schema, "");
    size_t count = json_in_list(in, &runs);
    if (strcmp(text, "drystone.dry-run/1") != 0 || count == 0 || count > SERIES_RUNS_MAX)
        json_in_fail(in, root, "expected 1 to %d \"runs\" of drystone.dry-run/1",
                     SERIES_RUNS_MAX);
    json_t *rows = json_array();
    for (size_t i = 0; in->status == DRY_OK && i < count; i++) {
        struct json_at run = json_in_element(&runs, i);
        json_array_append_new(rows, take_run(in, &run));
    }
    return json_pack("{s:o, s:o, s:o}", "card", take_text(in, root, "card"), "best",
                     take_text(in, root, "best"), "runs", rows);
}

int
series_in_read(const char *command, const char *path, json_t **series)
{
    struct dry_error err;
    struct json_in in = {.err = &err};
    char *text = NULL;
    size_t length;
    struct json_at root = {0};
    in.status = json_in_read_file(path, &text, &length, &err);
    if (in.status == DRY_OK)
        in.status = json_in_parse(text, length, &root.value, &err);
    free(text);
    *series = in.status == DRY_OK ? take_series(&in, &root) : NULL;
    json_decref(root.value);
    if (in.status != DRY_OK)
        return report_error(command, path, &err);
    return *series ? EXIT_FINE : report_memory(command, path);
}
