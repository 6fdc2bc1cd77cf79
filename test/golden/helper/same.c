/* SPDX-License-Identifier: Apache-2.0 */

/*
 * same A B: whether two files, opened as the tool opens them, hold the same trace.
 * Exit: 0 they do; 1 they do not; 3 one cannot be read.
 */
#include <stdio.h>

#include "record/input.h"
#include "support/same_trace.h"

static struct dry_trace *
read_path(const char *path)
{
    struct input *in;
    struct dry_source source;
    struct dry_trace *trace = NULL;
    struct dry_error err = {0};
    enum dry_status status = input_open(path, UINT64_MAX, &in, &source, &err);
    if (status == DRY_OK) {
        status = dry_trace_read(&source, NULL, &trace, &err);
        input_close(in);
    }
    if (status != DRY_OK)
        fprintf(stderr, "same: byte %llu: %s\n", (unsigned long long)err.offset,
                err.text);
    return trace;
}

int
main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct dry_trace *a = read_path(argv[1]), *b = read_path(argv[2]);
    const char *what = a && b ? same_trace(a, b) : NULL;
    if (what)
        fprintf(stderr, "same: %s differs\n", what);
    int code = !a || !b ? 3 : what ? 1 : 0;
    dry_trace_destroy(a);
    dry_trace_destroy(b);
    return code;
}
