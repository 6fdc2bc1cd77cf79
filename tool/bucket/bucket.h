/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_BUCKET_H
#define TOOL_BUCKET_H

/*
 * A bucket: where it is, and as whom to ask. The environment says so, by the names that the
 * AWS tools read:
 *
 *     AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL     a store that is not Amazon's; http or https
 *     AWS_REGION, AWS_DEFAULT_REGION
 *     AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *     AWS_PROFILE                               the section of the files
 *     AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE
 *     AWS_MAX_ATTEMPTS                          how often to ask before giving up
 *
 * The files ~/.aws/credentials and ~/.aws/config say the rest. Without a key nobody signs,
 * which public buckets allow. A key, its secret and its token are of one source.
 *
 * Threads    Any, if nobody changes the environment.
 */

#include <drystone/status.h>

#include "bucket/object_name.h"

/* Tell a variable of the environment, as getenv() does. */
typedef char *bucket_environment(const char *name);

struct bucket {
    char name[OBJECT_BUCKET_BYTES];
    char endpoint[1024]; /* "": Amazon's */
    char region[64];
    char key_id[256]; /* "": nobody signs */
    char secret[1024];
    char token[8192]; /* "": none */
    unsigned attempt_max;
};

/* FORMAT: a value of the environment cannot be meant so. The text has none of the secrets. */
DRY_CHECK_RESULT enum dry_status bucket_open(struct bucket *bucket, const char *name,
                                             bucket_environment *get,
                                             struct dry_error *err);

/*
 * Write the URL of an object; `key` NULL: of the bucket, with `query`. The result is the
 * caller's to free; NULL: no memory.
 */
char *bucket_write_url(const struct bucket *bucket, const char *key, const char *query);

/* Return `text` with all but letters, digits and "-._~" escaped, the caller's to free. */
char *bucket_escape(const char *text);

#endif
