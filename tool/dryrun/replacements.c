/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See replacements.h. Symbols are sets of names: those that the wheel's libraries import, less
 * those that the libraries or the stand-in export. Sets are sorted, so the same wheel
 * produces the same bytes.
 */
#include "dryrun/replacements.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "dryrun/elf_write.h"

#define UNWRITTEN "libdrystone-unwritten.so"

/* A set of names, owned; each occurs once after names_sort(). */
struct names {
    char **items;
    size_t count, capacity;
    bool failed;
};

struct replacements {
    const struct replacements_request *request;
    struct dry_error *err;
    struct names wanted, had, needed, versions, paths;
    enum elf_machine machine;
    bool has_cuda;
};

/* --- sets of names ------------------------------------------------------------------------ */

static void
names_add(struct names *n, const char *name)
{
    char **more = grow(n->items, n->count, &n->capacity, sizeof *more);
    if (!more) {
        n->failed = true;
        return;
    }
    n->items = more;
    char *copy = strdup(name);
    if (copy)
        n->items[n->count++] = copy;
    else
        n->failed = true;
}

static int
compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
names_sort(struct names *n)
{
    size_t kept = 0;
    if (n->count > 0)
        qsort(n->items, n->count, sizeof *n->items, compare);
    for (size_t i = 0; i < n->count; i++) {
        if (kept > 0 && strcmp(n->items[kept - 1], n->items[i]) == 0)
            free(n->items[i]);
        else
            n->items[kept++] = n->items[i];
    }
    n->count = kept;
}

/* Remove the names in `what`. Requires that both are sorted. */
static void
names_subtract(struct names *from, const struct names *what)
{
    size_t kept = 0;
    for (size_t i = 0; i < from->count; i++) {
        const char *name = from->items[i];
        if (what->count > 0 &&
            bsearch(&name, what->items, what->count, sizeof *what->items, compare))
            free(from->items[i]);
        else
            from->items[kept++] = from->items[i];
    }
    from->count = kept;
}

static void
names_finish(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
}

/* --- whose they are ----------------------------------------------------------------------- */

static bool
begins(const char *text, const char *const *heads, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(text, heads[i], strlen(heads[i])) == 0)
            return true;
    }
    return false;
}

/* Tell whether a symbol belongs to NVIDIA's libraries. A bare "cu" counts only before a
   capital: cuInit, but not cub or cutlass. */
static bool
is_symbol_of_cuda(const char *name)
{
    static const char *const heads[] = {
        "__cuda", "cublas", "cudnn", "cusparse", "cusolver", "cufft",
        "curand", "nccl",   "nvrtc", "nvJit",    "nvshmem",  "cupti",
        "nvml",   "cuda",   "nvtx",  "cufile",
    };
    if (strncmp(name, "cu", 2) == 0 && name[2] >= 'A' && name[2] <= 'Z')
        return true;
    return begins(name, heads, sizeof heads / sizeof *heads) && !strchr(name, '.');
}

static bool
is_library_of_cuda(const char *soname)
{
    static const char *const heads[] = {"libcu", "libnv", "libnccl"};
    return begins(soname, heads, sizeof heads / sizeof *heads) && strstr(soname, ".so") &&
           !strchr(soname, '/');
}

/* --- reading the wheel -------------------------------------------------------------------- */

static void
take_symbol(struct replacements *s, const struct elf_symbol *symbol, bool is_wheel)
{
    if (symbol->is_local || !is_symbol_of_cuda(symbol->name))
        return;
    names_add(symbol->is_defined ? &s->had : &s->wanted, symbol->name);
    if (is_wheel && !symbol->is_defined && symbol->version &&
        is_library_of_cuda(symbol->library)) {
        /* store "LIBRARY VERSION" as one name, to drop duplicates */
        char pair[512];
        snprintf(pair, sizeof pair, "%.240s %.240s", symbol->library, symbol->version);
        names_add(&s->versions, pair);
    }
}

static enum dry_status
read_library(struct replacements *s, const char *path, bool is_wheel)
{
    struct elf elf;
    struct dry_error err;
    if (elf_open(&elf, path, &err) != DRY_OK)
        return fail_at(s->err, err.status, err.offset, "%.120s: %.100s", path, err.text);
    for (size_t i = 0; i < elf.symbol_count; i++) {
        struct elf_symbol symbol = elf_symbol(&elf, i);
        take_symbol(s, &symbol, is_wheel);
    }
    const char *needed;
    for (size_t i = 0; is_wheel && (needed = elf_needed(&elf, i)) != NULL; i++) {
        if (is_library_of_cuda(needed))
            names_add(&s->needed, needed);
    }
    if (is_wheel && s->machine != elf.machine && s->machine != 0) {
        elf_close(&elf);
        return fail_at(s->err, DRY_ERR_UNSUPPORTED, DRY_NO_OFFSET,
                       "%.180s is another machine's", path);
    }
    s->machine = elf.machine;
    elf_close(&elf);
    return DRY_OK;
}

static bool
is_shared(const char *name)
{
    const char *so = strstr(name, ".so");
    return strncmp(name, "lib", 3) == 0 && so && (so[3] == '\0' || so[3] == '.');
}

