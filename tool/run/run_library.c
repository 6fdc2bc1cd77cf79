/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See run_library.h. The file name tells which malloc a library is; the ELF header tells
 * whether this process can load it (elf(5)). jemalloc's version is found by a search of
 * the file's bytes.
 */
#include "run/run_library.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bounds the search of huge folders and of folders linked to each other. */
#define ENTRIES_MAX 1000000
#define SCAN_BYTES_MAX (UINT64_C(64) << 20)

static const struct {
    enum run_malloc kind;
    const char *name; /* the value of --malloc */
    const char *stems[3];
} kinds[] = {
    {RUN_MALLOC_JEMALLOC, "jemalloc", {"libjemalloc"}},
    {RUN_MALLOC_TCMALLOC, "tcmalloc", {"libtcmalloc_minimal", "libtcmalloc"}},
    {RUN_MALLOC_MIMALLOC, "mimalloc", {"libmimalloc"}},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

const char *
run_malloc_name(enum run_malloc kind)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (kinds[i].kind == kind)
            return kinds[i].name;
    return kind == RUN_MALLOC_GLIBC ? "glibc" : NULL;
}

/* Match "libjemalloc.so", "libjemalloc.so.2", and "libjemalloc-1f2e3d.so.2", the form
   that auditwheel writes. *version is formed from the digits after ".so". */
static bool
is_library_of(const char *name, size_t length, const char *stem, unsigned *version)
{
    size_t n = strlen(stem);
    if (length <= n || memcmp(name, stem, n) != 0 || (name[n] != '.' && name[n] != '-'))
        return false;
    const char *so = memmem(name + n, length - n, ".so", 3);
    if (!so)
        return false;
    const char *end = name + length, *at = so + 3;
    if (at == end) {
        *version = 0;
        return true;
    }
    if (*at++ != '.' || at == end || *at < '0' || *at > '9')
        return false;
    unsigned v = 0;
    for (; at < end && *at >= '0' && *at <= '9' && v < 1000; at++)
        v = v * 10 + (unsigned)(*at - '0');
    *version = v + 1;
    return at == end || *at == '.';
}

enum run_malloc
run_malloc_of_path(const char *path, size_t length)
{
    const char *slash = memrchr(path, '/', length);
    const char *name = slash ? slash + 1 : path;
    size_t name_length = length - (size_t)(name - path);
    unsigned version;
    for (size_t i = 0; i < KIND_COUNT; i++)
        for (size_t k = 0; k < 3 && kinds[i].stems[k]; k++)
            if (is_library_of(name, name_length, kinds[i].stems[k], &version))
                return kinds[i].kind;
    return RUN_MALLOC_NONE;
}

/* --- what a file is ----------------------------------------------------------------------- */

/* Read the bytes that tell an ELF file's type and machine: e_ident, e_type, e_machine. */
static bool
read_head(const char *path, unsigned char head[20])
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return false;
    struct stat state;
    bool is_read =
        fstat(file, &state) == 0 && S_ISREG(state.st_mode) && read(file, head, 20) == 20;
    close(file);
    return is_read;
}

static bool
is_loadable(const char *path)
{
    unsigned char head[20], own[20];
    if (!read_head(path, head) || !read_head("/proc/self/exe", own))
        return false;
    size_t machine = offsetof(Elf64_Ehdr, e_machine), type = offsetof(Elf64_Ehdr, e_type);
    uint16_t is_type;
    memcpy(&is_type, head + type, sizeof is_type);
    return memcmp(head, ELFMAG, SELFMAG) == 0 && head[EI_CLASS] == own[EI_CLASS] &&
           head[EI_DATA] == own[EI_DATA] && is_type == ET_DYN &&
           memcmp(head + machine, own + machine, 2) == 0;
}

