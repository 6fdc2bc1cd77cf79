/* SPDX-License-Identifier: Apache-2.0 */
/* See mcp_folders.h. */
#include "mcp/mcp_folders.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/report.h"
#include "base/term.h"

#define DEPTH_MAX 16
#define FILES_MAX 2000
#define VISITS_MAX 200000

static bool
is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

int
mcp_folders_open(const char *const *names, size_t count, struct mcp_folders *folders)
{
    *folders = (struct mcp_folders){.paths = calloc(count + 1, sizeof *folders->paths)};
    if (!folders->paths)
        return report_memory("mcp", NULL);
    for (size_t i = 0; i < count; i++) {
        char *path = realpath(names[i], NULL);
        if (!path)
            return report_failure("mcp", names[i], EXIT_INPUT, "%s", strerror(errno));
        folders->paths[folders->count++] = path;
        if (!is_folder(path))
            return report_failure("mcp", names[i], EXIT_INPUT, "not a folder");
    }
    return EXIT_FINE;
}

void
mcp_folders_close(struct mcp_folders *folders)
{
    for (size_t i = 0; i < folders->count; i++)
        free(folders->paths[i]);
    free(folders->paths);
}

/* --- one file ----------------------------------------------------------------------------- */

static bool
is_below(const struct mcp_folders *folders, const char *path)
{
    for (size_t i = 0; i < folders->count; i++) {
        size_t n = strlen(folders->paths[i]);
        bool is_root = n == 1; /* "/" already ends with a separator */
        if (strncmp(path, folders->paths[i], n) == 0 && (is_root || path[n] == '/'))
            return true;
    }
    return false;
}

/* Find a file in a folder. With `folder` "", `name` is an absolute path. Returns the
   resolved path, or NULL. */
static char *
find_in(const struct mcp_folders *folders, const char *folder, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return NULL;
    char *real = realpath(path, NULL);
    struct stat s;
    if (real && is_below(folders, real) && stat(real, &s) == 0 && S_ISREG(s.st_mode))
        return real;
    free(real);
    return NULL;
}

char *
mcp_folders_find(const struct mcp_folders *folders, const char *name)
{
    char *found = NULL;
    if (name[0] == '/')
        return find_in(folders, "", name);
    for (size_t i = 0; i < folders->count && !found; i++)
        found = find_in(folders, folders->paths[i], name);
    return found;
}

/* --- all files ---------------------------------------------------------------------------- */

static bool
may_be_wanted(const char *name)
{
    static const char *const endings[] = {".pickle", ".pkl", ".json", ".trace", ".txt",
                                          ".log",    ".csv", ".out",  ".err"};
    static const char *const packed[] = {".gz", ".zst"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        size_t k = strlen(packed[i]);
        if (n > k && memcmp(name + n - k, packed[i], k) == 0)
            n -= k;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t k = strlen(endings[i]);
        if (n > k && memcmp(name + n - k, endings[i], k) == 0)
            return true;
    }
    return false;
}

static int
compare_names(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void
print_all(FTS *tree, FILE *out)
{
    size_t files = 0, visits = 0;
    FTSENT *e;
    while ((e = fts_read(tree)) != NULL && files < FILES_MAX && visits < VISITS_MAX) {
        visits++;
        bool is_hidden = e->fts_level > 0 && e->fts_name[0] == '.';
        if (e->fts_info == FTS_D && (is_hidden || e->fts_level >= DEPTH_MAX))
            fts_set(tree, e, FTS_SKIP);
        if (e->fts_info != FTS_F || is_hidden || !may_be_wanted(e->fts_name))
            continue;
        char size[TERM_NUMBER_BYTES];
        fprintf(out, "%12s  %s\n",
                term_format_bytes((uint64_t)e->fts_statp->st_size, size), e->fts_path);
        files++;
    }
    if (e)
        fprintf(out, "and more files than are listed\n");
    else if (files == 0)
        fprintf(out, "no file that may be a recording or a log\n");
}

char *
mcp_folders_list(const struct mcp_folders *folders, size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (!out)
        return NULL;
    FTS *tree = fts_open(folders->paths, FTS_PHYSICAL | FTS_NOCHDIR, compare_names);
    if (tree)
        print_all(tree, out);
    bool is_written = !ferror(out);
    if (tree)
        fts_close(tree);
    if (fclose(out) == 0 && is_written && tree)
        return text;
    free(text);
    return NULL;
}
