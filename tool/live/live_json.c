/* SPDX-License-Identifier: Apache-2.0 */

/* JSON is written directly, without building a tree. With many processes, ten documents a
   second are written, and building trees would cost more than reading the pages. */
#include "live/live_json.h"

#include <string.h>

#include "base/writer.h"
#include "live/live_summary.h"

/* --- pieces ------------------------------------------------------------------------------- */

/* Write a key after a comma. Requires that the object already has a member. */
static void
put_key(struct writer *w, const char *key)
{
    writer_put(w, ",\"");
    writer_put(w, key);
    writer_put(w, "\":");
}

/* Write a number. Values up to 2^63 - 1 stay exact integers. Larger ones occur only in
   hostile pages and become reals. */
static void
put_value(struct writer *w, uint64_t value)
{
    if (value <= INT64_MAX)
        writer_unsigned(w, value);
    else
        writer_format(w, "%.17g", (double)value);
}

static void
put_number(struct writer *w, const char *key, uint64_t value)
{
    put_key(w, key);
    if (value == WATCH_UNKNOWN)
        writer_put(w, "null");
    else
        put_value(w, value);
}

static void
put_text(struct writer *w, const char *key, const char *text)
{
    put_key(w, key);
    writer_json(w, text, text ? strlen(text) : 0);
}

static void
put_signed(struct writer *w, const char *key, bool is_known, int64_t value)
{
    put_key(w, key);
    if (is_known)
        writer_signed(w, value);
    else
        writer_put(w, "null");
}

static void
put_field(struct writer *w, const struct dry_field *field, const void *object)
{
    struct dry_field_value value;
    put_key(w, field->key);
    if (!dry_field_get(field, object, &value))
        writer_put(w, "null");
    else if (value.type == DRY_FIELD_REAL)
        writer_format(w, "%.3f", value.real);
    else if (field->unit == DRY_UNIT_NANOSECONDS)
        writer_format(w, "%.3f", (double)value.number / 1000);
    else
        put_value(w, value.number);
}

/* Write numbers by their table. */
static void
put_fields(struct writer *w, struct dry_fields fields, const void *object)
{
    for (size_t i = 0; i < fields.count; i++)
        put_field(w, &fields.list[i], object);
}

/* --- sources ------------------------------------------------------------------------------ */

static void
put_lane(struct writer *w, const struct dry_live_lane *lane)
{
    writer_put(w, "{\"stream\":");
    put_value(w, lane->stream);
    writer_put(w, ",\"pool\":[");
    put_value(w, lane->pool.a);
    writer_char(w, ',');
    put_value(w, lane->pool.b);
    writer_char(w, ']');
    put_fields(w, dry_live_get_fields(DRY_LIVE_LANE), lane);
    writer_char(w, '}');
}

static void
put_detail(struct writer *w, const struct dry_live_detail *d, uint64_t now_ns)
{
    put_key(w, "detail");
    if (!d->at_ns) {
        writer_put(w, "null");
        return;
    }
    writer_format(w, "{\"age_s\":%.3f", live_detail_age(d, now_ns));
    put_fields(w, dry_live_get_fields(DRY_LIVE_DETAIL), d);
    put_key(w, "more_lanes");
    writer_put(w, d->more_lanes ? "true" : "false");
    put_key(w, "lanes");
    writer_char(w, '[');
    for (uint32_t i = 0; i < d->lane_count; i++) {
        writer_put(w, i ? "," : "");
        put_lane(w, &d->lanes[i]);
    }
    writer_put(w, "],\"lines\":[");
    for (uint32_t i = 0; i < d->line_count; i++) {
        writer_put(w, i ? ",{\"bytes\":" : "{\"bytes\":");
        put_value(w, d->lines[i].bytes);
        put_number(w, "count", d->lines[i].count);
        put_text(w, "line", d->lines[i].text);
        writer_char(w, '}');
    }
    writer_put(w, "]}");
}

