/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bucket/bucket.h"

/* The environment of a test: names and values by turns. */
static const char *const *variables;

static char *
get(const char *name)
{
    static char values[4][1024]; /* by turns: a caller may hold several */
    static unsigned turn;
    for (const char *const *v = variables; *v; v += 2) {
        if (strcmp(v[0], name) == 0) {
            char *value = values[turn++ % 4];
            snprintf(value, sizeof values[0], "%s", v[1]);
            return value;
        }
    }
    return NULL;
}

#define OPEN(bucket, name, ...)                                                          \
    (variables = (const char *const[]){"HOME", "/nonexistent", __VA_ARGS__, NULL},       \
     bucket_open((bucket), (name), get, &err))

static void
assert_url(const struct bucket *bucket, const char *key, const char *query,
           const char *expected)
{
    char *url = bucket_write_url(bucket, key, query);
    assert_string_equal(url, expected);
    free(url);
}

static void
buckets_of_amazon_have_hosts(void **state)
{
    (void)state;
    struct bucket b;
    struct dry_error err;
    assert_int_equal(OPEN(&b, "runs", "AWS_REGION", ""), DRY_OK);
    assert_url(&b, "a/b", NULL, "https://runs.s3.us-east-1.amazonaws.com/a/b");
    assert_url(&b, NULL, "x=1", "https://runs.s3.us-east-1.amazonaws.com/?x=1");
    assert_int_equal(OPEN(&b, "runs", "AWS_DEFAULT_REGION", "cn-north-1"), DRY_OK);
    assert_url(&b, "/a", NULL, "https://runs.s3.cn-north-1.amazonaws.com.cn//a");
    assert_int_equal(OPEN(&b, "my.runs", "AWS_REGION", "eu-west-1"), DRY_OK);
    assert_url(&b, "a", NULL, "https://s3.eu-west-1.amazonaws.com/my.runs/a");
    assert_url(&b, NULL, "x=1", "https://s3.eu-west-1.amazonaws.com/my.runs?x=1");
}

static void
other_stores_have_paths(void **state)
{
    (void)state;
    struct bucket b;
    struct dry_error err;
    assert_int_equal(OPEN(&b, "runs", "AWS_ENDPOINT_URL", "http://other",
                          "AWS_ENDPOINT_URL_S3", "http://[::1]:9000/s3//"),
                     DRY_OK);
    assert_url(&b, "a/../b", NULL, "http://[::1]:9000/s3/runs/a/../b");
    assert_url(&b, NULL, "x=1", "http://[::1]:9000/s3/runs?x=1");
    assert_url(&b, " +%?#&=\n\xff~-._", NULL,
               "http://[::1]:9000/s3/runs/%20%2B%25%3F%23%26%3D%0A%FF~-._");
    char *escaped = bucket_escape("t/+=");
    assert_string_equal(escaped, "t%2F%2B%3D");
    free(escaped);
}

static void
values_are_taken_or_refused(void **state)
{
    (void)state;
    struct bucket b;
    struct dry_error err;
    assert_int_equal(OPEN(&b, "runs", "AWS_ACCESS_KEY_ID", "k", "AWS_SECRET_ACCESS_KEY",
                          "s", "AWS_MAX_ATTEMPTS", "9"),
                     DRY_OK);
    assert_string_equal(b.key_id, "k");
    assert_string_equal(b.secret, "s");
    assert_string_equal(b.token, "");
    assert_int_equal(b.attempt_max, 9);
    assert_int_equal(
        OPEN(&b, "runs", "AWS_SECRET_ACCESS_KEY", "s", "AWS_SESSION_TOKEN", "t"), DRY_OK);
    assert_true(!*b.key_id && !*b.secret && !*b.token);
    const char *const bad[][2] = {
        {"AWS_ENDPOINT_URL", "ftp://x"},
        {"AWS_ENDPOINT_URL", "http://"},
        {"AWS_ENDPOINT_URL", "http:///x"},
        {"AWS_ENDPOINT_URL", "http://me@x"},
        {"AWS_ENDPOINT_URL", "http://x y"},
        {"AWS_REGION", "eu.west"},
        {"AWS_REGION", "EU"},
        {"AWS_ACCESS_KEY_ID", "x"},
        {"AWS_ACCESS_KEY_ID", "x\r\nHost: y"},
        {"AWS_MAX_ATTEMPTS", "101"},
        {"AWS_MAX_ATTEMPTS", "-1"},
        {"AWS_MAX_ATTEMPTS", "2x"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(OPEN(&b, "runs", bad[i][0], bad[i][1]), DRY_ERR_FORMAT);
}

/* A pipe has its bytes once, as a file that is replaced meanwhile has its first version. */
static void
a_file_of_credentials_is_read_once(void **state)
{
    static const char text[] = "[other]\naws_access_key_id = no\n[default]\n"
                               "aws_access_key_id = old\naws_secret_access_key = s=1\n"
                               "aws_access_key_id=k\n# aws_session_token = no\n"
                               "  aws_session_token = no\naws_session_token = t\n";
    (void)state;
    struct bucket b;
    struct dry_error err;
    char path[32];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, sizeof text - 1), sizeof text - 1);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(OPEN(&b, "runs", "AWS_SHARED_CREDENTIALS_FILE", path), DRY_OK);
    close(ends[0]);
    assert_string_equal(b.key_id, "k");
    assert_string_equal(b.secret, "s=1");
    assert_string_equal(b.token, "t");
}

static void
names_are_split(void **state)
{
    (void)state;
    struct object_name name;
    struct dry_error err;
    assert_int_equal(object_name_split("s3://a/b//c", &name, &err), DRY_OK);
    assert_string_equal(name.bucket, "a");
    assert_string_equal(name.key, "b//c");
    assert_int_equal(object_name_split("s3://a.b-c_D", &name, &err), DRY_OK);
    assert_string_equal(name.key, "");
    char longest[300] = "s3://";
    memset(longest + 5, 'a', 255);
    assert_int_equal(object_name_split(longest, &name, &err), DRY_OK);
    longest[260] = 'a';
    const char *const bad[] = {"s3://",      "s3:///a",    "s3://-a",
                               "s3://a b/c", "s3://a@b/c", "s3://a:1/c",
                               "s3://\xff",  "S3://a/b",   longest};
    for (size_t i = 0; i < sizeof bad / sizeof(const char *); i++)
        assert_int_equal(object_name_split(bad[i], &name, &err), DRY_ERR_FORMAT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_of_amazon_have_hosts),
        cmocka_unit_test(other_stores_have_paths),
        cmocka_unit_test(values_are_taken_or_refused),
        cmocka_unit_test(a_file_of_credentials_is_read_once),
        cmocka_unit_test(names_are_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
