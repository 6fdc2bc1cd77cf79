/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in bucket.h. Source of Amazon's host names: "Amazon Simple Storage Service
 * endpoints and quotas" in the AWS General Reference.
 */
#include "bucket/bucket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "bucket/profile.h"

#define ATTEMPTS 6u
#define ATTEMPTS_MAX 100u
#define SETTINGS_MAX 3u /* read from one file */

static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
static const char unreserved[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

/* --- values ------------------------------------------------------------------------------- */

/* A setting: its variables (`other` may be NULL), and its key in a file. */
struct setting {
    const char *variable, *other, *key;
    char *value;
    size_t capacity;
};

struct files {
    char *credentials, *config; /* paths, or NULL */
    char *section, *config_section;
};

/* Return a variable; an empty one counts as not set. */
static const char *
get_variable(bucket_environment *get, const char *name)
{
    const char *value = name ? get(name) : NULL;
    return value && *value ? value : NULL;
}

/* Store a value. Blanks and control characters are refused: they could end a header. */
static enum dry_status
take(const struct setting *s, const char *value, struct dry_error *err)
{
    size_t length = strlen(value);
    for (size_t i = 0; i < length && length < s->capacity; i++) {
        if ((unsigned char)value[i] <= 0x20 || (unsigned char)value[i] >= 0x7f)
            return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                           "%s has a character that it cannot have", s->variable);
    }
    if (length >= s->capacity)
        return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       "%s has more than %zu characters", s->variable, s->capacity - 1);
    memcpy(s->value, value, length + 1);
    return DRY_OK;
}

/* Return the value of a setting in the environment, or NULL. */
static const char *
look_up(const struct setting *s, bucket_environment *get)
{
    const char *value = get_variable(get, s->variable);
    return value ? value : get_variable(get, s->other);
}

/* Take settings from the environment, and missing ones from `file` unless NULL. */
static enum dry_status
take_settings(const struct setting *settings, size_t count, const char *file,
              const char *section, bucket_environment *get, struct dry_error *err)
{
    struct profile_entry found[SETTINGS_MAX] = {0};
    bool is_whole = true;
    for (size_t i = 0; i < count; i++) {
        found[i].key = settings[i].key;
        is_whole &= look_up(&settings[i], get) != NULL;
    }
    if (file && !is_whole)
        profile_find(file, section, found, count);
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < count; i++) {
        const char *value = look_up(&settings[i], get);
        value = value ? value : found[i].value;
        if (value && status == DRY_OK)
            status = take(&settings[i], value, err);
        free(found[i].value);
    }
    return status;
}

/* --- address and credentials -------------------------------------------------------------- */

static char *
find_file(bucket_environment *get, const char *variable, const char *name)
{
    char *path = NULL;
    const char *named = get_variable(get, variable), *home = get_variable(get, "HOME");
    if (named)
        return strdup(named);
    return home && asprintf(&path, "%s/.aws/%s", home, name) >= 0 ? path : NULL;
}

static void
find_files(struct files *f, bucket_environment *get)
{
    const char *profile = get_variable(get, "AWS_PROFILE");
    bool is_default = !profile || strcmp(profile, "default") == 0;
    f->credentials = find_file(get, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
    f->config = find_file(get, "AWS_CONFIG_FILE", "config");
    f->section = strdup(is_default ? "default" : profile);
    if (asprintf(&f->config_section, "%s%s", is_default ? "" : "profile ",
                 is_default ? "default" : profile) < 0)
        f->config_section = NULL;
}

static void
drop_files(struct files *f)
{
    free(f->credentials);
    free(f->config);
    free(f->section);
    free(f->config_section);
}

static char *
get_nothing(const char *name)
{
    (void)name;
    return NULL;
}

/* Take the credentials. A key from the environment needs its secret from there, too. */
static enum dry_status
take_credentials(struct bucket *b, const struct files *f, bucket_environment *get,
                 struct dry_error *err)
{
    const struct setting settings[SETTINGS_MAX] = {
        {"AWS_ACCESS_KEY_ID", NULL, "aws_access_key_id", b->key_id, sizeof b->key_id},
        {"AWS_SECRET_ACCESS_KEY", NULL, "aws_secret_access_key", b->secret,
         sizeof b->secret},
        {"AWS_SESSION_TOKEN", NULL, "aws_session_token", b->token, sizeof b->token},
    };
    bool is_of_environment = get_variable(get, settings[0].variable) != NULL;
    const char *file = is_of_environment ? NULL : f->credentials;
    get = is_of_environment ? get : get_nothing;
    enum dry_status status =
        take_settings(settings, SETTINGS_MAX, file, f->section, get, err);
    if (status == DRY_OK && *b->key_id && !*b->secret)
        return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       "there is an AWS_ACCESS_KEY_ID, and no AWS_SECRET_ACCESS_KEY");
    return status;
}

