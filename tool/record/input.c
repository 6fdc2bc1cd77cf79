/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Layers of dry_source, each reading from the one before:
 *
 *     file or object -> gzip or zstd, if the first bytes say so -> HTML -> JSON, likewise
 *
 * File and stream share struct chunk, a buffer filled by one side and emptied by the
 * other. So the first bytes can be examined without consuming them.
 */
#include "record/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/fail.h"
#include "bucket/object.h"
#include "bucket/object_name.h"
#include "record/byte_hash.h"
#include "record/html_source.h"
#include "record/json_source.h"
#include "record/nsight.h"

#define CHUNK_BYTES ((size_t)256 << 10)
#define PEEKED_BYTES ((size_t)32 << 10)
#define UNFOLDING_MAX 100                        /* unpacked bytes for each packed one */
#define UNPACKED_BYTES_FREE (UINT64_C(16) << 20) /* allowed at any ratio */

struct chunk {
    unsigned char *bytes;
    size_t at, end;
};

enum packing { PLAIN, GZIP, ZSTD };

struct input {
    int fd;
    bool owns_fd;
    struct object *object; /* used instead of fd; NULL for a file */
    bool is_file_at_end;
    bool is_at_fault;
    bool does_hash;
    struct byte_hash hash;           /* hash of the bytes counted by read_bytes */
    uint64_t file_bytes, read_bytes; /* read_bytes: of the file, into `packed` */
    uint64_t unpacked_bytes;
    enum packing packing;
    bool has_zlib;
    bool is_member_open; /* a gzip member or zstd frame is incomplete */
    z_stream zlib;
    ZSTD_DStream *zstd;
    struct chunk packed;   /* bytes as in the file */
    struct chunk unpacked; /* bytes examined to detect HTML */
    struct html_source *html;
    struct chunk content; /* bytes examined to detect JSON */
    struct json_source *json;
    struct input_description about; /* its format: the layers in use */
};

static const char *const packing_names[] = {[GZIP] = "gzip", [ZSTD] = "zstd"};

static enum dry_status
fail_stream(struct input *in, struct dry_error *err, const char *what)
{
    uint64_t byte = in->read_bytes - (in->packed.end - in->packed.at);
    in->is_at_fault = true;
    return fail_at(err, DRY_ERR_FORMAT, byte, "%s stream broken at byte %llu: %s",
                   packing_names[in->packing], (unsigned long long)byte, what);
}

/* --- the file --- */

static enum dry_status
read_descriptor(struct input *in, void *buffer, size_t capacity, size_t *got,
                struct dry_error *err)
{
    ssize_t count;
    do {
        count = read(in->fd, buffer, capacity);
    } while (count < 0 && errno == EINTR);
    if (count < 0)
        return fail_at(err, DRY_ERR_SYSTEM, in->read_bytes, "cannot read: %s",
                       strerror(errno));
    *got = (size_t)count;
    return DRY_OK;
}

static enum dry_status
read_file(struct input *in, void *buffer, size_t capacity, size_t *got,
          struct dry_error *err)
{
    enum dry_status status = in->object
                                 ? object_read(in->object, buffer, capacity, got, err)
                                 : read_descriptor(in, buffer, capacity, got, err);
    if (status != DRY_OK) {
        in->is_at_fault = true;
        return status;
    }
    in->is_file_at_end = *got == 0;
    in->read_bytes += *got;
    if (in->does_hash)
        byte_hash_add(&in->hash, buffer, *got);
    return DRY_OK;
}

/* Read more packed bytes after those left. If none are left then, the file has ended. */
static enum dry_status
fill_packed(struct input *in, struct dry_error *err)
{
    struct chunk *c = &in->packed;
    memmove(c->bytes, c->bytes + c->at, c->end - c->at);
    c->end -= c->at;
    c->at = 0;
    size_t got = 0;
    enum dry_status status =
        read_file(in, c->bytes + c->end, CHUNK_BYTES - c->end, &got, err);
    c->end += got;
    return status;
}

/* Read until `count` bytes are there or the file ends. Pipes deliver few at a time. */
static enum dry_status
fill_packed_to(struct input *in, size_t count, struct dry_error *err)
{
    enum dry_status status = DRY_OK;
    while (status == DRY_OK && in->packed.end - in->packed.at < count &&
           !in->is_file_at_end)
        status = fill_packed(in, err);
    return status;
}

static size_t
take(struct chunk *c, void *buffer, size_t capacity)
{
    size_t count = c->end - c->at < capacity ? c->end - c->at : capacity;
    if (count)
        memcpy(buffer, c->bytes + c->at, count);
    c->at += count;
    return count;
}

