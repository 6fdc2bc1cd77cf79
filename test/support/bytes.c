/* SPDX-License-Identifier: Apache-2.0 */
#include "support/bytes.h"
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum dry_status
read_bytes(void *self, void *buffer, size_t capacity, size_t *got, struct dry_error *err)
{
    (void)err;
    struct bytes_source *from = self;
    size_t count = from->count - from->at;
    if (count > capacity)
        count = capacity;
    if (from->step && count > from->step)
        count = from->step;
    if (count)
        memcpy(buffer, from->bytes + from->at, count);
    from->at += count;
    *got = count;
    return DRY_OK;
}

struct dry_source
bytes_source_init(struct bytes_source *from, const void *bytes, size_t count)
{
    *from = (struct bytes_source){.bytes = bytes, .count = count};
    return (struct dry_source){.read = read_bytes, .self = from};
}

struct dry_trace *
bytes_read_trace(const void *bytes, size_t count)
{
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, bytes, count);
    struct dry_trace *trace;
    struct dry_error err;
    if (dry_trace_read(&source, NULL, &trace, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return trace;
}

static enum dry_status
write_bytes(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    struct bytes_sink *to = self;
    to->calls++;
    if (to->left == 0 || to->failed) {
        if (to->failed)
            abort(); /* nothing is written after a failure */
        to->failed = true;
        if (err)
            *err = (struct dry_error){
                .status = DRY_ERR_SYSTEM, .os_errno = 28, .text = "no room left"};
        return DRY_ERR_SYSTEM;
    }
    to->left--;
    if (count > to->capacity - to->count) {
        to->capacity = to->capacity * 2 + count;
        to->bytes = realloc(to->bytes, to->capacity);
        if (!to->bytes)
            abort();
    }
    memcpy(to->bytes + to->count, bytes, count);
    to->count += count;
    return DRY_OK;
}

struct dry_sink
bytes_sink_init(struct bytes_sink *to, size_t writes)
{
    *to = (struct bytes_sink){.left = writes};
    return (struct dry_sink){.write = write_bytes, .self = to};
}

static enum dry_status
write_decision(void *self, const struct dry_decision *decision, struct dry_error *err)
{
    const struct dry_sink *sink = self;
    char line[DRY_DECISION_BYTES];
    return sink->write(sink->self, line, dry_decision_write(decision, line), err);
}

struct dry_decision_sink
bytes_sink_decisions(struct dry_sink *sink)
{
    return (struct dry_decision_sink){.take = write_decision, .self = sink};
}

void
bytes_sink_finish(struct bytes_sink *to)
{
    free(to->bytes);
    *to = (struct bytes_sink){0};
}

static unsigned char *
read_all(FILE *file, size_t *count)
{
    if (fseek(file, 0, SEEK_END) != 0)
        abort();
    long length = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(length > 0 ? (size_t)length : 1);
    if (length < 0 || !bytes)
        abort();
    *count = fread(bytes, 1, (size_t)length, file);
    return bytes;
}

unsigned char *
bytes_of_trace(const char *name, size_t *count)
{
    const char *folder = getenv("DRY_TEST_TRACES");
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", name);
    if (length < 0 || (size_t)length >= sizeof path)
        abort();
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    unsigned char *bytes = read_all(file, count);
    fclose(file);
    return bytes;
}