/* Check the endpoint. Its '?', '#' or '@' would hide the bucket, which is appended. */
static enum dry_status
check_endpoint(struct bucket *b, struct dry_error *err)
{
    const char *host = strstr(b->endpoint, "://");
    size_t length = strlen(b->endpoint);
    bool is_web = strncmp(b->endpoint, "http://", 7) == 0 ||
                  strncmp(b->endpoint, "https://", 8) == 0;
    if (*b->endpoint &&
        (!is_web || strpbrk(b->endpoint, "?#@\\\"<>") || strchr("/", host[3])))
        return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       "AWS_ENDPOINT_URL was expected to be http://HOST or https://HOST");
    while (length > 0 && b->endpoint[length - 1] == '/')
        b->endpoint[--length] = '\0';
    return DRY_OK;
}

static enum dry_status
take_place(struct bucket *b, const struct files *f, bucket_environment *get,
           struct dry_error *err)
{
    const struct setting settings[] = {
        {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "endpoint_url", b->endpoint,
         sizeof b->endpoint},
        {"AWS_REGION", "AWS_DEFAULT_REGION", "region", b->region, sizeof b->region},
    };
    enum dry_status status = take_settings(settings, sizeof settings / sizeof *settings,
                                           f->config, f->config_section, get, err);
    if (status == DRY_OK)
        status = check_endpoint(b, err);
    if (status == DRY_OK && !*b->region)
        memcpy(b->region, "us-east-1", sizeof "us-east-1");
    if (status == DRY_OK && b->region[strspn(b->region, lower)])
        return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       "AWS_REGION was expected to be lower letters, digits and \"-\"");
    return status;
}

static enum dry_status
take_attempts(struct bucket *b, bucket_environment *get, struct dry_error *err)
{
    const char *value = get_variable(get, "AWS_MAX_ATTEMPTS");
    char *end = NULL;
    b->attempt_max = ATTEMPTS;
    if (!value)
        return DRY_OK;
    unsigned long count = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || count < 1 || count > ATTEMPTS_MAX)
        return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       "AWS_MAX_ATTEMPTS was expected to be 1 to %u", ATTEMPTS_MAX);
    b->attempt_max = (unsigned)count;
    return DRY_OK;
}

enum dry_status
bucket_open(struct bucket *b, const char *name, bucket_environment *get,
            struct dry_error *err)
{
    struct files files = {0};
    memset(b, 0, sizeof *b);
    snprintf(b->name, sizeof b->name, "%s", name);
    find_files(&files, get);
    enum dry_status status = files.section && files.config_section
                                 ? take_credentials(b, &files, get, err)
                                 : fail_memory(err, "no memory to ask a store");
    if (status == DRY_OK)
        status = take_place(b, &files, get, err);
    if (status == DRY_OK)
        status = take_attempts(b, get, err);
    drop_files(&files);
    return status;
}

/* --- URLs --------------------------------------------------------------------------------- */

/* Escape as the signature requires: RFC 3986, upper-case hex, all but `kept`. */
static void
print_escaped(FILE *out, const char *text, const char *kept)
{
    for (const char *c = text; *c; c++) {
        if (strchr(unreserved, *c) || strchr(kept, *c))
            fputc(*c, out);
        else
            fprintf(out, "%%%02X", (unsigned)(unsigned char)*c);
    }
}

/*
 * Return true if the bucket can be part of the host name. Amazon's certificates cover one
 * label only, and host names have no case.
 */
static bool
fits_host(const struct bucket *b)
{
    return !*b->endpoint && !b->name[strspn(b->name, lower)];
}

static void
print_place(FILE *out, const struct bucket *b)
{
    bool is_china = strncmp(b->region, "cn-", 3) == 0;
    bool has_host = fits_host(b);
    if (*b->endpoint)
        fputs(b->endpoint, out);
    else
        fprintf(out, "https://%s%ss3.%s.amazonaws.com%s", has_host ? b->name : "",
                has_host ? "." : "", b->region, is_china ? ".cn" : "");
    fprintf(out, "/%s", has_host ? "" : b->name);
}

char *
bucket_write_url(const struct bucket *b, const char *key, const char *query)
{
    char *url = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&url, &length);
    if (!out)
        return NULL;
    print_place(out, b);
    if (key) {
        fputs(fits_host(b) ? "" : "/", out);
        print_escaped(out, key, "/");
    } else {
        fprintf(out, "?%s", query);
    }
    bool is_bad = ferror(out) != 0;
    if (fclose(out) == 0 && !is_bad)
        return url;
    free(url);
    return NULL;
}

char *
bucket_escape(const char *text)
{
    char *escaped = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&escaped, &length);
    if (!out)
        return NULL;
    print_escaped(out, text, "");
    bool is_bad = ferror(out) != 0;
    if (fclose(out) == 0 && !is_bad)
        return escaped;
    free(escaped);
    return NULL;
}
