/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See replacements.h. Symbols are sets of names: those that the wheel's libraries and extensions
 * of packages import, less those that the wheel or the stand-in exports. A package's exports stay
 * its own: another one's import of the same name still gets a stub. Sets are sorted, so the same
 * wheel produces the same bytes.
 */
#include "dryrun/replacements.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "base/grow.h"
#include "dryrun/elf_write.h"

#define UNWRITTEN "libdrystone-unwritten.so"
#define NAMES_MAX 4000000   /* of one set, before duplicates are dropped */
#define ENTRIES_MAX 2000000 /* files and folders of all packages */

/* A set of names, owned; each occurs once after names_sort(). */
struct names {
    char **items;
    size_t count, capacity;
    bool failed;
};

struct replacements {
    const struct replacements_request *request;
    struct dry_error *err;
    struct names wanted, had, needed, versions, paths, folders;
    size_t entry_count;
    enum elf_machine machine;
    bool has_cuda;
};

/* --- sets of names ------------------------------------------------------------------------ */

static void
names_add(struct names *n, const char *name)
{
    char **more = n->count < NAMES_MAX
                      ? grow(n->items, n->count, &n->capacity, sizeof *more)
                      : NULL;
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

/* Tell whether a symbol that a package other than torch wants is NVIDIA's. A package's own names
   may begin alike, so a capital has to follow: cublasHgemm, but not cuda_helper. */
static bool
is_symbol_of_package(const char *name)
{
    size_t head = strspn(name, "_abcdefghijklmnopqrstuvwxyz");
    bool is_plain = strncmp(name, "nvshmem", 7) == 0 || strncmp(name, "__cuda", 6) == 0;
    return is_symbol_of_cuda(name) &&
           (is_plain || (name[head] >= 'A' && name[head] <= 'Z'));
}

/* Tell whether a name is that of a library of NVIDIA's, which libcurl and libcups are not. */
static bool
is_library_of_cuda(const char *soname)
{
    static const char *const heads[] = {
        "libcuda",     "libcublas", "libcudnn",  "libcudss",    "libcufft",
        "libcufile",   "libcupti",  "libcurand", "libcusolver", "libcusparse",
        "libcutensor", "libnv",     "libnccl",
    };
    return begins(soname, heads, sizeof heads / sizeof *heads) && strstr(soname, ".so") &&
           !strchr(soname, '/');
}

/* --- reading the wheel -------------------------------------------------------------------- */

/* The owner of a library decides which of its symbols count. */
enum source { SOURCE_WHEEL, SOURCE_STANDIN, SOURCE_PACKAGE };

static void
take_symbol(struct replacements *s, const struct elf_symbol *symbol, enum source source)
{
    bool is_package = source == SOURCE_PACKAGE;
    if (symbol->is_local || (is_package && symbol->is_defined) ||
        !(is_package ? is_symbol_of_package : is_symbol_of_cuda)(symbol->name))
        return;
    names_add(symbol->is_defined ? &s->had : &s->wanted, symbol->name);
    if (source != SOURCE_STANDIN && !symbol->is_defined && symbol->version &&
        is_library_of_cuda(symbol->library)) {
        /* store "LIBRARY VERSION" as one name, to drop duplicates */
        char pair[512];
        snprintf(pair, sizeof pair, "%.240s %.240s", symbol->library, symbol->version);
        names_add(&s->versions, pair);
    }
}

static void
take_library(struct replacements *s, const struct elf *elf, enum source source)
{
    for (size_t i = 0; i < elf->symbol_count; i++) {
        struct elf_symbol symbol = elf_symbol(elf, i);
        take_symbol(s, &symbol, source);
    }
    const char *needed;
    for (size_t i = 0; source != SOURCE_STANDIN && (needed = elf_needed(elf, i)) != NULL;
         i++) {
        if (is_library_of_cuda(needed))
            names_add(&s->needed, needed);
    }
}

static enum dry_status
read_library(struct replacements *s, const char *path, enum source source)
{
    struct elf elf;
    struct dry_error err;
    if (elf_open(&elf, path, &err) != DRY_OK)
        return fail_at(s->err, err.status, err.offset, "%.120s: %.100s", path, err.text);
    take_library(s, &elf, source);
    if (source == SOURCE_WHEEL && s->machine != elf.machine && s->machine != 0) {
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
        status = read_library(s, path, SOURCE_WHEEL);
    }
    closedir(folder);
    if (status == DRY_OK && !s->has_cuda)
        return fail_at(s->err, DRY_ERR_UNSUPPORTED, DRY_NO_OFFSET,
                       "no libtorch_cuda.so: this torch was built without CUDA");
    return status;
}

/* --- extensions of packages ----------------------------------------------------------------- */

/* Read an extension. A file that is none, or is another machine's, says nothing. */
static void
read_extension(struct replacements *s, const char *path)
{
    struct elf elf;
    if (elf_open(&elf, path, NULL) != DRY_OK)
        return;
    if (elf.machine == s->machine)
        take_library(s, &elf, SOURCE_PACKAGE);
    elf_close(&elf);
}

/* Take a file or a folder of a package; links to folders are not followed. */
static void
take_entry(struct replacements *s, const char *path, const struct dirent *entry)
{
    struct stat about;
    const char *so = strstr(entry->d_name, ".so");
    if (entry->d_type == DT_DIR || (entry->d_type == DT_UNKNOWN &&
                                    lstat(path, &about) == 0 && S_ISDIR(about.st_mode)))
        names_add(&s->folders, path);
    else if (so && (so[3] == '\0' || so[3] == '.') &&
             !is_library_of_cuda(entry->d_name) && stat(path, &about) == 0 &&
             S_ISREG(about.st_mode))
        read_extension(s, path);
}

static void
read_folder(struct replacements *s, const char *name)
{
    DIR *folder = opendir(name);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL && s->entry_count < ENTRIES_MAX) {
        char path[PATH_MAX];
        bool is_itself =
            strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!is_itself &&
            snprintf(path, sizeof path, "%s/%s", name, entry->d_name) < (int)sizeof path)
            take_entry(s, path, entry);
        s->entry_count++;
    }
    if (folder)
        closedir(folder);
}

