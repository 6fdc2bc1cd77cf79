/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The exporter about programs with any texts and numbers: each line of the text is a head or a
 * sample as the format has them, no series is there twice, and all labels are short and
 * printable. Any text as an Accept, as a Host and as an address is taken or refused.
 */
#include "support/fuzz.h"

#include <stdio.h>
#include <string.h>

#include "exporter/exporter_accept.h"
#include "exporter/exporter_label.h"
#include "exporter/exporter_rows.h"
#include "exporter/exporter_socket.h"
#include "exporter/exporter_text.h"

#define PROCESSES 3u
#define SOURCES 3u

/* --- programs ----------------------------------------------------------------------------- */

static void
take_text(struct fuzz_bytes *in, char *text, size_t left_bytes)
{
    size_t length = fuzz_next_byte(in) % left_bytes;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)fuzz_next_byte(in);
    text[length] = '\0';
}

static uint64_t
take_number(struct fuzz_bytes *in)
{
    uint8_t kind = fuzz_next_byte(in);
    uint64_t number = fuzz_next_byte(in);
    if (kind < 128)
        return number;
    return kind < 192 ? UINT64_MAX - number : number << (kind % 64);
}

static void
take_source(struct fuzz_bytes *in, struct watch_source *s)
{
    struct dry_live_source *page = &s->published;
    struct dry_live_detail *d = &page->detail;
    uint64_t *figures = &page->figures.reserved;
    page->kind = fuzz_next_byte(in) % 4;
    page->device = (int32_t)(fuzz_next_byte(in) % 4) - 1;
    take_text(in, page->name, sizeof page->name);
    take_text(in, page->uuid, sizeof page->uuid);
    for (size_t i = 0; i < sizeof page->figures / sizeof *figures; i++)
        figures[i] = take_number(in);
    d->at_ns = fuzz_next_byte(in) % 2;
    d->reserved = take_number(in);
    d->pending = take_number(in);
    d->releasable = take_number(in);
    d->stranded = take_number(in);
    d->largest_hole = take_number(in);
    d->lane_count = fuzz_next_byte(in) % 5;
    for (uint32_t i = 0; i < d->lane_count; i++)
        d->lanes[i] = (struct dry_live_lane){.stream = fuzz_next_byte(in) % 3,
                                             .pool.a = fuzz_next_byte(in) % 2,
                                             .reserved = take_number(in),
                                             .stranded = take_number(in)};
    s->device = fuzz_next_byte(in) % 2 ? 0 : WATCH_NO_DEVICE;
    s->limit = take_number(in);
    s->left_bytes = take_number(in);
    s->seconds_left = (double)take_number(in) - 2;
}

static void
take_process(struct fuzz_bytes *in, struct watch_process *p)
{
    p->state = fuzz_next_byte(in) % 4;
    p->process = fuzz_next_byte(in) % 3;
    take_text(in, p->name, sizeof p->name);
    take_text(in, p->program.labels, sizeof p->program.labels);
    p->program.rank = (int32_t)fuzz_next_byte(in) - 1;
    snprintf(p->file_name, sizeof p->file_name, "drystone-live-%u-1",
             fuzz_next_byte(in) % 2u);
    p->source_count = fuzz_next_byte(in) % (SOURCES + 1);
    for (size_t i = 0; i < p->source_count; i++)
        take_source(in, &p->sources[i]);
    p->use_count = fuzz_next_byte(in) % 3;
    for (size_t i = 0; i < p->use_count; i++)
        p->uses[i] = (struct watch_use){0, take_number(in)};
}

/* --- the text ----------------------------------------------------------------------------- */

static const char *
skip_name(const char *at)
{
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
    fuzz_require(length > 0);
    return at + length;
}

