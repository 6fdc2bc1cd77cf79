/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A machine whose every file holds some of these bytes. The first says what is wanted, the
 * rest are lines; which lines a file has follows from its name. Whatever they say, findings
 * come out that are whole, and changes that are allowed.
 */
#include "support/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/doctor/doctor_inside.h"

#define FILES_MAX 4
#define NAMES_MAX 12
#define NAME_BYTES_MAX 40

struct lines {
    const char *bytes;
    size_t size;
    size_t at[FILES_MAX]; /* of open files; SIZE_MAX: not open */
    size_t end[FILES_MAX];
};

static void
require(int condition)
{
    if (!condition)
        abort();
}

static uint32_t
hash_of(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

static int
fuzz_open(void *self, const char *path)
{
    struct lines *l = self;
    uint32_t h = hash_of(path);
    int file = 0;
    while (file < FILES_MAX && l->at[file] != SIZE_MAX)
        file++;
    require(file < FILES_MAX);
    if (l->size == 0 || h % 16 == 0)
        return -ENOENT;
    /* From the beginning of some line, for some lines. */
    size_t at = h % l->size;
    while (at > 0 && l->bytes[at - 1] != '\n')
        at--;
    size_t end = at;
    for (uint32_t i = 0; i <= h / 65536 % 4 && end < l->size; i++) {
        const char *newline = memchr(l->bytes + end, '\n', l->size - end);
        end = newline ? (size_t)(newline - l->bytes) + 1 : l->size;
    }
    l->at[file] = at;
    l->end[file] = end;
    return file;
}

static ssize_t
fuzz_read(void *self, int file, char *bytes, size_t capacity)
{
    struct lines *l = self;
    size_t n = l->end[file] - l->at[file];
    n = n < capacity ? n : capacity;
    memcpy(bytes, l->bytes + l->at[file], n);
    l->at[file] += n;
    return (ssize_t)n;
}

static void
fuzz_close(void *self, int file)
{
    struct lines *l = self;
    l->at[file] = SIZE_MAX;
}

/* Its first lines are names too. */
static int
fuzz_list(void *self, const char *path, int (*entry)(void *to, const char *name),
          void *to)
{
    const struct lines *l = self;
    char name[NAME_BYTES_MAX];
    size_t at = 0;
    (void)path;
    for (int i = 0; i < NAMES_MAX && at < l->size; i++) {
        const char *newline = memchr(l->bytes + at, '\n', l->size - at);
        size_t n = newline ? (size_t)(newline - l->bytes) - at : l->size - at;
        size_t kept = n < sizeof name ? n : sizeof name - 1;
        memcpy(name, l->bytes + at, kept);
        name[kept] = '\0';
        at += n + 1;
        if (entry(to, name))
            break;
    }
    return 0;
}

static void
check(const struct dry_doctor *doctor)
{
    for (size_t i = 0; i < dry_doctor_get_finding_count(doctor); i++) {
        struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
        dry_doctor_get_finding(doctor, i, &f);
        require(strlen(f.id) && strlen(f.title) && strlen(f.why) && strlen(f.is));
        require(f.verdict < DRY_DOCTOR_COULD_BE_BETTER || strlen(f.should_be));
        for (size_t j = 0; j < f.change_count; j++) {
            struct dry_doctor_change c = DRY_INIT(struct dry_doctor_change);
            dry_doctor_get_change(doctor, f.first_change + j, &c);
            require(dry_doctor_may_write(c.path, c.old_value));
            require(dry_doctor_may_write(c.path, c.new_value));
        }
    }
    for (size_t i = 0; i < dry_doctor_get_row_count(doctor); i++) {
        struct dry_doctor_row row = DRY_INIT(struct dry_doctor_row);
        dry_doctor_get_row(doctor, i, &row);
        require(row.missing_count <= row.needed_count);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 1 << 16)
        return 0;
    char *value = calloc(size, 1);
    if (!value)
        return 0;
    memcpy(value, data + 1, size - 1);
    struct lines lines = {.bytes = (const char *)data + 1, .size = size - 1};
    memset(lines.at, 0xff, sizeof lines.at);
    struct dryi_kernel kernel;
    dryi_kernel_init(&kernel);
    kernel.open = fuzz_open;
    kernel.read = fuzz_read;
    kernel.close = fuzz_close;
    kernel.list = fuzz_list;
    kernel.self = &lines;
    const uint64_t needs[] = {UINT64_C(4) << 30, data[0]};
    const struct dry_doctor_variable variables[] = {{"MALLOC_CONF", value},
                                                    {"LD_PRELOAD", value},
                                                    {"GLIBC_TUNABLES", value},
                                                    {"OMP_NUM_THREADS", value},
                                                    {"PYTORCH_ALLOC_CONF", value}};
    struct dry_doctor_options options;
    dry_doctor_options_init(&options);
    options.root = "/fuzz";
    options.purpose = (enum dry_doctor_purpose)(data[0] % DRY_DOCTOR_PURPOSE_COUNT);
    options.node = data[0] / 4 % 4 - 1;
    options.needs_bytes = needs;
    options.need_count = data[0] / 16 % 3;
    options.process = data[0] / 8 % 2 ? 7 : 0;
    options.variables = data[0] & 128 ? variables : NULL;
    options.variable_count = data[0] & 128 ? 5 : 0;
    struct dry_doctor *doctor = NULL;
    if (dryi_doctor_create(&options, &kernel, &doctor, NULL) == DRY_OK)
        check(doctor);
    dry_doctor_destroy(doctor);
    free(value);
    return 0;
}
