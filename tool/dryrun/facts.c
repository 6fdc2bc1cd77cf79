/* SPDX-License-Identifier: Apache-2.0 */
/* See facts.h. Files are found by their suffixes. A malformed file is an error that names
   the file. */
#include "dryrun/facts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "base/json_in.h"
#include "base/report.h"
#include "base/term.h"

#define PATH_BYTES 4400

/* --- a process ---------------------------------------------------------------------------- */

static void
take_devices(struct json_in *in, const struct json_at *devices, struct facts_process *p)
{
    size_t count = devices->value ? json_in_list(in, devices) : 0;
    for (size_t i = 0; i < count; i++) {
        struct json_at device = json_in_element(devices, i);
        uint64_t peak = json_in_unsigned(in, json_in_key(&device, "reserved"));
        if (i > 0 && peak <= p->reserved_peak)
            continue;
        p->reserved_peak = peak;
        p->allocated_peak = json_in_unsigned(in, json_in_key(&device, "allocated"));
        p->requested_peak = json_in_unsigned(in, json_in_key(&device, "requested"));
        p->nccl_bytes = json_in_unsigned(in, json_in_key(&device, "nccl"));
        p->peak_step = json_in_unsigned(in, json_in_key(&device, "peak_step"));
    }
}

static const char *
get_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* Return a figure of an engine; 0: null, or not there. */
static uint64_t
get_figure(struct json_in *in, const struct json_at *engine, const char *key)
{
    struct json_at at = json_in_key(engine, key);
    return json_is_null(at.value) ? 0 : json_in_unsigned_or(in, at, 0);
}

static void
take_engine(struct json_in *in, const struct json_at *engine, struct facts_engine *e)
{
    double requests = json_number_value(json_object_get(engine->value, "requests"));
    *e = (struct facts_engine){
        .name = get_text(engine->value, "name"),
        .kv_bytes = get_figure(in, engine, "kv_bytes"),
        .kv_tokens = get_figure(in, engine, "kv_tokens"),
        .length = get_figure(in, engine, "length"),
        .weights_bytes = get_figure(in, engine, "weights_bytes"),
        .activation_bytes = get_figure(in, engine, "activation_bytes"),
        .outside_bytes = get_figure(in, engine, "outside_bytes"),
        .request_bytes = get_figure(in, engine, "request_bytes"),
        .asleep_bytes = get_figure(in, engine, "asleep_bytes"),
        .graph_bytes = get_figure(in, engine, "graph_bytes"),
        .total_bytes = get_figure(in, engine, "total_bytes"),
        .requests = requests >= 0 && requests < 1e15 ? (uint64_t)requests : 0,
        .assumed = get_text(engine->value, "assumed"),
        .utilization = json_number_value(json_object_get(engine->value, "utilization")),
    };
}

static void
take_facts(struct json_in *in, struct facts_process *p)
{
    const struct json_at root = {.value = p->json};
    struct json_at devices = json_in_key(&root, "devices");
    const char *rank = get_text(p->json, "rank");
    p->is_counted = devices.value != NULL;
    take_devices(in, &devices, p);
    p->step_count = json_in_unsigned(in, json_in_key(&root, "steps"));
    p->seconds = json_number_value(json_object_get(p->json, "seconds"));
    p->rank = rank ? strtoll(rank, NULL, 10) : NO_NUMBER;
    p->stopped = get_text(p->json, "stopped");
    p->repeats = get_text(p->json, "repeats");
    p->unseen = get_text(p->json, "unseen");
    p->torch = get_text(p->json, "torch");
    p->convolutions = get_text(p->json, "convolutions");
    p->refusal = get_text(p->json, "refusal");
    struct json_at engine = json_in_key(&root, "engine");
    if (json_is_object(engine.value))
        take_engine(in, &engine, &p->engine);
    p->error = get_text(json_object_get(p->json, "error"), "text");
    struct json_at oom = json_in_key(&root, "oom");
    p->has_oom = json_is_object(oom.value);
    if (p->has_oom)
        p->peak_step = json_in_unsigned(in, json_in_key(&oom, "step"));
    p->is_stuck = json_is_true(json_object_get(p->json, "stuck"));
    p->is_by_chance = json_is_true(json_object_get(p->json, "by_chance"));
}

