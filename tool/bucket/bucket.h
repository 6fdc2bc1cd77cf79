/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_BUCKET_H
#define TOOL_BUCKET_H

/*
 * A bucket: its address and the credentials for it, from environment variables that the
 * AWS tools use:
 *
 *     AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL     a store other than Amazon's; http or https
 *     AWS_REGION, AWS_DEFAULT_REGION
 *     AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *     AWS_PROFILE                               the section of the files
 *     AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE
 *     AWS_MAX_ATTEMPTS                          attempts before giving up
 *
 * Unset variables are read from ~/.aws/credentials and ~/.aws/config. Without a key,
 * requests are not signed, which public buckets allow. A key, its secret and its token
 * come from one source.
 *
 * Threads    Any, if no thread changes the environment.
 */

#include <drystone/status.h>

#include "bucket/object_name.h"

/* Return a variable of the environment, as getenv() does. */
typedef char *bucket_environment(const char *name);

struct bucket {
    char name[OBJECT_BUCKET_BYTES];
    char endpoint[1024]; /* "" for Amazon's */
    char region[64];
    char key_id[256]; /* "": requests are not signed */
    char secret[1024];
    char token[8192]; /* "" if there is none */
    unsigned attempt_max;
};

/* Find a bucket's settings. FORMAT if one is invalid; the text has no secrets. */
DRY_CHECK_RESULT enum dry_status bucket_open(struct bucket *bucket, const char *name,
                                             bucket_environment *get,
                                             struct dry_error *err);

/*
 * Write the URL of an object. With `key` NULL, write the URL of the bucket with `query`.
 * The caller frees the result; NULL: memory ran out.
 */
char *bucket_write_url(const struct bucket *bucket, const char *key, const char *query);

/* Escape all but letters, digits and "-._~". The caller frees the result. */
char *bucket_escape(const char *text);

#endif