/* Read jemalloc's version: "5.3.0" out of "5.3.0-0-g54eaed1". */
static bool
take_version(const char *at, const char *end, char version[24])
{
    const char *begin = at;
    unsigned dots = 0;
    while (at < end && ((*at >= '0' && *at <= '9') || *at == '.'))
        dots += *at++ == '.';
    size_t length = (size_t)(at - begin);
    if (dots != 2 || length < 5 || length >= 24 || begin[0] == '.' || end - at < 4 ||
        at[0] != '-' || at[1] < '0' || at[1] > '9' || at[2] != '-' || at[3] != 'g')
        return false;
    memcpy(version, begin, length);
    version[length] = '\0';
    return true;
}

static bool
scan_version(const char *bytes, size_t length, char version[24])
{
    const char *end = bytes + length;
    for (const char *dash = bytes; dash < end; dash++) {
        dash = memmem(dash, (size_t)(end - dash), "-g", 2);
        if (!dash)
            return false;
        const char *begin = dash;
        while (begin > bytes && dash - begin < 24 && begin[-1] != '\0')
            begin--;
        if (take_version(begin, end, version))
            return true;
    }
    return false;
}

static void
read_version(const char *path, char version[24])
{
    char bytes[65536];
    FILE *file = fopen(path, "rbe");
    size_t kept = 0, got;
    uint64_t sum = 0;
    version[0] = '\0';
    while (file && sum < SCAN_BYTES_MAX &&
           (got = fread(bytes + kept, 1, sizeof bytes - kept, file)) > 0) {
        if (scan_version(bytes, kept + got, version))
            break;
        sum += got;
        size_t have = kept + got;
        kept = have < 64 ? have : 64; /* the version may straddle two reads */
        memmove(bytes, bytes + have - kept, kept);
    }
    if (file)
        fclose(file);
}

/* --- where to look ------------------------------------------------------------------------ */

struct search {
    struct run_machine *machine;
    const char *root;
    size_t seen; /* folder entries read so far, over all folders */
};

struct candidate {
    char name[256];
    unsigned version;
    size_t stem;
};

static bool
is_tellable(const char *path)
{
    return strpbrk(path, " :\t\n$") ==
           NULL; /* ld.so(8): blanks and colons separate paths, $ expands */
}

/* Compare two libraries: the earlier stem wins, then the higher version, then the shorter
   name, which is the SONAME: "so.4" before "so.4.5.10". */
static bool
is_better(const struct candidate *a, const struct candidate *b)
{
    if (a->stem != b->stem)
        return a->stem < b->stem;
    if (a->version != b->version)
        return a->version > b->version;
    size_t length = strlen(a->name), other = strlen(b->name);
    return length != other ? length < other : strcmp(a->name, b->name) < 0;
}

struct candidates {
    struct candidate best[KIND_COUNT]; /* name "": none found */
};

static void
consider(struct candidates *all, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        struct candidate c, *best = &all->best[i];
        for (c.stem = 0; c.stem < 3 && kinds[i].stems[c.stem]; c.stem++) {
            if (!is_library_of(name, length, kinds[i].stems[c.stem], &c.version))
                continue;
            memcpy(c.name, name, length + 1);
            if (!best->name[0] || is_better(&c, best))
                *best = c;
        }
    }
}

