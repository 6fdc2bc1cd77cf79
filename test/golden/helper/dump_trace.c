/* SPDX-License-Identifier: Apache-2.0 */

/*
 * dump_trace FILE: a trace as lines that do not depend on its numbering, for
 * golden/pickle_read_compare.py. Texts and stacks are shown as their CRC-32, because the
 * recordings hold names of people. Exit: 0; 3 with the reader's words.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/trace.h>

struct dump {
    const struct dry_trace *trace;
    const struct dry_trace_view *view;
    uint32_t *stacks; /* CRC of each */
};

static enum dry_status
read_file(void *self, void *buffer, size_t capacity, size_t *got, struct dry_error *err)
{
    FILE *file = self;
    *got = fread(buffer, 1, capacity, file);
    if (*got || !ferror(file))
        return DRY_OK;
    *err = (struct dry_error){.status = DRY_ERR_SYSTEM, .text = "cannot read"};
    return DRY_ERR_SYSTEM;
}

/* As zlib's crc32(), a bit at a time. */
static uint32_t
crc32(uint32_t crc, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    crc = ~crc;
    while (count--) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (UINT32_C(0xedb88320) & (0u - (crc & 1)));
    }
    return ~crc;
}

static uint32_t
crc_string(const struct dump *d, uint32_t crc, uint32_t string)
{
    size_t length;
    const char *bytes = dry_trace_string(d->trace, string, &length);
    return bytes ? crc32(crc, bytes, length) : crc;
}

static uint32_t
crc_stack(const struct dump *d, uint32_t stack)
{
    size_t count;
    const uint32_t *ids = dry_trace_stack(d->trace, stack, &count);
    uint32_t crc = 0;
    for (size_t i = 0; i < count; i++) {
        const struct dry_frame *frame = &d->view->frames[ids[i]];
        if (frame->flags & DRY_FRAME_FORWARD)
            break; /* CPython's `frames` */
        char line[24];
        int length = snprintf(line, sizeof line, "|%u\n", frame->line);
        crc = crc_string(d, crc, frame->name);
        crc = crc32(crc, "|", 1);
        crc = crc_string(d, crc, frame->file);
        crc = crc32(crc, line, (size_t)length);
    }
    return crc;
}

static void
print_stack(const struct dump *d, uint32_t stack)
{
    if (stack == DRY_NONE)
        printf(" -");
    else
        printf(" %08" PRIx32, d->stacks[stack]);
}

static void
print_string(const struct dump *d, uint32_t string)
{
    if (string == DRY_NONE)
        printf(" -");
    else
        printf(" %08" PRIx32, crc_string(d, 0, string));
}

static void
print_lane(const struct dump *d, uint32_t id)
{
    const struct dry_lane *lane = &d->view->lanes[id];
    printf(" %" PRIu64, lane->stream);
    if (lane->pool_known)
        printf(" %" PRIu64 ",%" PRIu64, lane->pool_a, lane->pool_b);
    else
        printf(" -");
}

static void
print_event(const struct dump *d, int32_t device, size_t i)
{
    const struct dry_trace_view *v = d->view;
    const struct dry_note *note = dry_trace_note(d->trace, v->note[i]);
    const char *name = dry_action_name(v->action[i]);
    if (v->action[i] == DRY_ACTION_OTHER)
        name = dry_trace_string(d->trace, note->action_name, NULL);
    printf("event %d %s", device, name);
    if (note->flags & DRY_NOTE_NO_ADDR)
        printf(" -");
    else
        printf(" %" PRIu64, v->addr[i]);
    printf(" %" PRIu64, v->size[i]);
    print_lane(d, v->lane[i]);
    if (note->flags & DRY_NOTE_NO_TIME)
        printf(" -");
    else
        printf(" %" PRId64, v->time_us[i]);
    print_stack(d, v->stack[i]);
    print_string(d, note->compile_context);
    print_string(d, note->user_metadata);
    printf("\n");
}

static void
print_segment(const struct dump *d, const struct dry_trace_segment *s)
{
    static const char *const states[] = {"inactive", "active_allocated",
                                         "active_pending_free"};
    printf("segment %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s",
           s->device, s->address, s->total_size, s->allocated_size, s->active_size,
           s->requested_size, s->is_large ? "large" : "small");
    print_lane(d, s->lane);
    if (s->expandable_known)
        printf(" %d", s->is_expandable);
    else
        printf(" -");
    print_stack(d, s->stack);
    printf("\n");
    for (size_t i = 0; i < s->block_count; i++) {
        const struct dry_trace_block *b = &d->view->blocks[s->first_block + i];
        printf("block %" PRIu64 " %" PRIu64 " %" PRIu64 " %s", b->address, b->size,
               b->requested_size, states[b->state]);
        print_stack(d, b->stack);
        printf("\n");
    }
}

static void
print_settings(const struct dump *d)
{
    const struct dry_trace_settings *s = &d->view->settings;
    if (!d->view->has_settings)
        return;
    printf("settings");
    print_string(d, s->conf);
    printf(" %" PRId64 " %.17g %u", s->max_split_size, s->garbage_collection_threshold,
           s->expandable_segments);
    for (size_t i = 0; s->roundup_known && i < 16; i++)
        printf(" %" PRIu64, s->roundup_power2_divisions[i]);
    printf("\n");
}

static void
print_trace(const struct dump *d)
{
    const struct dry_trace_view *v = d->view;
    for (size_t i = 0; i < v->device_count; i++) {
        const struct dry_trace_device *device = &v->devices[i];
        for (size_t k = 0; k < device->event_count; k++)
            print_event(d, device->device, device->first_event + k);
    }
    for (size_t i = 0; i < v->segment_count; i++)
        print_segment(d, &v->segments[i]);
    for (size_t i = 0; i < v->annotation_count; i++) {
        const struct dry_trace_annotation *a = &v->annotations[i];
        printf("annotation %d %" PRId64, a->device, a->time_us);
        print_string(d, a->name);
        print_string(d, a->stage);
        printf("\n");
    }
    print_settings(d);
}

static void
dump(const struct dry_trace *trace)
{
    struct dump d = {.trace = trace, .view = dry_trace_get_view(trace)};
    d.stacks = calloc(d.view->stack_count + 1u, sizeof *d.stacks);
    if (!d.stacks)
        abort();
    for (uint32_t i = 0; i < d.view->stack_count; i++)
        d.stacks[i] = crc_stack(&d, i);
    print_trace(&d);
    free(d.stacks);
}

int
main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "dump_trace FILE: %s\n", strerror(errno));
        return 2;
    }
    struct dry_source source = {read_file, file};
    struct dry_trace *trace;
    struct dry_error err;
    enum dry_status status = dry_trace_read(&source, NULL, &trace, &err);
    fclose(file);
    if (status != DRY_OK) {
        fprintf(stderr, "dump_trace: byte %" PRIu64 ": %s\n", err.offset, err.text);
        return 3;
    }
    dump(trace);
    dry_trace_destroy(trace);
    return 0;
}
