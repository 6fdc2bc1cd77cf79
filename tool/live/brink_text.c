/* SPDX-License-Identifier: Apache-2.0 */
/* See brink_text.h. */
#include "live/brink_text.h"

#include <string.h>
#include <time.h>

#include "base/json_out.h"
#include "live/live_summary.h"

static const char *
rule_name(enum brink_rule rule)
{
    static const char *const names[] = {"share", "retries", "growth", "hand"};
    return names[rule];
}

/* Write the current time in UTC: "2026-11-27T10:00:00Z". */
static void
write_time(char text[32])
{
    struct timespec now;
    struct tm parts;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    (void)strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* --- for people --------------------------------------------------------------------------- */

static void
write_name(const struct watch_process *p, char text[LIVE_TEXT_BYTES + 64])
{
    char name[LIVE_TEXT_BYTES], rank[32] = "";
    live_cut(name, p->name, 40);
    if (p->program.rank >= 0)
        (void)snprintf(rank, sizeof rank, " rank %d", (int)p->program.rank);
    (void)snprintf(text, LIVE_TEXT_BYTES + 64, "%llu %s%s",
                   (unsigned long long)live_process_number(p), name, rank);
}

static void
write_reason(const struct brink_event *e, char text[LIVE_TEXT_BYTES])
{
    char size[TERM_NUMBER_BYTES];
    uint64_t bytes = e->value < 9e18 ? (uint64_t)e->value : WATCH_UNKNOWN - 1;
    switch (e->rule) {
    case BRINK_SHARE:
        (void)snprintf(text, LIVE_TEXT_BYTES, "%.1f %% of the limit is taken; ",
                       e->value);
        break;
    case BRINK_RETRIES:
        (void)snprintf(text, LIVE_TEXT_BYTES, "%.1f retries a minute; ", e->value);
        break;
    case BRINK_GROWTH:
        (void)snprintf(text, LIVE_TEXT_BYTES, "grows by %s a minute; ",
                       term_format_bytes(bytes, size));
        break;
    case BRINK_HAND:
    default:
        text[0] = '\0';
    }
}

void
brink_text_write(const struct brink_event *event, bool is_short,
                 char text[BRINK_TEXT_BYTES])
{
    char name[LIVE_TEXT_BYTES + 64], reason[LIVE_TEXT_BYTES], all[BRINK_TEXT_BYTES];
    const char *path = event->path;
    if (is_short && path && strrchr(path, '/'))
        path = strrchr(path, '/') + 1;
    write_name(event->process, name);
    write_reason(event, reason);
    int length = 0;
    if (event->is_answer)
        length = snprintf(all, sizeof all, "%s: %s%s%s: %.1100s", name,
                          event->result == 0 ? "snapshot written" : "no snapshot",
                          *event->text ? ", " : "", event->text, path);
    else if (event->path)
        length = snprintf(all, sizeof all, "%s: %sasked for %.1100s", name, reason, path);
    else
        length = snprintf(all, sizeof all, "%s: %sno snapshot%s%s", name, reason,
                          event->why ? ", " : "", event->why ? event->why : "");
    size_t used = length < 0 ? 0 : (size_t)length;
    (void)term_make_printable(text, BRINK_TEXT_BYTES, all,
                              used < sizeof all ? used : sizeof all - 1);
}

void
brink_text_print(const struct brink_event *event, FILE *out)
{
    char time[32], text[BRINK_TEXT_BYTES];
    write_time(time);
    brink_text_write(event, false, text);
    fprintf(out, "%s %s\n", time, text);
}

/* --- for programs ------------------------------------------------------------------------- */

static json_t *
make_rank(const struct watch_process *p)
{
    return p->program.rank >= 0 ? json_integer(p->program.rank) : json_null();
}

bool
brink_json_print(const struct brink_event *event, FILE *out)
{
    char time[32];
    const struct watch_process *p = event->process;
    write_time(time);
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "schema", "drystone.live-event/1", "time",
        time, "event", event->is_answer ? "answered" : "crossed", "pid",
        json_out_number(live_process_number(p)), "name", json_out_string(p->name), "rank",
        make_rank(p), "path", json_out_string(event->path));
    int failed = -1;
    if (object && event->is_answer)
        failed = json_object_set_new(object, "result", json_integer(event->result)) ||
                 json_object_set_new(object, "text", json_out_string(event->text));
    else if (object)
        failed =
            json_object_set_new(object, "rule", json_string(rule_name(event->rule))) ||
            json_object_set_new(object, "value", json_real(event->value)) ||
            json_object_set_new(object, "threshold", json_real(event->at)) ||
            json_object_set_new(object, "why", json_out_string(event->why));
    failed = failed || json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(15)) ||
             fputc('\n', out) == EOF;
    json_decref(object);
    return !failed;
}
