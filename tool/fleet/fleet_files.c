/* SPDX-License-Identifier: Apache-2.0 */
/* The rules are in fleet_files.h. A list of folders to read replaces recursion. */
#include "fleet/fleet_files.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/command.h"
#include "base/grow.h"
#include "base/report.h"
#include "bucket/object_find.h"
#include "bucket/object_name.h"
#include "fleet/rank_name.h"

#define DEPTH_MAX OBJECT_DEPTH_MAX /* the same as in an object store */
#define FILES_MAX 1000000u

struct folder {
    char *path;
    unsigned depth;
};

struct walk {
    struct fleet_files *files;
    const regex_t *pattern;
    struct folder *folders;
    size_t folder_count, folder_capacity;
};

static int
add_found(struct walk *w, const char *path, uint64_t bytes, uint64_t stamp)
{
    struct fleet_files *f = w->files;
    if (f->count == FILES_MAX)
        return report_failure("fleet", path, EXIT_INPUT, "more than %u files", FILES_MAX);
    struct fleet_file *files = grow(f->files, f->count, &f->capacity, sizeof *files);
    if (!files)
        return report_memory("fleet", NULL);
    f->files = files;
    files[f->count] = (struct fleet_file){
        .path = strdup(path),
        .rank = w->pattern ? rank_name_match(w->pattern, path) : rank_name_find(path),
        .bytes = bytes,
        .stamp = stamp,
    };
    return files[f->count++].path ? EXIT_FINE : report_memory("fleet", NULL);
}

static int
add_file(struct walk *w, const char *path, const struct stat *facts)
{
    uint64_t changed_ns =
        (uint64_t)facts->st_mtim.tv_sec * 1000000000u + (uint64_t)facts->st_mtim.tv_nsec;
    return add_found(w, path, facts->st_size > 0 ? (uint64_t)facts->st_size : 0,
                     changed_ns);
}

static int
add_folder(struct walk *w, const char *path, unsigned depth)
{
    struct folder *folders =
        grow(w->folders, w->folder_count, &w->folder_capacity, sizeof *folders);
    if (!folders)
        return report_memory("fleet", NULL);
    w->folders = folders;
    folders[w->folder_count] = (struct folder){strdup(path), depth};
    return folders[w->folder_count++].path ? EXIT_FINE : report_memory("fleet", NULL);
}

static bool
ends_with(const char *name, size_t length, const char *ending)
{
    size_t of_ending = strlen(ending);
    return length > of_ending &&
           memcmp(name + length - of_ending, ending, of_ending) == 0;
}

static bool
may_be_snapshot(const char *name)
{
    static const char *const endings[] = {".pickle", ".pkl", ".trace"};
    size_t length = strlen(name);
    if (ends_with(name, length, ".gz"))
        length -= 3;
    else if (ends_with(name, length, ".zst"))
        length -= 4;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (ends_with(name, length, endings[i]))
            return true;
    }
    return false;
}

static int
add_entry(struct walk *w, const struct folder *folder, const char *name)
{
    char *path;
    struct stat facts;
    if (asprintf(&path, "%s/%s", folder->path, name) < 0)
        return report_memory("fleet", NULL);
    int code = EXIT_FINE;
    if (lstat(path, &facts) == 0) {
        if (S_ISDIR(facts.st_mode) && folder->depth < DEPTH_MAX)
            code = add_folder(w, path, folder->depth + 1);
        else if (S_ISREG(facts.st_mode) && may_be_snapshot(name))
            code = add_file(w, path, &facts);
    }
    free(path);
    return code;
}

