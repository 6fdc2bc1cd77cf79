/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REQUEST_H
#define TOOL_REQUEST_H

/*
 * Requests to a store, one after another, over a persistent connection. The caller pulls
 * the bytes of an answer: without reads, only the kernel's buffers fill.
 *
 *     status = request_send(request, &options, &err);
 *     while (status == DRY_OK && ... )
 *         status = request_read(request, buffer, sizeof buffer, &got, &err);
 *
 * Redirects are failures, so that no other host receives a signature. An answer with less
 * than 1 kB/s over 20 s of waiting is given up.
 *
 * Memory     A request holds 1.5 MiB, plus libcurl's memory for TLS.
 * Threads    One at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

#include "bucket/bucket.h"

#define REQUEST_ETAG_BYTES 256

struct request;

struct request_options {
    const char *url;
    uint64_t from;    /* first byte to read */
    const char *etag; /* require this version; "" for any */
};

/* The head of an answer. */
struct request_answer {
    bool has_length;
    uint64_t bytes;                /* size of the whole object */
    char etag[REQUEST_ETAG_BYTES]; /* "" if none, or longer than this */
};

/* Create a request. `bucket` must outlive it. UNSUPPORTED: there is no libcurl. */
DRY_CHECK_RESULT enum dry_status request_create(const struct bucket *bucket,
                                                struct request **request,
                                                struct dry_error *err);
/*
 * Send a request and wait for the head of its answer. The unread rest of an earlier
 * answer is dropped. Returns SYSTEM if the network or the store failed; the text tells
 * how.
 */
DRY_CHECK_RESULT enum dry_status request_send(struct request *request,
                                              const struct request_options *options,
                                              struct dry_error *err);
const struct request_answer *request_get_answer(const struct request *request);
/* Read the next bytes; *got is 0 at the end. */
DRY_CHECK_RESULT enum dry_status request_read(struct request *request, void *buffer,
                                              size_t capacity, size_t *got,
                                              struct dry_error *err);
/*
 * After a failure, wait until a retry may help; each wait is longer than the last.
 * Returns false if a retry cannot help, or if AWS_MAX_ATTEMPTS were made since
 * request_forgive().
 */
bool request_may_retry(struct request *request);
/* Return true if libcurl signs a query with "+" correctly; see CURL_PLUS_BROKEN_SINCE. */
bool request_signs_plus(const struct request *request);
/* Reset the count of attempts, because the last one made progress. */
void request_forgive(struct request *request);
unsigned request_count_attempts(const struct request *request);
/* Free a request, which may be NULL. */
void request_destroy(struct request *request);

#endif