static enum dry_status
read_wheel(struct replacements *s)
{
    DIR *folder = opendir(s->request->wheel);
    if (!folder)
        return fail_at(s->err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "%s", strerror(errno));
    enum dry_status status = DRY_OK;
    const struct dirent *entry;
    while (status == DRY_OK && (entry = readdir(folder)) != NULL) {
        char path[PATH_MAX];
        int written =
            snprintf(path, sizeof path, "%s/%s", s->request->wheel, entry->d_name);
        /* skip the NVIDIA libraries that a wheel bundles: our stand-ins replace them */
        if (!is_shared(entry->d_name) || is_library_of_cuda(entry->d_name) ||
            written >= (int)sizeof path)
            continue;
        s->has_cuda |= strcmp(entry->d_name, "libtorch_cuda.so") == 0;
        status = read_library(s, path, true);
    }
    closedir(folder);
    if (status == DRY_OK && !s->has_cuda)
        return fail_at(s->err, DRY_ERR_UNSUPPORTED, DRY_NO_OFFSET,
                       "no libtorch_cuda.so: this torch was built without CUDA");
    return status;
}

/* --- writing ------------------------------------------------------------------------------ */

static enum dry_status
write_library(struct replacements *s, const struct elf_library *library)
{
    char path[PATH_MAX];
    int written =
        snprintf(path, sizeof path, "%s/%s", s->request->folder, library->soname);
    if (written >= (int)sizeof path)
        return fail_at(s->err, DRY_ERR_LIMIT, DRY_NO_OFFSET, "a path that is too long");
    enum dry_status status = elf_write(library, path, s->err);
    if (status == DRY_OK)
        names_add(&s->paths, path);
    return status;
}

static enum dry_status
write_unwritten(struct replacements *s)
{
    const struct elf_library library = {
        .machine = s->machine,
        .soname = UNWRITTEN,
        .needed = &s->request->standin,
        .needed_count = 1,
        .functions = (const char *const *)s->wanted.items,
        .function_count = s->wanted.count,
    };
    return write_library(s, &library);
}

#define VERSIONS_MAX 64

/* Return the versions required of a library: the second halves of its pairs. */
static size_t
find_versions(const struct replacements *s, const char *soname,
              const char *versions[VERSIONS_MAX])
{
    size_t count = 0, length = strlen(soname);
    for (size_t i = 0; i < s->versions.count && count < VERSIONS_MAX; i++) {
        const char *pair = s->versions.items[i];
        if (strncmp(pair, soname, length) == 0 && pair[length] == ' ')
            versions[count++] = pair + length + 1;
    }
    return count;
}

static enum dry_status
write_named(struct replacements *s, const char *soname)
{
    const char *versions[VERSIONS_MAX];
    char unwritten[PATH_MAX];
    snprintf(unwritten, sizeof unwritten, "%s/%s", s->request->folder, UNWRITTEN);
    const char *const needed[] = {s->request->standin, unwritten};
    const struct elf_library library = {
        .machine = s->machine,
        .soname = soname,
        .needed = needed,
        .needed_count = 2,
        .versions = versions,
        .version_count = find_versions(s, soname, versions),
    };
    return write_library(s, &library);
}

static enum dry_status
write_all(struct replacements *s)
{
    names_add(&s->needed, "libcuda.so.1");
    names_add(&s->needed, "libnvidia-ml.so.1");
    names_sort(&s->wanted);
    names_sort(&s->had);
    names_sort(&s->needed);
    names_sort(&s->versions);
    names_subtract(&s->wanted, &s->had);
    enum dry_status status = write_unwritten(s);
    for (size_t i = 0; i < s->needed.count && status == DRY_OK; i++)
        status = write_named(s, s->needed.items[i]);
    return status;
}

/* Make the value of LD_PRELOAD. The stand-in comes first, because its symbols must win
   over those of the other libraries. */
static char *
join_paths(const struct replacements *s)
{
    size_t size = strlen(s->request->standin) + 1;
    for (size_t i = 0; i < s->paths.count; i++)
        size += strlen(s->paths.items[i]) + 1;
    char *joined = malloc(size);
    size_t used = joined ? (size_t)snprintf(joined, size, "%s", s->request->standin) : 0;
    for (size_t i = 0; joined && i < s->paths.count; i++)
        used += (size_t)snprintf(joined + used, size - used, ":%s", s->paths.items[i]);
    return joined;
}

enum dry_status
replacements_make(const struct replacements_request *request, char **preload,
                  struct dry_error *err)
{
    struct replacements s = {.request = request, .err = err};
    enum dry_status status = read_wheel(&s);
    if (status == DRY_OK)
        status = read_library(&s, request->standin, false);
    if (status == DRY_OK)
        status = write_all(&s);
    bool failed = s.wanted.failed || s.had.failed || s.needed.failed ||
                  s.versions.failed || s.paths.failed;
    if (status == DRY_OK)
        *preload = failed ? NULL : join_paths(&s);
    if (status == DRY_OK && !*preload)
        status = fail_memory(err, "no memory");
    names_finish(&s.wanted);
    names_finish(&s.had);
    names_finish(&s.needed);
    names_finish(&s.versions);
    names_finish(&s.paths);
    return status;
}