/* Skip `"value"`: printable, with the three escapes alone, and not too long. */
static const char *
skip_value(const char *at)
{
    size_t length = 0;
    fuzz_require(*at++ == '"');
    for (; *at != '"'; at++, length++) {
        fuzz_require((unsigned char)*at >= 0x20 && *at != 0x7f);
        if (*at == '\\')
            fuzz_require(*++at == '\\' || *at == '"');
    }
    fuzz_require(length > 0 && length <= EXPORTER_LABEL_BYTES);
    return at + 1;
}

static const char *
skip_labels(const char *at)
{
    do {
        at = skip_name(at + 1);
        fuzz_require(*at == '=');
        at = skip_value(at + 1);
    } while (*at == ',');
    fuzz_require(*at == '}');
    return at + 1;
}

/* Return the end of the series' name in a line. */
static const char *
check_sample(const char *line)
{
    const char *at = skip_name(line);
    if (*at == '{')
        at = skip_labels(at);
    const char *end = at;
    fuzz_require(*at++ == ' ');
    size_t length = strspn(at, "0123456789.");
    fuzz_require(length > 0 && at[length] == '\0');
    return end;
}

static int
compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
check_text(char *text, size_t length)
{
    static char *series[4096];
    size_t count = 0;
    fuzz_require(length > 0 && strlen(text) == length && text[length - 1] == '\n');
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        if (line[0] == '#')
            continue;
        fuzz_require(count < sizeof series / sizeof *series);
        series[count++] = line;
        line[check_sample(line) - line] = '\0';
    }
    qsort(series, count, sizeof *series, compare);
    for (size_t i = 1; i < count; i++)
        fuzz_require(strcmp(series[i - 1], series[i]) != 0);
}

static void
check_programs(struct fuzz_bytes *in)
{
    static struct watch_process processes[PROCESSES];
    static struct watch_source sources[PROCESSES][SOURCES];
    static struct watch_use uses[PROCESSES][2];
    struct watch_process *all[PROCESSES];
    struct watch_device device = {.total = take_number(in), .used = take_number(in)};
    struct watch watch = {.devices = &device, .device_count = 1, .processes = all};
    const struct exporter_counts counts = {.samples = 1};
    const struct exporter_bounds bounds = {1 + fuzz_next_byte(in) % PROCESSES,
                                           fuzz_next_byte(in) % 4};
    take_text(in, device.name, sizeof device.name);
    take_text(in, device.uuid, sizeof device.uuid);
    memset(processes, 0, sizeof processes);
    memset(sources, 0, sizeof sources);
    for (; watch.process_count < PROCESSES && in->left; watch.process_count++) {
        size_t i = watch.process_count;
        all[i] = &processes[i];
        all[i]->sources = sources[i];
        all[i]->uses = uses[i];
        take_process(in, all[i]);
        all[i]->process += 3 * i; /* the watch has a process once */
    }
    for (int format = EXPORTER_PROMETHEUS; format <= EXPORTER_OPENMETRICS; format++) {
        size_t length;
        char *text = exporter_write(&watch, &bounds, &counts,
                                    (enum exporter_format)format, &length);
        fuzz_require(text);
        check_text(text, length);
        free(text);
    }
}

/* --- requests ----------------------------------------------------------------------------- */

static void
check_request(const char *text)
{
    struct exporter_address address;
    static const char near[] = "0123456789abcdefABCDEF:.[]localhostLOCALHOST";
    enum exporter_format format = exporter_accept(text);
    fuzz_require(format == EXPORTER_PROMETHEUS || format == EXPORTER_OPENMETRICS);
    if (exporter_is_near_host(text))
        fuzz_require(text[strspn(text, near)] == '\0');
    if (exporter_read_address(text, &address))
        fuzz_require(address.length > 0 && exporter_is_near_host(text));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[512];
    struct fuzz_bytes in = {data, size};
    if (fuzz_next_byte(&in) % 2) {
        check_programs(&in);
        return 0;
    }
    size_t length = in.left < sizeof text ? in.left : sizeof text - 1;
    memcpy(text, in.data, length);
    text[length] = '\0';
    check_request(text);
    return 0;
}
