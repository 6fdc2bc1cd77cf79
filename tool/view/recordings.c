/* SPDX-License-Identifier: Apache-2.0 */
/* See recordings.h. */
#include "view/recordings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define ENGINE_BYTES_MAX (16 << 20)
#define PACKING_MAX 64 /* a file this many times larger than the limit is not tried */

/* Read a whole file of at most `most` bytes, which the caller frees. NULL: there is none. */
static unsigned char *
read_file(const char *path, size_t most, size_t *length)
{
    FILE *file = fopen(path, "rbe");
    long end = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    unsigned char *bytes = NULL;
    if (end > 0 && (size_t)end <= most && fseek(file, 0, SEEK_SET) == 0)
        bytes = malloc((size_t)end);
    if (bytes && fread(bytes, 1, (size_t)end, file) != (size_t)end) {
        free(bytes);
        bytes = NULL;
    }
    if (file)
        fclose(file);
    *length = bytes ? (size_t)end : 0;
    return bytes;
}

unsigned char *
recordings_find_engine(size_t *length)
{
    /* beside the command in a build, and where meson installs it; relative to the command */
    static const char *const places[] = {"drystone.html",
                                         DRYSTONE_LIBDIR "/drystone/drystone.html"};
    char self[PATH_BYTES / 2], path[PATH_BYTES];
    ssize_t count = readlink("/proc/self/exe", self, sizeof self - 1);
    self[count < 0 ? 0 : count] = '\0';
    char *slash = strrchr(self, '/');
    unsigned char *bytes = NULL;
    if (slash)
        slash[1] = '\0';
    for (size_t i = 0; slash && !bytes && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s", places[i][0] == '/' ? "" : self, places[i]);
        bytes = read_file(path, ENGINE_BYTES_MAX, length);
        if (bytes && !html_has_engine(&(struct html){bytes, *length})) {
            free(bytes);
            bytes = NULL;
        }
    }
    return bytes;
}

static size_t
pack_file(const struct view_file *file, size_t number, size_t most,
          struct html_answers *recordings)
{
    char key[PATH_BYTES];
    const char *slash = strrchr(file->path, '/');
    size_t count, length = 0;
    unsigned char *bytes = read_file(file->path, most * PACKING_MAX, &count);
    char *text = bytes ? html_pack(bytes, count, &length) : NULL;
    free(bytes);
    snprintf(key, sizeof key, "%zu/%s", number, slash ? slash + 1 : file->path);
    if (text && length <= most && html_answers_add(recordings, key, text, length))
        return length;
    free(text);
    return 0;
}

size_t
recordings_pack(const struct view *view, size_t most, struct html_answers *recordings)
{
    size_t used = 0;
    for (size_t i = 0; most > 0 && i < view->file_count; i++) {
        size_t length = pack_file(&view->files[i], i, most - used, recordings);
        used += length;
        if (length == 0) {
            html_answers_finish(recordings);
            return 0;
        }
    }
    return used;
}