/* --- gzip and zstd --- */

static bool
is_gzip(const struct chunk *c)
{
    return c->end - c->at >= 2 && memcmp(c->bytes + c->at, "\x1f\x8b", 2) == 0;
}

/*
 * Between members or frames: begin the next, or skip zeros that pad gzip files on tapes,
 * or leave is_member_open false at the end.
 */
static enum dry_status
begin_member(struct input *in, struct dry_error *err)
{
    struct chunk *c = &in->packed;
    for (;;) {
        enum dry_status status = fill_packed_to(in, 2, err);
        if (status != DRY_OK || c->at == c->end)
            return status;
        if (in->packing == ZSTD || is_gzip(c))
            break;
        if (c->bytes[c->at] != 0)
            return fail_stream(in, err, "bytes after its end that are no second stream");
        c->at++;
    }
    if (in->packing == GZIP)
        inflateReset(&in->zlib);
    in->is_member_open = true;
    return DRY_OK;
}

static enum dry_status
inflate_some(struct input *in, struct dry_error *err)
{
    struct chunk *c = &in->packed;
    in->zlib.next_in = c->bytes + c->at;
    in->zlib.avail_in = (unsigned)(c->end - c->at);
    int result = inflate(&in->zlib, Z_NO_FLUSH);
    c->at = c->end - in->zlib.avail_in;
    if (result == Z_STREAM_END)
        in->is_member_open = false;
    else if (result == Z_MEM_ERROR)
        return fail_memory(err, "no memory to unpack gzip");
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return fail_stream(in, err, in->zlib.msg ? in->zlib.msg : "not gzip's format");
    return DRY_OK;
}

static enum dry_status
decompress_some(struct input *in, void *buffer, size_t capacity, size_t *got,
                struct dry_error *err)
{
    struct chunk *c = &in->packed;
    ZSTD_inBuffer from = {c->bytes, c->end, c->at};
    ZSTD_outBuffer to = {buffer, capacity, 0};
    size_t result = ZSTD_decompressStream(in->zstd, &to, &from);
    c->at = from.pos;
    *got = to.pos;
    if (ZSTD_isError(result))
        return fail_stream(in, err, ZSTD_getErrorName(result));
    in->is_member_open = result != 0;
    return DRY_OK;
}

/*
 * Refuse an implausible ratio before it costs memory. Recordings of ratio 60 were seen;
 * deflate packs zeros 1,000 times.
 */
static enum dry_status
check_unfolding(struct input *in, struct dry_error *err)
{
    uint64_t packed = in->read_bytes - (in->packed.end - in->packed.at);
    if (in->unpacked_bytes <= UNPACKED_BYTES_FREE ||
        in->unpacked_bytes / UNFOLDING_MAX <= packed)
        return DRY_OK;
    return fail_at(err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                   "it unpacks to over %d times its size, as no recording does; unpack "
                   "it by hand if it is one",
                   UNFOLDING_MAX);
}

/* Call the unpacker once. *got may be 0 before the end. */
static enum dry_status
unpack_some(struct input *in, void *buffer, size_t capacity, size_t *got,
            struct dry_error *err)
{
    if (in->packing == ZSTD)
        return decompress_some(in, buffer, capacity, got, err);
    size_t wanted_bytes = capacity < CHUNK_BYTES ? capacity : CHUNK_BYTES;
    in->zlib.next_out = buffer;
    in->zlib.avail_out = (unsigned)wanted_bytes;
    enum dry_status status = inflate_some(in, err);
    *got = wanted_bytes - in->zlib.avail_out;
    return status;
}

/*
 * Fill `buffer` with unpacked bytes. Bytes that the unpacker holds come first. A member
 * that is incomplete at the end of the file is an error.
 */
static enum dry_status
unpack(struct input *in, void *buffer, size_t capacity, size_t *got,
       struct dry_error *err)
{
    enum dry_status status = DRY_OK;
    *got = 0;
    while (status == DRY_OK && *got == 0) {
        if (!in->is_member_open)
            status = begin_member(in, err);
        if (status == DRY_OK && !in->is_member_open)
            return DRY_OK;
        if (status == DRY_OK)
            status = unpack_some(in, buffer, capacity, got, err);
        in->unpacked_bytes += *got;
        if (status == DRY_OK)
            status = check_unfolding(in, err);
        if (status != DRY_OK || *got || in->packed.at < in->packed.end)
            continue;
        if (in->is_file_at_end && in->is_member_open)
            return fail_stream(in, err, "it ends too early, the file was cut off");
        status = fill_packed(in, err);
    }
    return status;
}

