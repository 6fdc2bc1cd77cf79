/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rewrite IN OUT: read a trace and write it again. For golden/roundtrip.py, which compares
 * what Python sees in both. Exit: 0; 3 with the reader's or writer's words.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <drystone/trace.h>

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

static enum dry_status
write_file(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    if (fwrite(bytes, 1, count, self) == count)
        return DRY_OK;
    *err = (struct dry_error){.status = DRY_ERR_SYSTEM, .text = "cannot write"};
    return DRY_ERR_SYSTEM;
}

static enum dry_status
rewrite(FILE *from, FILE *to, struct dry_error *err)
{
    struct dry_source source = {read_file, from};
    struct dry_sink sink = {write_file, to};
    struct dry_trace *trace;
    enum dry_status status = dry_trace_read(&source, NULL, &trace, err);
    if (status != DRY_OK)
        return status;
    status = dry_trace_write(trace, &sink, err);
    dry_trace_destroy(trace);
    return status;
}

int
main(int argc, char **argv)
{
    struct dry_error err;
    FILE *from = argc == 3 ? fopen(argv[1], "rb") : NULL;
    FILE *to = from ? fopen(argv[2], "wb") : NULL;
    if (!to) {
        fprintf(stderr, "rewrite IN OUT: %s\n", strerror(errno));
        return 2;
    }
    enum dry_status status = rewrite(from, to, &err);
    if (status != DRY_OK)
        fprintf(stderr, "rewrite: byte %llu: %s\n", (unsigned long long)err.offset,
                err.text);
    fclose(from);
    return fclose(to) == 0 && status == DRY_OK ? 0 : 3;
}
