/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts: do a share of the tasks into its own store, and merge such stores. A part's
 * store is called STORE.part-K-of-N.begun until it is complete. Tasks are dealt out in
 * order of weight, so that the parts have similar weights.
 */
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "base/report.h"
#include "work/work_inside.h"

#define BEGUN ".begun"

/* --- doing one part ----------------------------------------------------------------------- */

static int
format_path(const struct run *r, const struct part *part, char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s.part-%zu-of-%zu", r->options->store,
                          part->number, part->count);
    if (length > 0 && (size_t)length + sizeof BEGUN <= PATH_MAX)
        return EXIT_FINE;
    return report_usage(r->work->name, "--store: the name is too long");
}

static void
deal(struct run *r, const struct part *part)
{
    size_t kept = 0;
    for (size_t i = part->number; i < r->due_count; i += part->count)
        r->due[kept++] = r->due[i];
    r->due_count = kept;
}

static int
fill(struct run *r, const char *begun)
{
    int code = store_open(r->work->name, begun, &r->store);
    if (code == EXIT_FINE)
        code = work_find_stored(r);
    if (code == EXIT_FINE)
        code = work_run_due(r);
    int closed = store_close(r->store);
    r->store = NULL;
    return code == EXIT_FINE ? closed : code;
}

int
parts_run(struct run *r)
{
    struct part part;
    const char *why;
    char path[PATH_MAX], begun[PATH_MAX];
    if (!part_parse(r->options->part, getenv, &part, &why))
        return report_usage(r->work->name, "--part: %s", why);
    int code = format_path(r, &part, path);
    if (code != EXIT_FINE)
        return code;
    r->results->is_elsewhere = true;
    if (access(path, F_OK) == 0)
        return EXIT_FINE;
    snprintf(begun, sizeof begun, "%.*s" BEGUN, (int)(sizeof begun - sizeof BEGUN), path);
    deal(r, &part);
    code = fill(r, begun);
    if (code == EXIT_FINE && rename(begun, path) != 0)
        code = report_failure(r->work->name, path, EXIT_MACHINE,
                              "the part that was done cannot be given its name");
    return code;
}

/* --- merging parts ------------------------------------------------------------------------ */

/* The parts that were found, a byte each, of `count`. */
struct found {
    size_t count;
    unsigned char *bits;
};

/* Parse K and N at the end of a file's name. False: it is not a complete part. */
static bool
read_name(const struct run *r, const char *path, struct part *part)
{
    const char *name = path + strlen(r->options->store);
    int end = 0;
    /* NOLINTNEXTLINE(cert-err34-c): what was read is compared with the name */
    if (sscanf(name, ".part-%zu-of-%zu%n", &part->number, &part->count, &end) != 2)
        return false;
    return name[end] == '\0' && part->number < part->count && part->count <= PARTS_MAX;
}

static int
take_in(struct run *r, const char *path, struct found *found)
{
    struct part part;
    if (!read_name(r, path, &part))
        return EXIT_FINE;
    if (!found->bits) {
        found->bits = calloc(part.count, 1);
        if (!found->bits)
            return work_report_memory(r->work);
        found->count = part.count;
    }
    if (part.count != found->count)
        return report_failure(r->work->name, path, EXIT_INPUT,
                              "a part of %zu, beside parts of %zu; remove those of the "
                              "other run",
                              part.count, found->count);
    found->bits[part.number] = 1;
    return store_merge(r->store, path);
}

static void
tell_missing(const struct run *r, const struct found *found)
{
    for (size_t i = 0; found->bits && i < found->count; i++)
        if (!found->bits[i])
            fprintf(stderr, "drystone: %s: part %zu of %zu is missing; it is done here\n",
                    r->work->name, i, found->count);
}

/* Make a glob pattern of the store's name, whose special characters are escaped. */
static bool
make_pattern(const struct run *r, char pattern[2 * PATH_MAX])
{
    size_t used = 0;
    const char *name = r->options->store;
    for (; *name && used < 2 * PATH_MAX - 16; name++) {
        if (strchr("*?[\\", *name))
            pattern[used++] = '\\';
        pattern[used++] = *name;
    }
    snprintf(pattern + used, 2 * PATH_MAX - used, ".part-*-of-*");
    return *name == '\0';
}

int
parts_merge(struct run *r)
{
    char pattern[2 * PATH_MAX];
    glob_t names = {0};
    struct found found = {0};
    if (!make_pattern(r, pattern))
        return report_usage(r->work->name, "--store: the name is too long");
    int status = glob(pattern, 0, NULL, &names);
    int code = status == GLOB_NOSPACE ? work_report_memory(r->work) : EXIT_FINE;
    for (size_t i = 0; status == 0 && i < names.gl_pathc && code == EXIT_FINE; i++)
        code = take_in(r, names.gl_pathv[i], &found);
    globfree(&names);
    if (code == EXIT_FINE && found.count == 0)
        code = report_failure(r->work->name, r->options->store, EXIT_INPUT,
                              "--merge: no file STORE.part-K-of-N is beside it");
    if (code == EXIT_FINE)
        tell_missing(r, &found);
    free(found.bits);
    return code;
}
