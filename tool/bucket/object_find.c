/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules are in object_find.h. A store has no folders. Listing by prefix takes one
 * request for 1,000 keys; listing folder by folder would take one for each.
 */
#include "bucket/object_find.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "bucket/listing.h"
#include "bucket/object_name.h"

struct search {
    const char *command; /* named in error messages */
    const char *bucket;
    const char *wanted;   /* key that is tried first */
    size_t prefix_length; /* length of a folder, with its slash */
    const char *pattern;  /* NULL if a folder is searched */
    object_found *add;
    void *self;
    bool is_found;
    int code;
};

/* Add an object. Returns false if the search must end. */
static bool
add_object(struct search *s, const char *key, bool is_named, uint64_t bytes,
           uint64_t stamp)
{
    char *path = NULL;
    if (asprintf(&path, "s3://%s/%s", s->bucket, key) < 0) {
        s->code = report_memory(s->command, NULL);
        return false;
    }
    s->is_found = true;
    s->code = s->add(s->self, path, is_named, bytes, stamp);
    free(path);
    return s->code == EXIT_FINE;
}

static bool
take_exact(void *self, const char *key, uint64_t bytes, uint64_t stamp)
{
    struct search *s = self;
    return strcmp(key, s->wanted) != 0 || add_object(s, key, true, bytes, stamp);
}

/* Return true if a search on disk would find this path: not hidden, not too deep. */
static bool
is_in_sight(const char *rest)
{
    unsigned depth = 0;
    if (!*rest || *rest == '.')
        return false;
    for (const char *c = rest; *c; c++) {
        if (*c != '/')
            continue;
        depth++;
        if (c[1] == '.' || c[1] == '\0')
            return false;
    }
    return depth <= OBJECT_DEPTH_MAX;
}

static bool
take_below(void *self, const char *key, uint64_t bytes, uint64_t stamp)
{
    struct search *s = self;
    bool is_below = strncmp(key, s->wanted, s->prefix_length) == 0;
    s->is_found |= is_below;
    if (!is_below || !is_in_sight(key + s->prefix_length))
        return true;
    return add_object(s, key, false, bytes, stamp);
}

/* Add an object whose key, or a folder of whose key, matches the pattern. */
static bool
take_matching(void *self, const char *key, uint64_t bytes, uint64_t stamp)
{
    struct search *s = self;
    const int rules = FNM_PATHNAME | FNM_PERIOD;
    if (fnmatch(s->pattern, key, rules) == 0)
        return add_object(s, key, true, bytes, stamp);
    char *folder = strdup(key);
    if (!folder) {
        s->code = report_memory(s->command, NULL);
        return false;
    }
    bool is_below = false;
    for (char *slash = strchr(folder, '/'); slash && !is_below;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        is_below = fnmatch(s->pattern, folder, rules) == 0 &&
                   is_in_sight(key + (slash - folder) + 1);
        *slash = '/';
    }
    free(folder);
    return !is_below || add_object(s, key, false, bytes, stamp);
}

static int
list(struct search *s, const char *prefix, bool is_first_only,
     bool (*visit)(void *, const char *, uint64_t, uint64_t))
{
    struct dry_error err;
    struct listing listing = {.bucket = s->bucket,
                              .prefix = prefix,
                              .is_first_only = is_first_only,
                              .visit = visit,
                              .self = s};
    enum dry_status status = listing_visit(&listing, &err);
    char name[OBJECT_BUCKET_BYTES + 8];
    snprintf(name, sizeof name, "s3://%s", s->bucket);
    return status == DRY_OK ? s->code : report_error(s->command, name, &err);
}

static int
list_folder(struct search *s, const char *key)
{
    char *prefix = NULL;
    size_t length = strlen(key);
    bool has_slash = length == 0 || key[length - 1] == '/';
    if (asprintf(&prefix, "%s%s", key, has_slash ? "" : "/") < 0)
        return report_memory(s->command, NULL);
    s->wanted = prefix;
    s->prefix_length = strlen(prefix);
    int code = list(s, prefix, false, take_below);
    free(prefix);
    return code;
}

static int
list_pattern(struct search *s, const char *key, size_t plain)
{
    char *prefix = strndup(key, plain);
    if (!prefix)
        return report_memory(s->command, NULL);
    s->pattern = key;
    int code = list(s, prefix, false, take_matching);
    free(prefix);
    return code;
}

int
object_find(const char *command, const char *name, object_found *add, void *self)
{
    struct object_name split;
    struct dry_error err;
    if (object_name_split(name, &split, &err) != DRY_OK)
        return report_error(command, name, &err);
    struct search s = {.command = command,
                       .bucket = split.bucket,
                       .wanted = split.key,
                       .add = add,
                       .self = self};
    size_t length = strlen(split.key), plain = strcspn(split.key, "*?[\\");
    int code = EXIT_FINE;
    if (length > 0 && split.key[length - 1] != '/')
        code = list(&s, split.key, true, take_exact);
    if (code == EXIT_FINE && !s.is_found)
        code = plain < length ? list_pattern(&s, split.key, plain)
                              : list_folder(&s, split.key);
    if (code == EXIT_FINE && !s.is_found)
        code = report_failure(command, name, EXIT_INPUT,
                              "no object has such a name, or lies below it");
    return code;
}