/* Read the bytes of the file, unpacked. */
static enum dry_status
read_unpacked(void *self, void *buffer, size_t capacity, size_t *got,
              struct dry_error *err)
{
    struct input *in = self;
    *got = take(&in->unpacked, buffer, capacity);
    if (*got)
        return DRY_OK;
    if (in->packing != PLAIN)
        return unpack(in, buffer, capacity, got, err);
    *got = take(&in->packed, buffer, capacity);
    return *got ? DRY_OK : read_file(in, buffer, capacity, got, err);
}

/* Read the bytes of a pickle, a text or JSON, perhaps out of a page. */
static enum dry_status
read_content(void *self, void *buffer, size_t capacity, size_t *got,
             struct dry_error *err)
{
    struct input *in = self;
    *got = take(&in->content, buffer, capacity);
    if (*got)
        return DRY_OK;
    if (!in->html)
        return read_unpacked(in, buffer, capacity, got, err);
    enum dry_status status = html_source_read(in->html, buffer, capacity, got, err);
    in->is_at_fault |= html_source_is_at_fault(in->html);
    return status;
}

/* --- opening --- */

static enum dry_status
open_object(struct input *in, const char *path, struct dry_error *err)
{
    enum dry_status status = object_open(path, &in->object, err);
    if (status == DRY_OK)
        in->file_bytes = object_get_bytes(in->object);
    return status;
}

static enum dry_status
open_descriptor(struct input *in, const char *path, struct dry_error *err)
{
    struct stat info;
    in->owns_fd = strcmp(path, "-") != 0;
    in->fd = in->owns_fd ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (in->fd < 0 || fstat(in->fd, &info) < 0)
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "cannot open: %s",
                       strerror(errno));
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET,
                       "it is a folder; drystone fleet reads the recordings in a folder");
    }
    in->file_bytes = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    return DRY_OK;
}

static enum dry_status
open_file(struct input *in, const char *path, struct dry_error *err)
{
    enum dry_status status = object_is_name(path) ? open_object(in, path, err)
                                                  : open_descriptor(in, path, err);
    if (status != DRY_OK)
        return status;
    in->packed.bytes = malloc(CHUNK_BYTES);
    if (!in->packed.bytes)
        return fail_memory(err, "no memory to read a file");
    return fill_packed_to(in, 4, err);
}

/* Add the name of a layer to those in use. */
static void
add_format(struct input *in, const char *name)
{
    char *format = in->about.format;
    size_t length = strlen(format);
    snprintf(format + length, sizeof in->about.format - length, "%s%s",
             length ? ", " : "", name);
}

static enum dry_status
open_packing(struct input *in, struct dry_error *err)
{
    const struct chunk *c = &in->packed;
    bool has_memory = true;
    if (is_gzip(c)) {
        in->packing = GZIP;
        in->has_zlib = inflateInit2(&in->zlib, 15 + 16) == Z_OK; /* 16: gzip's header */
        in->is_member_open = true;
        has_memory = in->has_zlib;
    } else if (c->end - c->at >= 4 && memcmp(c->bytes, "\x28\xb5\x2f\xfd", 4) == 0) {
        in->packing = ZSTD;
        in->zstd = ZSTD_createDStream();
        in->is_member_open = true;
        has_memory = in->zstd != NULL;
    }
    if (in->packing != PLAIN)
        add_format(in, packing_names[in->packing]);
    if (has_memory)
        return DRY_OK;
    return fail_memory(err, "no memory to unpack a file");
}

/* Read first bytes into `chunk`, to examine them. `read` takes them from there later. */
static enum dry_status
peek(struct input *in, const struct dry_source *source, struct chunk *chunk,
     struct dry_error *err)
{
    unsigned char *bytes = malloc(CHUNK_BYTES);
    if (!bytes)
        return fail_memory(err, "no memory to read a file");
    size_t count = 0, got = 1;
    enum dry_status status = DRY_OK;
    while (status == DRY_OK && got > 0 && count < PEEKED_BYTES) {
        got = 0;
        status = source->read(in, bytes + count, CHUNK_BYTES - count, &got, err);
        count += got;
    }
    *chunk = (struct chunk){.bytes = bytes, .end = count};
    return status;
}

static enum dry_status
open_html(struct input *in, struct dry_error *err)
{
    struct dry_source page = {.read = read_unpacked, .self = in};
    enum dry_status status = peek(in, &page, &in->unpacked, err);
    if (status != DRY_OK || !html_source_is_html(in->unpacked.bytes, in->unpacked.end))
        return status;
    add_format(in, "HTML");
    status = html_source_create(&page, &in->html, err);
    in->is_at_fault = status != DRY_OK;
    return status;
}

