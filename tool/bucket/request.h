/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REQUEST_H
#define TOOL_REQUEST_H

/*
 * Requests to a store, one after the other, over a connection that is kept. The bytes of an
 * answer are pulled: while nobody reads, nothing is received but what the kernel takes.
 *
 *     status = request_send(request, &wish, &err);
 *     while (status == DRY_OK && ... )
 *         status = request_read(request, buffer, sizeof buffer, &got, &err);
 *
 * No answer sends the request elsewhere: redirects are failures, so that nobody else gets a
 * signature. Below 1 kB/s over 20 s of waiting an answer is given up.
 *
 * Memory     A request holds 1.5 MiB, and what libcurl takes for TLS.
 * Threads    One at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

#include "bucket/bucket.h"

#define REQUEST_ETAG_BYTES 256

struct request;

struct request_wish {
    const char *url;
    uint64_t from;    /* the first byte that is wanted */
    const char *etag; /* wanted only if it is this one still; "": any */
};

/* The head of an answer. */
struct request_answer {
    bool has_length;
    uint64_t bytes;                /* of the whole object */
    char etag[REQUEST_ETAG_BYTES]; /* "": none, or one that is too long */
};

/* `bucket` must outlive the request. UNSUPPORTED: there is no libcurl. */
DRY_CHECK_RESULT enum dry_status request_create(const struct bucket *bucket,
                                                struct request **request,
                                                struct dry_error *err);
/*
 * Ask, and wait for the head of the answer. An answer that was not read to its end is left.
 * SYSTEM: the network or the store failed; the text says how.
 */
DRY_CHECK_RESULT enum dry_status request_send(struct request *request,
                                              const struct request_wish *wish,
                                              struct dry_error *err);
const struct request_answer *request_get_answer(const struct request *request);
/* Read on; *got is 0 at the end. */
DRY_CHECK_RESULT enum dry_status request_read(struct request *request, void *buffer,
                                              size_t capacity, size_t *got,
                                              struct dry_error *err);
/*
 * Wait until asking again may help after a failure, longer from time to time. False: it
 * cannot help, or was tried as often as AWS_MAX_ATTEMPTS says since request_forgive().
 */
bool request_may_retry(struct request *request);
/* Tell whether libcurl signs a query with a "+" in it right: CURL_PLUS_BROKEN_SINCE. */
bool request_signs_plus(const struct request *request);
/* Count attempts from here: the last one brought something. */
void request_forgive(struct request *request);
unsigned request_count_attempts(const struct request *request);
/* NULL is fine. */
void request_destroy(struct request *request);

#endif
