/* SPDX-License-Identifier: Apache-2.0 */
/* The idea is in object.h; request.h does the network. */
#include "bucket/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/fnv.h"
#include "bucket/bucket.h"
#include "bucket/request.h"

#define FORGIVEN_BYTES (UINT64_C(8) << 20) /* so much progress resets the attempts */

struct object {
    struct bucket bucket;
    char *url;
    struct request *request;
    uint64_t at, bytes;
    uint64_t forgiven_at;
    char etag[REQUEST_ETAG_BYTES];
};

/* Add to the error text how many bytes were read, and how many attempts failed. */
static void
complete_error(const struct object *o, struct dry_error *err)
{
    char text[sizeof err->text], where[64] = "";
    unsigned attempts = o->request ? request_count_attempts(o->request) : 0;
    if (o->at > 0)
        snprintf(where, sizeof where, "after byte %llu of %llu, ",
                 (unsigned long long)o->at, (unsigned long long)o->bytes);
    memcpy(text, err->text, sizeof text);
    if (attempts > 1)
        snprintf(err->text, sizeof err->text, "%s%u attempts failed, the last: %.120s",
                 where, attempts, text);
    else if (o->at > 0)
        snprintf(err->text, sizeof err->text, "%s%.160s", where, text);
}

/* Request the remaining bytes. Retry while that may help. */
static enum dry_status
ask(struct object *o, struct dry_error *err)
{
    struct request_options options = {.url = o->url, .from = o->at, .etag = o->etag};
    enum dry_status status = request_send(o->request, &options, err);
    while (status == DRY_ERR_SYSTEM && request_may_retry(o->request))
        status = request_send(o->request, &options, err);
    return status;
}

/* Take size and version from the first answer; compare later answers with these. */
static enum dry_status
ask_and_check(struct object *o, struct dry_error *err)
{
    enum dry_status status = ask(o, err);
    if (status != DRY_OK)
        return status;
    const struct request_answer *answer = request_get_answer(o->request);
    if (!answer->has_length)
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET,
                       "the store does not say how many bytes it has");
    if (o->at > 0 && answer->bytes != o->bytes)
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET,
                       "it was changed while it was read");
    o->bytes = answer->bytes;
    memcpy(o->etag, answer->etag, sizeof o->etag);
    return DRY_OK;
}

/* Resume after a failure. Without an ETag the same version cannot be requested. */
static enum dry_status
go_on(struct object *o, struct dry_error *err)
{
    if (!request_may_retry(o->request))
        return DRY_ERR_SYSTEM;
    if (o->at > 0 && !*o->etag) {
        char why[sizeof err->text];
        memcpy(why, err->text, sizeof why);
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET,
                       "the store gives no ETag to go on by after: %.150s", why);
    }
    return ask_and_check(o, err);
}

enum dry_status
object_read(struct object *o, void *buffer, size_t capacity, size_t *got,
            struct dry_error *err)
{
    enum dry_status status = DRY_OK;
    *got = 0;
    while (o->at < o->bytes && status == DRY_OK && *got == 0) {
        status = request_read(o->request, buffer, capacity, got, err);
        if (status == DRY_ERR_SYSTEM)
            status = go_on(o, err);
        else if (status == DRY_OK && *got == 0)
            status = fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "it ends too early");
    }
    if (status != DRY_OK) {
        complete_error(o, err);
        return status;
    }
    o->at += *got;
    if (o->at - o->forgiven_at >= FORGIVEN_BYTES) {
        o->forgiven_at = o->at;
        request_forgive(o->request);
    }
    return DRY_OK;
}

static enum dry_status
open_name(struct object *o, const char *path, struct dry_error *err)
{
    struct object_name name;
    enum dry_status status = object_name_split(path, &name, err);
    if (status == DRY_OK && !*name.key)
        status = fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                         "a bucket, and no object in it: s3://BUCKET/KEY was expected");
    if (status == DRY_OK)
        status = bucket_open(&o->bucket, name.bucket, getenv, err);
    if (status == DRY_OK)
        status = request_create(&o->bucket, &o->request, err);
    if (status != DRY_OK)
        return status;
    o->url = bucket_write_url(&o->bucket, name.key, NULL);
    return o->url ? ask_and_check(o, err) : fail_memory(err, "no memory for a URL");
}

enum dry_status
object_open(const char *path, struct object **object, struct dry_error *err)
{
    struct object *o = calloc(1, sizeof *o);
    if (!o)
        return fail_memory(err, "no memory for an object");
    enum dry_status status = open_name(o, path, err);
    if (status != DRY_OK) {
        complete_error(o, err);
        object_close(o);
        return status;
    }
    *object = o;
    return DRY_OK;
}

uint64_t
object_get_bytes(const struct object *o)
{
    return o->bytes;
}

uint64_t
object_get_stamp(const struct object *o)
{
    return fnv_add_text(FNV_BEGIN, o->etag) ^ o->bytes;
}

void
object_close(struct object *o)
{
    if (!o)
        return;
    request_destroy(o->request);
    free(o->url);
    free(o);
}
