/* SPDX-License-Identifier: Apache-2.0 */

/* Reads files under a root, where /proc/self may stand for another process. A long file
   passes through a small buffer; only the wanted lines are kept. */
#include "host/facts/facts_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host/facts/fact_text.h"
#include "host/facts/numa_maps_text.h"
#include "host/facts/smaps_text.h"

#define PATH_MAX_BYTES 2048
/* Stop at 1 GiB, since a file might never end; smaps of 100,000 mappings has 100 MiB. */
#define LONG_FILE_MAX (UINT64_C(1) << 30)

/* Open a file. Returns a negative errno, or -1 if the path is too long. */
static int
open_at(const struct dryi_facts *facts, const char *path)
{
    static const char own[] = "/proc/self/";
    char full[PATH_MAX_BYTES], folder[32] = "";
    if (facts->process && strncmp(path, own, sizeof own - 1) == 0) {
        snprintf(folder, sizeof folder, "/proc/%lld/", (long long)facts->process);
        path += sizeof own - 1;
    }
    int length = snprintf(full, sizeof full, "%s%s%s", facts->root, folder, path);
    if (length < 0 || (size_t)length >= sizeof full)
        return -1;
    return facts->kernel->open(facts->kernel->self, full);
}

/* Read up to the capacity or the end of the file. */
static bool
read_all(const struct dryi_facts *facts, int file, struct dryi_fact_file *to)
{
    const struct dryi_kernel *k = facts->kernel;
    to->length = 0;
    while (to->length < sizeof to->text) {
        ssize_t got =
            k->read(k->self, file, to->text + to->length, sizeof to->text - to->length);
        if (got < 0 || (size_t)got > sizeof to->text - to->length)
            return false;
        if (got == 0)
            break;
        to->length += (size_t)got;
    }
    return true;
}

static bool
read_file(const struct dryi_facts *facts, struct dryi_fact_file *to, const char *path)
{
    int file = open_at(facts, path);
    if (file < 0)
        return false;
    bool is_read = read_all(facts, file, to);
    facts->kernel->close(facts->kernel->self, file);
    return is_read;
}

bool
dryi_facts_read(const struct dryi_facts *facts, struct dryi_fact_file *file,
                const char *path, ...)
{
    char whole[PATH_MAX_BYTES];
    va_list arguments;
    va_start(arguments, path);
    int length = vsnprintf(whole, sizeof whole, path, arguments);
    va_end(arguments);
    return length >= 0 && (size_t)length < sizeof whole && read_file(facts, file, whole);
}

bool
dryi_facts_read_number(const struct dryi_facts *facts, uint64_t *number, const char *path,
                       ...)
{
    struct dryi_fact_file file;
    char whole[PATH_MAX_BYTES];
    va_list arguments;
    va_start(arguments, path);
    int length = vsnprintf(whole, sizeof whole, path, arguments);
    va_end(arguments);
    return length >= 0 && (size_t)length < sizeof whole &&
           read_file(facts, &file, whole) &&
           dryi_fact_number(file.text, file.length, number);
}

/* Call `take` with successive portions of a file under the root. */
static bool
walk(const struct dryi_facts *facts, const char *path,
     void (*take)(void *to, const char *text, size_t length), void *to)
{
    const struct dryi_kernel *k = facts->kernel;
    char text[4096];
    int file = open_at(facts, path);
    if (file < 0)
        return false;
    ssize_t got = 1;
    for (uint64_t sum = 0; sum < LONG_FILE_MAX; sum += (uint64_t)got) {
        got = k->read(k->self, file, text, sizeof text);
        if (got <= 0 || (size_t)got > sizeof text)
            break;
        take(to, text, (size_t)got);
    }
    k->close(k->self, file);
    return got == 0;
}

struct filter {
    struct dryi_fact_file *file; /* its text: the lines kept, then the line being read */
    size_t line_begin, used;
    bool is_too_long;
    bool keeps_rest, keeps_all; /* keeps_rest: keep all from a line with the word on;
                                   keeps_all: that line was found */
    const char *word;
};

static void
end_line(struct filter *f)
{
    char *line = f->file->text + f->line_begin;
    size_t length = f->used - f->line_begin;
    bool keeps = !f->is_too_long && length &&
                 (f->keeps_all || memmem(line, length, f->word, strlen(f->word)) != NULL);
    f->is_too_long = false;
    f->keeps_all = f->keeps_all || (keeps && f->keeps_rest);
    if (keeps && f->used < sizeof f->file->text) {
        f->file->text[f->used++] = '\n';
        f->line_begin = f->used;
    }
    f->used = f->line_begin;
}

static void
filter_take(void *to, const char *text, size_t length)
{
    struct filter *f = to;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n')
            end_line(f);
        else if (f->used < sizeof f->file->text)
            f->file->text[f->used++] = text[i];
        else
            f->is_too_long = true;
    }
}

static bool
read_filtered(const struct dryi_facts *facts, const char *path, struct filter *f)
{
    if (!walk(facts, path, filter_take, f))
        return false;
    end_line(f);
    f->file->length = f->line_begin;
    return true;
}

bool
dryi_facts_read_lines(const struct dryi_facts *facts, struct dryi_fact_file *file,
                      const char *path, const char *word)
{
    struct filter f = {.file = file, .word = word};
    return read_filtered(facts, path, &f);
}

bool
dryi_facts_read_from(const struct dryi_facts *facts, struct dryi_fact_file *file,
                     const char *path, const char *word)
{
    struct filter f = {.file = file, .word = word, .keeps_rest = true};
    return read_filtered(facts, path, &f);
}

static void
smaps_take(void *to, const char *text, size_t length)
{
    dryi_smaps_feed(to, text, length);
}

/* Walk a file of this process, ignoring the root: another machine's folders cannot
   contain it. */
static bool
walk_own(const struct dryi_facts *facts, const char *path,
         void (*take)(void *to, const char *text, size_t length), void *to)
{
    const struct dryi_facts here = {.kernel = facts->kernel, .root = ""};
    return walk(&here, path, take, to);
}

bool
dryi_facts_huge_bytes(const struct dryi_facts *facts, uint64_t address, uint64_t bytes,
                      uint64_t *huge_bytes)
{
    struct dryi_smaps smaps;
    dryi_smaps_init(&smaps, address, bytes);
    return walk_own(facts, "/proc/self/smaps", smaps_take, &smaps) &&
           dryi_smaps_end(&smaps, huge_bytes);
}

static void
numa_maps_take(void *to, const char *text, size_t length)
{
    dryi_numa_maps_feed(to, text, length);
}

bool
dryi_facts_node_bytes(const struct dryi_facts *facts, uint64_t address, uint64_t bytes,
                      void (*take)(void *to, int node, uint64_t bytes), void *to)
{
    struct dryi_numa_maps maps;
    dryi_numa_maps_init(&maps, address, bytes, take, to);
    return walk_own(facts, "/proc/self/numa_maps", numa_maps_take, &maps) &&
           dryi_numa_maps_end(&maps);
}
