/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "command.h"
#include "fail.h"
#include "report.h"

static int
report_unwritable(const struct output *out)
{
    return report_failure(out->command, out->path, EXIT_MACHINE, "cannot write: %s",
                          strerror(errno));
}

int
output_open(struct output *out, const char *command, const char *path)
{
    *out = (struct output){.command = command, .path = path};
    out->file = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    return out->file ? EXIT_FINE : report_unwritable(out);
}

static enum dry_status
write_file(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    if (fwrite(bytes, 1, count, self) == count)
        return DRY_OK;
    return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "cannot write: %s",
                   strerror(errno));
}

struct dry_sink
output_sink(struct output *out)
{
    return (struct dry_sink){.write = write_file, .self = out->file};
}

int
output_close(struct output *out, enum dry_status status, const struct dry_error *err)
{
    bool is_written = out->file == stdout || fclose(out->file) == 0;
    if (status != DRY_OK)
        return report_error(out->command, out->path, err);
    return is_written ? EXIT_FINE : report_unwritable(out);
}
