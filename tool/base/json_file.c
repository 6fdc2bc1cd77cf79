/* SPDX-License-Identifier: Apache-2.0 */
/* JSON into a file; see json_out.h. */
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "base/output.h"
#include "base/report.h"

int
json_out_write(const char *command, const char *path, json_t *root, size_t flags)
{
    struct output out;
    struct dry_error err = {.text = ""};
    char *text = json_out_dump(root, flags);
    if (!text)
        return report_memory(command, path);
    int code = output_open(&out, command, path);
    if (code == EXIT_FINE) {
        struct dry_sink sink = output_sink(&out);
        enum dry_status status = sink.write(sink.self, text, strlen(text), &err);
        if (status == DRY_OK)
            status = sink.write(sink.self, "\n", 1, &err);
        code = output_close(&out, status, &err);
    }
    free(text);
    return code;
}