static void
put_source(struct writer *w, const struct watch_source *s, uint64_t now_ns)
{
    writer_put(w, "{\"name\":");
    writer_json(w, s->published.name, strlen(s->published.name));
    put_text(w, "kind", live_kind_name(s->published.kind));
    put_signed(w, "device", s->device != WATCH_NO_DEVICE, (int64_t)s->device);
    put_signed(w, "number", s->published.device >= 0, s->published.device);
    put_text(w, "uuid", s->published.uuid[0] ? s->published.uuid : NULL);
    put_number(w, "updates", s->published.updates);
    put_fields(w, dry_live_get_fields(DRY_LIVE_FIGURES), &s->published.figures);
    put_fields(w, watch_source_fields, s);
    put_detail(w, &s->published.detail, now_ns);
    writer_char(w, '}');
}

/* --- processes ---------------------------------------------------------------------------- */

static void
put_uses(struct writer *w, const struct watch_process *p)
{
    put_key(w, "driver");
    writer_char(w, '[');
    for (size_t i = 0; i < p->use_count; i++) {
        writer_put(w, i ? ",{\"device\":" : "{\"device\":");
        writer_unsigned(w, p->uses[i].device);
        put_number(w, "bytes", p->uses[i].bytes);
        writer_char(w, '}');
    }
    writer_char(w, ']');
}

static void
put_process(struct writer *w, const struct watch_process *p, uint64_t now_ns)
{
    const struct dry_live_program *program = &p->program;
    bool has_program = p->state == WATCH_LIVE || p->state == WATCH_ENDED;
    uint64_t number = live_process_number(p);
    writer_put(w, "{\"state\":");
    writer_json(w, live_state_name(p->state), strlen(live_state_name(p->state)));
    put_signed(w, "pid", number > 0 && number <= INT64_MAX, (int64_t)number);
    put_text(w, "name", p->name);
    put_signed(w, "rank", has_program && program->rank >= 0, program->rank);
    put_signed(w, "world", has_program && program->world >= 0, program->world);
    put_text(w, "labels", has_program ? program->labels : NULL);
    put_text(w, "page", p->file_name[0] ? p->file_name : NULL);
    put_text(w, "why", p->state == WATCH_WRONG ? p->why : NULL);
    put_number(w, "reserved_bytes", watch_reserved(p));
    put_uses(w, p);
    put_key(w, "sources");
    writer_char(w, '[');
    for (size_t i = 0; i < p->source_count; i++) {
        writer_put(w, i ? "," : "");
        put_source(w, &p->sources[i], now_ns);
    }
    writer_put(w, "]}");
}

/* --- the document ------------------------------------------------------------------------- */

static void
put_devices(struct writer *w, const struct watch *watch)
{
    put_key(w, "devices");
    writer_char(w, '[');
    for (size_t i = 0; i < watch->device_count; i++) {
        const struct watch_device *d = &watch->devices[i];
        writer_put(w, i ? ",{\"name\":" : "{\"name\":");
        writer_json(w, d->name, strlen(d->name));
        put_text(w, "uuid", d->uuid);
        put_fields(w, watch_device_fields, d);
        writer_char(w, '}');
    }
    writer_char(w, ']');
}

static enum dry_status
write_file(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    (void)err;
    return fwrite(bytes, 1, count, self) == count ? DRY_OK : DRY_ERR_SYSTEM;
}

bool
live_json_print(const struct watch *watch, const char *wanted, FILE *out)
{
    struct writer w;
    struct dry_sink sink = {.write = write_file, .self = out};
    bool is_first = true;
    writer_init(&w, &sink, NULL);
    writer_put(&w, "{\"schema\":\"drystone.live/1\"");
    put_number(&w, "at_ns", watch->now_ns);
    put_text(&w, "no_driver", watch->no_driver);
    put_devices(&w, watch);
    put_number(&w, "left_out", watch->left_out);
    put_key(&w, "processes");
    writer_char(&w, '[');
    for (size_t i = 0; i < watch->process_count; i++) {
        if (!live_is_wanted(watch->processes[i], wanted))
            continue;
        writer_put(&w, is_first ? "" : ",");
        put_process(&w, watch->processes[i], watch->now_ns);
        is_first = false;
    }
    writer_put(&w, "]}\n");
    return writer_finish(&w, NULL) == DRY_OK;
}
