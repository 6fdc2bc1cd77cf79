/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a file of the tool's: unpacked, perhaps JSON or SQLite, then read, in little memory.
 * The file lies in memory; the tool opens it by name, like any other.
 */
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/load.h"

#define MEMORY_BYTES_MAX (UINT64_C(64) << 20)

static void
require(int condition)
{
    if (!condition)
        abort();
}

static int
write_file(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz_input", MFD_CLOEXEC);
    require(fd >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t count = write(fd, data + done, size - done);
        require(count > 0);
        done += (size_t)count;
    }
    return fd;
}

static void
check_error(enum dry_status status, const struct dry_error *err)
{
    require(err->status == status && err->text[0]);
    require(memchr(err->text, '\0', sizeof err->text) != NULL);
}

static void
check_description(const struct input *in, size_t size, bool is_read)
{
    struct input_description d;
    input_describe(in, &d);
    require(d.file_bytes == size && d.consumed_bytes <= size);
    require(!is_read || !d.is_at_fault);
    require(!is_read || !d.is_unpacked || d.consumed_bytes > 0);
}

static void
read_input(struct input *in, const struct dry_source *source, size_t size)
{
    struct dry_trace *trace = NULL;
    struct dry_error err = {0};
    struct dry_trace_options options;
    dry_trace_options_init(&options);
    options.memory_bytes_max = MEMORY_BYTES_MAX;
    enum dry_status status = dry_trace_read(source, &options, &trace, &err);
    check_description(in, size, status == DRY_OK);
    require((status == DRY_OK) == (trace != NULL));
    if (status != DRY_OK)
        check_error(status, &err);
    dry_trace_destroy(trace);
}

/* Read the file as commands do, which read SQLite by its name. */
static void
load_file(const char *path)
{
    struct dry_trace *trace = NULL;
    struct dry_error err = {0};
    struct input_content content;
    enum dry_status status =
        load_trace_quietly(path, MEMORY_BYTES_MAX, &trace, &content, &err);
    require((status == DRY_OK) == (trace != NULL));
    if (status != DRY_OK)
        check_error(status, &err);
    dry_trace_destroy(trace);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = write_file(data, size);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct input *in = NULL;
    struct dry_source source;
    struct dry_error err = {0};
    enum dry_status status = input_open(path, MEMORY_BYTES_MAX, &in, &source, &err);
    if (status == DRY_OK)
        read_input(in, &source, size);
    else
        check_error(status, &err);
    require(status == DRY_OK || in == NULL);
    input_close(in);
    load_file(path);
    close(fd);
    return 0;
}
