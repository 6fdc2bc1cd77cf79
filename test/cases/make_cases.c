/* SPDX-License-Identifier: Apache-2.0 */

/*
 * make_cases DIR: every labelled case as DIR/NAME.pickle, and DIR/labels.json with what is
 * true of each. The folder is made if it is not there.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cases/cases.h"

#define PATH_BYTES 4096

static enum dry_status
write_bytes(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    if (fwrite(bytes, 1, count, self) == count)
        return DRY_OK;
    *err = (struct dry_error){.status = DRY_ERR_SYSTEM, .text = "cannot write"};
    return DRY_ERR_SYSTEM;
}

static FILE *
create(const char *folder, const char *name, const char *suffix)
{
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    FILE *file = length > 0 && length < PATH_BYTES ? fopen(path, "wb") : NULL;
    if (!file)
        fprintf(stderr, "make_cases: cannot create %s/%s%s\n", folder, name, suffix);
    return file;
}

static bool
write_snapshot(const char *folder, const struct labelled_case *label,
               const struct dry_trace *snapshot)
{
    struct dry_error err;
    FILE *file = create(folder, label->name, ".pickle");
    if (!file)
        return false;
    struct dry_sink sink = {write_bytes, file};
    bool is_written = dry_trace_write(snapshot, &sink, &err) == DRY_OK;
    if (!is_written)
        fprintf(stderr, "make_cases: %s: %s\n", label->name, err.text);
    return fclose(file) == 0 && is_written;
}

/* --- labels.json; the texts are our own and need no escapes ------------------------------- */

static void
write_bytes_of(FILE *to, const char *key, uint64_t value)
{
    fprintf(to, ",\n   \"%s\": %" PRIu64, key, value);
}

static void
write_list(FILE *to, const char *key, const uint64_t *values, size_t count)
{
    fprintf(to, ",\n   \"%s\": [", key);
    for (size_t i = 0; i < count; i++)
        fprintf(to, "%s%" PRIu64, i ? ", " : "", values[i]);
    fprintf(to, "]");
}

static void
write_truth(FILE *to, const struct case_truth *t)
{
    write_bytes_of(to, "total_bytes", t->total_bytes);
    write_bytes_of(to, "capacity_bytes", t->capacity_bytes);
    write_bytes_of(to, "allowed_bytes", case_allowed_bytes(t));
    write_bytes_of(to, "device", (uint64_t)t->device);
    if (t->oom_event == SIZE_MAX)
        fprintf(to, ",\n   \"oom_event\": null");
    else
        write_bytes_of(to, "oom_event", t->oom_event);
    write_bytes_of(to, "request_bytes", t->request_bytes);
    write_bytes_of(to, "live_bytes", t->live_bytes);
    write_bytes_of(to, "requested_bytes", t->requested_bytes);
    write_bytes_of(to, "pending_bytes", t->pending_bytes);
    write_bytes_of(to, "pending_before_bytes", t->pending_before_bytes);
    write_bytes_of(to, "reserved_bytes", t->reserved_bytes);
    write_bytes_of(to, "device_free_bytes", t->device_free_bytes);
    write_bytes_of(to, "releasable_bytes", t->releasable_bytes);
    write_bytes_of(to, "lane_free_bytes", t->lane_free_bytes);
    write_bytes_of(to, "lane_hole_bytes", t->lane_hole_bytes);
    write_bytes_of(to, "other_class_bytes", t->other_class_bytes);
    write_bytes_of(to, "other_stream_bytes", t->other_stream_bytes);
    write_bytes_of(to, "other_pool_bytes", t->other_pool_bytes);
    write_bytes_of(to, "end_live_bytes", t->end_live_bytes);
    write_bytes_of(to, "end_reserved_bytes", t->end_reserved_bytes);
    write_list(to, "step_live_bytes", t->step_live_bytes, t->step_count);
    write_list(to, "device_peak_bytes", t->device_peak_bytes, t->device_count);
}

static void
write_text(FILE *to, const char *key, const char *text)
{
    if (text)
        fprintf(to, ",\n   \"%s\": \"%s\"", key, text);
    else
        fprintf(to, ",\n   \"%s\": null", key);
}

static void
write_label(FILE *to, const struct labelled_case *label, const struct case_truth *truth)
{
    fprintf(to, "  {\"name\": \"%s\"", label->name);
    write_text(to, "what", label->what);
    write_text(to, "cause", dry_cause_name(label->cause));
    write_text(to, "second", dry_cause_name(label->second));
    fprintf(to, ",\n   \"setting_helps\": %s", label->setting_helps ? "true" : "false");
    fprintf(to, ",\n   \"expandable_helps\": %s",
            label->expandable_helps ? "true" : "false");
    write_text(to, "helps", label->helps);
    write_text(to, "conf", label->conf);
    write_truth(to, truth);
    fprintf(to, "}");
}

static bool
make_one(const char *folder, FILE *labels, size_t index)
{
    const struct labelled_case *label = case_at(index);
    struct dry_trace *snapshot;
    struct case_truth truth;
    struct dry_error err;
    if (case_make(label, &snapshot, &truth, &err) != DRY_OK) {
        fprintf(stderr, "make_cases: %s: %s\n", label->name, err.text);
        return false;
    }
    bool is_written = write_snapshot(folder, label, snapshot);
    dry_trace_destroy(snapshot);
    fprintf(labels, "%s\n", index ? "," : "");
    write_label(labels, label, &truth);
    return is_written;
}

int
main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_cases DIR\n");
        return 2;
    }
    if (mkdir(argv[1], 0777) != 0 && errno != EEXIST) {
        perror(argv[1]);
        return 1;
    }
    FILE *labels = create(argv[1], "labels", ".json");
    if (!labels)
        return 1;
    bool is_written = true;
    fprintf(labels, "{\"schema\": \"drystone.cases/1\",\n \"cases\": [");
    for (size_t i = 0; i < case_count() && is_written; i++)
        is_written = make_one(argv[1], labels, i);
    fprintf(labels, "\n ]}\n");
    return fclose(labels) == 0 && is_written ? 0 : 1;
}