/* Return whether JSON begins there that is no profiler's trace, which the library reads itself: it may
   be large. A UTF-8 byte order mark before JSON is then taken. */
static bool
take_mark_of_json(struct chunk *c)
{
    static const char profile[] = "\"traceEvents\"";
    size_t peeked = c->end < PEEKED_BYTES ? c->end : PEEKED_BYTES;
    bool has_mark = c->end >= 3 && memcmp(c->bytes, "\xef\xbb\xbf", 3) == 0;
    size_t begin = has_mark ? 3 : 0, i = begin;
    while (i < c->end && strchr(" \t\r\n", c->bytes[i]) && c->bytes[i])
        i++;
    bool is_json = i < c->end && (c->bytes[i] == '{' || c->bytes[i] == '[');
    if (is_json && c->bytes[i] == '{' && i < peeked)
        is_json = !memmem(c->bytes + i, peeked - i, profile, sizeof profile - 1);
    c->at = is_json ? begin : 0;
    return is_json;
}

static enum dry_status
open_json(struct input *in, uint64_t memory_bytes_max, struct dry_error *err)
{
    struct dry_source text = {.read = read_content, .self = in};
    enum dry_status status = peek(in, &text, &in->content, err);
    in->about.is_database = nsight_is_database(in->content.bytes, in->content.end);
    if (status != DRY_OK || !take_mark_of_json(&in->content))
        return status;
    add_format(in, "JSON");
    status = json_source_create(&text, memory_bytes_max, &in->json, err);
    in->is_at_fault = status != DRY_OK;
    return status;
}

static enum dry_status
open_all(struct input *in, const char *path, uint64_t memory_bytes_max,
         struct dry_error *err)
{
    enum dry_status status = open_file(in, path, err);
    if (status == DRY_OK)
        status = open_packing(in, err);
    if (status == DRY_OK)
        status = open_html(in, err);
    if (status == DRY_OK)
        status = open_json(in, memory_bytes_max, err);
    return status;
}

static enum dry_status
create(struct input **created, bool does_hash, const char *path,
       uint64_t memory_bytes_max, struct dry_error *err)
{
    struct input *in = calloc(1, sizeof *in);
    if (!in)
        return fail_memory(err, "no memory to read a file");
    in->fd = -1;
    in->does_hash = does_hash;
    byte_hash_begin(&in->hash);
    enum dry_status status = open_all(in, path, memory_bytes_max, err);
    if (status == DRY_OK)
        *created = in;
    else
        input_close(in);
    return status;
}

static void
set_source(struct input *in, struct dry_source *source)
{
    *source = in->json ? (struct dry_source){.read = json_source_read, .self = in->json}
                       : (struct dry_source){.read = read_content, .self = in};
}

enum dry_status
input_open(const char *path, uint64_t memory_bytes_max, struct input **in,
           struct dry_source *source, struct dry_error *err)
{
    enum dry_status status = create(in, false, path, memory_bytes_max, err);
    if (status == DRY_OK)
        set_source(*in, source);
    return status;
}

enum dry_status
input_open_hashed(const char *path, uint64_t memory_bytes_max, struct input **in,
                  struct dry_source *source, struct dry_error *err)
{
    enum dry_status status = create(in, true, path, memory_bytes_max, err);
    if (status == DRY_OK)
        set_source(*in, source);
    return status;
}

enum dry_status
input_read_content(struct input *in, struct input_content *content, struct dry_error *err)
{
    enum dry_status status = DRY_OK;
    while (status == DRY_OK && !in->is_file_at_end) {
        in->packed.at = in->packed.end = 0;
        status = fill_packed(in, err);
    }
    *content = (struct input_content){in->read_bytes, byte_hash_end(&in->hash)};
    return status;
}

void
input_close(struct input *in)
{
    if (!in)
        return;
    json_source_destroy(in->json);
    html_source_destroy(in->html);
    if (in->has_zlib)
        inflateEnd(&in->zlib);
    ZSTD_freeDStream(in->zstd);
    free(in->packed.bytes);
    free(in->unpacked.bytes);
    free(in->content.bytes);
    object_close(in->object);
    if (in->owns_fd && in->fd >= 0)
        close(in->fd);
    free(in);
}

void
input_describe(const struct input *in, struct input_description *description)
{
    *description = in->about;
    description->is_unpacked = in->packing != PLAIN || in->html;
    description->is_converted = in->json != NULL;
    description->is_at_fault = in->is_at_fault;
    description->file_bytes = in->file_bytes;
    description->consumed_bytes = in->read_bytes - (in->packed.end - in->packed.at);
    description->stamp = in->object ? object_get_stamp(in->object) : 0;
}