static void
take(struct search *s, const char *folder, size_t kind, const char *name)
{
    struct run_library *to = &s->machine->libraries[kinds[kind].kind];
    char path[RUN_PATH_MAX], whole[RUN_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    int m = snprintf(whole, sizeof whole, "%s%s", s->root, path);
    if (n < 0 || (size_t)n >= sizeof path || m < 0 || (size_t)m >= sizeof whole ||
        !is_tellable(path) || !is_loadable(whole))
        return;
    memcpy(to->path, path, (size_t)n + 1);
    if (kinds[kind].kind == RUN_MALLOC_JEMALLOC)
        read_version(whole, to->version);
}

/* Take the best library in a folder for each malloc that has none so far. */
static void
search_folder(struct search *s, const char *folder)
{
    struct candidates all = {.best = {{.version = 0}}};
    char path[RUN_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s%s", s->root, folder);
    DIR *entries = n > 0 && (size_t)n < sizeof path ? opendir(path) : NULL;
    const struct dirent *entry;
    while (entries && s->seen++ < ENTRIES_MAX && (entry = readdir(entries)))
        consider(&all, entry->d_name);
    if (entries)
        closedir(entries);
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (all.best[i].name[0] && !s->machine->libraries[kinds[i].kind].path[0])
            take(s, folder, i, all.best[i].name);
}

/* Search `folder`/ENTRY`below` for each entry that begins with `prefix`. */
static void
search_below(struct search *s, const char *folder, const char *prefix, const char *below)
{
    char path[RUN_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s%s", s->root, folder);
    DIR *entries = n > 0 && (size_t)n < sizeof path ? opendir(path) : NULL;
    const struct dirent *entry;
    while (entries && s->seen++ < ENTRIES_MAX && (entry = readdir(entries))) {
        if (entry->d_name[0] == '.' ||
            strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        n = snprintf(path, sizeof path, "%s/%s%s", folder, entry->d_name, below);
        if (n > 0 && (size_t)n < sizeof path)
            search_folder(s, path);
    }
    if (entries)
        closedir(entries);
}

/* Search site-packages/NAME/lib, NAME and NAME.libs of each Python in `prefix`/lib. */
static void
search_packages(struct search *s, const char *prefix)
{
    char lib[RUN_PATH_MAX], path[RUN_PATH_MAX];
    int n = snprintf(lib, sizeof lib, "%s%s/lib", s->root, prefix);
    DIR *entries = n > 0 && (size_t)n < sizeof lib ? opendir(lib) : NULL;
    const struct dirent *entry;
    while (entries && s->seen++ < ENTRIES_MAX && (entry = readdir(entries))) {
        if (strncmp(entry->d_name, "python3", 7) != 0)
            continue;
        n = snprintf(path, sizeof path, "%s/lib/%s/site-packages", prefix, entry->d_name);
        if (n < 0 || (size_t)n >= sizeof path)
            continue;
        search_below(s, path, "", "/lib");
        search_below(s, path, "", "");
    }
    if (entries)
        closedir(entries);
}

/* Search `prefix`/lib of a Python environment. */
static void
search_prefix(struct search *s, const char *prefix, const char *below)
{
    char path[RUN_PATH_MAX];
    if (!prefix || prefix[0] != '/')
        return;
    int n = snprintf(path, sizeof path, "%s%s", prefix, below);
    if (n < 0 || (size_t)n + 4 >= sizeof path)
        return;
    size_t length = (size_t)n;
    memcpy(path + length, "/lib", sizeof "/lib");
    search_folder(s, path);
    path[length] = '\0';
    search_packages(s, path);
}

static void
search_list(struct search *s, const char *folders)
{
    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        char path[RUN_PATH_MAX];
        if (folders[0] == '/' && length < sizeof path) {
            memcpy(path, folders, length);
            path[length] = '\0';
            search_folder(s, path);
        }
        folders += length + (folders[length] == ':');
    }
}

void
run_libraries_find(struct run_machine *machine, const char *root)
{
    static const char *const folders[] = {
        "/usr/local/lib", "/usr/local/lib64", "/usr/lib64", "/usr/lib", "/lib64", "/lib"};
    static const char *const parents[] = {"/usr/local/lib", "/usr/lib", "/lib"};
    struct search s = {.machine = machine, .root = root};
    search_prefix(&s, run_variable("VIRTUAL_ENV"), "");
    search_prefix(&s, run_variable("CONDA_PREFIX"), "");
    search_list(&s, run_variable("LD_LIBRARY_PATH"));
    search_prefix(&s, run_variable("HOME"), "/.local");
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        search_folder(&s, folders[i]);
    /* multiarch folders such as /usr/lib/x86_64-linux-gnu */
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++) {
        search_below(&s, parents[i], "x86_64-", "");
        search_below(&s, parents[i], "aarch64-", "");
        search_below(&s, parents[i], "riscv64-", "");
        search_below(&s, parents[i], "powerpc64", "");
    }
}