/* Read a folder. One below a named folder that cannot be read is reported and skipped. */
static int
read_folder(struct walk *w, const struct folder *folder)
{
    DIR *stream = opendir(folder->path);
    if (!stream && folder->depth > 0) {
        report_failure("fleet", folder->path, EXIT_INPUT, "not read: %s",
                       strerror(errno));
        return EXIT_FINE;
    }
    if (!stream)
        return report_failure("fleet", folder->path, EXIT_INPUT, "%s", strerror(errno));
    int code = EXIT_FINE;
    for (struct dirent *e = readdir(stream); e && code == EXIT_FINE;
         e = readdir(stream)) {
        if (e->d_name[0] != '.')
            code = add_entry(w, folder, e->d_name);
    }
    closedir(stream);
    return code;
}

static int
read_folders(struct walk *w)
{
    int code = EXIT_FINE;
    while (w->folder_count > 0) {
        struct folder folder = w->folders[--w->folder_count];
        if (code == EXIT_FINE)
            code = read_folder(w, &folder);
        free(folder.path);
    }
    return code;
}

static int
add_path(struct walk *w, const char *path)
{
    struct stat facts;
    if (stat(path, &facts) != 0)
        return report_failure("fleet", path, EXIT_INPUT, "%s", strerror(errno));
    if (S_ISREG(facts.st_mode))
        return add_file(w, path, &facts);
    if (!S_ISDIR(facts.st_mode))
        return report_failure("fleet", path, EXIT_INPUT, "not a plain file");
    size_t length = strlen(path);
    char *cut =
        strndup(path, length > 1 && path[length - 1] == '/' ? length - 1 : length);
    int code = cut ? add_folder(w, cut, 0) : report_memory("fleet", NULL);
    free(cut);
    return code == EXIT_FINE ? read_folders(w) : code;
}

static int
add_object(void *self, const char *path, bool is_named, uint64_t bytes, uint64_t stamp)
{
    return is_named || may_be_snapshot(path) ? add_found(self, path, bytes, stamp)
                                             : EXIT_FINE;
}

/* Add the files of a name. A name that exists is never expanded as a pattern. */
static int
add_name(struct walk *w, const char *name)
{
    struct stat facts;
    glob_t found;
    if (object_is_name(name))
        return object_find("fleet", name, add_object, w);
    if (stat(name, &facts) == 0 || !strpbrk(name, "*?["))
        return add_path(w, name);
    int status = glob(name, 0, NULL, &found);
    if (status != 0)
        return status == GLOB_NOSPACE
                   ? report_memory("fleet", NULL)
                   : report_failure("fleet", name, EXIT_INPUT, "no file has such a name");
    int code = EXIT_FINE;
    for (size_t i = 0; i < found.gl_pathc && code == EXIT_FINE; i++)
        code = add_path(w, found.gl_pathv[i]);
    globfree(&found);
    return code;
}

static int
compare_files(const void *a, const void *b)
{
    const struct fleet_file *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return rank_name_compare(x->path, y->path);
}

/* Keep each path once: a file and its folder may both be named. */
static void
drop_repeated(struct fleet_files *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->count; i++) {
        if (kept > 0 && strcmp(f->files[kept - 1].path, f->files[i].path) == 0)
            free(f->files[i].path);
        else
            f->files[kept++] = f->files[i];
    }
    f->count = kept;
}

int
fleet_files_find(struct fleet_files *files, const char *const *names, size_t count,
                 const regex_t *pattern)
{
    struct walk walk = {.files = files, .pattern = pattern};
    *files = (struct fleet_files){0};
    int code = EXIT_FINE;
    for (size_t i = 0; i < count && code == EXIT_FINE; i++)
        code = add_name(&walk, names[i]);
    free(walk.folders);
    if (code == EXIT_FINE && files->count == 0)
        code = report_failure("fleet", names[0], EXIT_INPUT,
                              "no snapshots: .pickle, .pkl or .trace");
    if (files->count > 1)
        qsort(files->files, files->count, sizeof *files->files, compare_files);
    drop_repeated(files);
    return code;
}

void
fleet_files_finish(struct fleet_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->files[i].path);
    free(files->files);
    *files = (struct fleet_files){0};
}