static enum dry_status
read_packages(struct replacements *s)
{
    for (const char *at = s->request->packages; at && *at;) {
        char path[PATH_MAX];
        size_t length = strcspn(at, "\n");
        if (length < sizeof path) {
            snprintf(path, sizeof path, "%.*s", (int)length, at);
            names_add(&s->folders, path);
        }
        at += length + (at[length] == '\n');
    }
    for (size_t i = 0; i < s->folders.count; i++)
        read_folder(s, s->folders.items[i]);
    return s->entry_count < ENTRIES_MAX
               ? DRY_OK
               : fail_at(s->err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                         "packages of more than %d files: name a smaller environment",
                         ENTRIES_MAX);
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

/* Add each library's name without a number: -lcuda wants it, and packages that open libcudnn.so. */
static void
add_unnumbered(struct replacements *s)
{
    size_t count = s->needed.count;
    for (size_t i = 0; i < count; i++) {
        const char *name = s->needed.items[i], *end = strstr(name, ".so.");
        char text[PATH_MAX];
        if (!end)
            continue;
        snprintf(text, sizeof text, "%.*s", (int)(end - name) + 3, name);
        names_add(&s->needed, text);
    }
}

static enum dry_status
write_all(struct replacements *s)
{
    names_add(&s->needed, "libcuda.so.1");
    names_add(&s->needed, "libnvidia-ml.so.1");
    names_add(&s->needed, "libcurand.so.10"); /* no library of torch wants this one */
    add_unnumbered(s);
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
        status = read_library(&s, request->standin, SOURCE_STANDIN);
    if (status == DRY_OK)
        status = read_packages(&s);
    if (status == DRY_OK)
        status = write_all(&s);
    bool failed = s.wanted.failed || s.had.failed || s.needed.failed ||
                  s.versions.failed || s.paths.failed || s.folders.failed;
    if (status == DRY_OK)
        *preload = failed ? NULL : join_paths(&s);
    if (status == DRY_OK && !*preload)
        status = fail_memory(err, "no memory");
    names_finish(&s.wanted);
    names_finish(&s.had);
    names_finish(&s.needed);
    names_finish(&s.versions);
    names_finish(&s.paths);
    names_finish(&s.folders);
    return status;
}