static bool
ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}

static int
read_process(struct facts *facts, const char *command, const char *path)
{
    struct dry_error err;
    char *text = NULL;
    size_t length = 0;
    struct facts_process *more =
        realloc(facts->processes, (facts->process_count + 1) * sizeof *more);
    if (!more)
        return report_memory(command, path);
    facts->processes = more;
    struct facts_process *p = more + facts->process_count++;
    *p = (struct facts_process){.rank = NO_NUMBER};
    struct json_in in = {.err = &err};
    if (json_in_read_file(path, &text, &length, &err) != DRY_OK ||
        json_in_parse(text, length, &p->json, &err) != DRY_OK) {
        free(text);
        return report_error(command, path, &err);
    }
    free(text);
    take_facts(&in, p);
    if (in.status != DRY_OK)
        return report_error(command, path, &err);
    size_t stem = strlen(path) - strlen(".json");
    p->snapshot = malloc(stem + sizeof ".pickle");
    if (!p->snapshot)
        return report_memory(command, path);
    snprintf(p->snapshot, stem + sizeof ".pickle", "%.*s.pickle", (int)stem, path);
    if (access(p->snapshot, R_OK) != 0) {
        free(p->snapshot);
        p->snapshot = NULL;
    }
    return EXIT_FINE;
}

/* --- calls of what nobody wrote ----------------------------------------------------------- */

static bool
add_call(struct facts *facts, const char *name, uint64_t count)
{
    for (size_t i = 0; i < facts->call_count; i++) {
        if (strcmp(facts->calls[i].name, name) == 0) {
            facts->calls[i].count += count;
            return true;
        }
    }
    struct facts_call *more =
        realloc(facts->calls, (facts->call_count + 1) * sizeof *more);
    char *copy = strdup(name);
    if (more)
        facts->calls = more;
    if (!more || !copy) {
        free(copy);
        return false;
    }
    facts->calls[facts->call_count++] = (struct facts_call){copy, count};
    return true;
}

static int
read_calls(struct facts *facts, const char *command, const char *path)
{
    char line[300];
    FILE *in = fopen(path, "r");
    if (!in)
        return report_failure(command, path, EXIT_MACHINE, "%s", strerror(errno));
    bool has_memory = true;
    while (has_memory && fgets(line, sizeof line, in)) {
        char *name;
        uint64_t count = strtoull(line, &name, 10);
        name[strcspn(name, "\n")] = '\0';
        if (*name == ' ')
            has_memory = add_call(facts, name + 1, count);
    }
    fclose(in);
    return has_memory ? EXIT_FINE : report_memory(command, path);
}

static int
compare_calls(const void *a, const void *b)
{
    const struct facts_call *left = a, *right = b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return strcmp(left->name, right->name);
}

static int
compare_processes(const void *a, const void *b)
{
    const struct facts_process *left = a, *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (left->reserved_peak != right->reserved_peak)
        return left->reserved_peak < right->reserved_peak ? 1 : -1;
    return 0;
}

/* --- processes without facts ---------------------------------------------------------------- */

/* Take "FILE:LINE" from a line of faulthandler's. Lines of libraries only count if there is
   no other. */
static void
take_place(const char *line, char place[300], bool *is_own)
{
    char file[220], number[20];
    if (sscanf(line, " File \"%219[^\"]\", line %19[0-9]", file, number) != 2 || *is_own)
        return;
    bool is_library = strstr(file, "site-packages") || strstr(file, "/lib/python") ||
                      file[0] == '<' || strstr(file, "_drystone_");
    if (place[0] && is_library)
        return;
    snprintf(place, 300, "%s:%s", file, number);
    *is_own = !is_library;
}

/* Read PID.begun of a process, unless the process left PID.json. */
static void
read_begun(struct facts *facts, const char *path)
{
    char other[PATH_BYTES + 8], line[600], place[300] = "";
    int stem = (int)(strlen(path) - strlen(".begun"));
    bool is_own = false;
    snprintf(other, sizeof other, "%.*s.json", stem, path);
    if (access(other, R_OK) == 0)
        return;
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in))
        take_place(line, place, &is_own);
    if (in)
        fclose(in);
    snprintf(other, sizeof other, "%.*s.progress", stem, path);
    facts->lost.begun++;
    facts->lost.count += place[0] || access(other, R_OK) == 0;
    if (place[0])
        memcpy(facts->lost.place, place, sizeof place);
}

/* --- the folder --------------------------------------------------------------------------- */

static void
finish_process(struct facts_process *p)
{
    free(p->snapshot);
    json_decref(p->json);
}

/* Drop processes that reserved nothing on their device: Inductor's compile workers. */
static void
drop_idle(struct facts *facts)
{
    size_t kept = 0, busy = 0;
    for (size_t i = 0; i < facts->process_count; i++)
        busy += facts->processes[i].reserved_peak > 0;
    for (size_t i = 0; i < facts->process_count; i++) {
        struct facts_process *p = &facts->processes[i];
        if (busy > 0 && p->reserved_peak == 0 && !p->has_oom && !p->error)
            finish_process(p);
        else
            facts->processes[kept++] = *p;
    }
    facts->process_count = kept;
}

int
facts_read(struct facts *facts, const char *command, const char *out)
{
    *facts = (struct facts){0};
    DIR *folder = opendir(out);
    if (!folder)
        return report_failure(command, out, EXIT_MACHINE, "%s", strerror(errno));
    int code = EXIT_FINE;
    const struct dirent *entry;
    while (code == EXIT_FINE && (entry = readdir(folder)) != NULL) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", out, entry->d_name);
        if (ends_with(entry->d_name, ".json"))
            code = read_process(facts, command, path);
        else if (ends_with(entry->d_name, ".begun"))
            read_begun(facts, path);
        else if (strncmp(entry->d_name, "called.", 7) == 0)
            code = read_calls(facts, command, path);
    }
    closedir(folder);
    if (code != EXIT_FINE)
        return code;
    drop_idle(facts);
    if (facts->process_count > 0)
        qsort(facts->processes, facts->process_count, sizeof *facts->processes,
              compare_processes);
    if (facts->call_count > 0)
        qsort(facts->calls, facts->call_count, sizeof *facts->calls, compare_calls);
    for (size_t i = 1; i < facts->process_count; i++) {
        if (facts->processes[i].reserved_peak >
            facts->processes[facts->main].reserved_peak)
            facts->main = i;
    }
    return EXIT_FINE;
}

void
facts_write_error(const struct facts_process *process, size_t length, char *text,
                  size_t capacity)
{
    const json_t *error = json_object_get(process->json, "error");
    const char *kind = json_string_value(json_object_get(error, "kind")),
               *file = json_string_value(json_object_get(error, "file"));
    char raw[600];
    snprintf(raw, sizeof raw, "%.60s: %.*s (%.200s:%lld)", kind ? kind : "",
             (int)(length < 300 ? length : 300), process->error, file ? file : "?",
             (long long)json_integer_value(json_object_get(error, "line")));
    term_make_printable(text, capacity, raw, strlen(raw));
}

void
facts_finish(struct facts *facts)
{
    for (size_t i = 0; i < facts->process_count; i++)
        finish_process(&facts->processes[i]);
    for (size_t i = 0; i < facts->call_count; i++)
        free(facts->calls[i].name);
    free(facts->processes);
    free(facts->calls);
    *facts = (struct facts){0};
}
