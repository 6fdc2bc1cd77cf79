/* SPDX-License-Identifier: Apache-2.0 */
/* See run_sample.h. The files are described in proc(5): statm, maps, smaps_rollup,
   numa_maps and environ of a process; status and children of a thread. */
#include "run/run_sample.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAMILY_MAX 1024
#define THREADS_MAX 256
#define ENVIRON_BYTES_MAX (UINT64_C(4) << 20)

static FILE *
open_file(pid_t process, const char *name)
{
    char path[128];
    int n = snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
}

/* Read the number of a line "KEY:   123 kB", if the key matches. */
static bool
read_keyed(const char *line, const char *key, uint64_t *number)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0 || line[length] != ':')
        return false;
    *number = strtoull(line + length + 1, NULL, 10);
    return true;
}

/* --- which process ------------------------------------------------------------------------ */

struct family {
    pid_t members[FAMILY_MAX];
    size_t count;
};

/* Add a thread's children from a file such as "12 13 ". Kernels without that file yield
   only the program itself. */
static void
add_children(struct family *f, pid_t process, const char *thread)
{
    char path[96];
    int child;
    snprintf(path, sizeof path, "task/%.32s/children", thread);
    FILE *file = open_file(process, path);
    while (file && f->count < FAMILY_MAX &&
           fscanf(file, "%d", &child) == 1) /* NOLINT(cert-err34-c): the kernel's */
        f->members[f->count++] = child;
    if (file)
        fclose(file);
}

static DIR *
open_threads(pid_t process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    return opendir(path);
}

static void
find_family(struct family *f, pid_t program)
{
    f->members[0] = program;
    f->count = 1;
    for (size_t i = 0; i < f->count; i++) {
        DIR *threads = open_threads(f->members[i]);
        const struct dirent *entry;
        for (size_t n = 0; threads && n < THREADS_MAX && (entry = readdir(threads)); n++)
            if (entry->d_name[0] != '.')
                add_children(f, f->members[i], entry->d_name);
        if (threads)
            closedir(threads);
    }
}

static uint64_t
read_resident(pid_t process)
{
    unsigned long long whole, resident = 0;
    FILE *file = open_file(process, "statm");
    if (file &&
        fscanf(file, "%llu %llu", &whole, &resident) != 2) /* NOLINT(cert-err34-c) */
        resident = 0;
    if (file)
        fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static pid_t
find_largest(pid_t program, uint64_t *resident_bytes)
{
    struct family f;
    pid_t largest = program;
    *resident_bytes = 0;
    find_family(&f, program);
    for (size_t i = 0; i < f.count; i++) {
        uint64_t bytes = read_resident(f.members[i]);
        if (bytes <= *resident_bytes)
            continue;
        largest = f.members[i];
        *resident_bytes = bytes;
    }
    return largest;
}

/* --- what it has -------------------------------------------------------------------------- */

/* Read a list of CPUs as the kernel writes it: "0-3,8". */
static void
read_list(const char *text, struct dry_topology_cpus *cpus)
{
    while (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long i = first; i <= last && i < DRY_TOPOLOGY_CPUS_MAX; i++)
            cpus->words[i / 64] |= UINT64_C(1) << i % 64;
        text = *end == ',' ? end + 1 : end;
    }
}

static void
read_thread(struct run_sample *s, const char *name, const struct run_plan *plan)
{
    static const char key[] = "Cpus_allowed_list:\t";
    char path[96], line[8192];
    struct dry_topology_cpus cpus = {{0}};
    snprintf(path, sizeof path, "task/%.32s/status", name);
    FILE *file = open_file(s->process, path);
    bool is_known = false, is_stray = false;
    while (file && fgets(line, sizeof line, file)) {
        uint64_t number;
        if (read_keyed(line, "THP_enabled", &number))
            s->is_thp_enabled = number != 0;
        if (strncmp(line, key, sizeof key - 1) != 0)
            continue;
        read_list(line + sizeof key - 1, &cpus);
        is_known = true;
    }
    if (file)
        fclose(file);
    for (size_t i = 0; i < DRY_TOPOLOGY_CPUS_MAX / 64; i++) {
        s->cpus.words[i] |= cpus.words[i];
        is_stray |= (cpus.words[i] & ~plan->cpus.words[i]) != 0;
    }
    s->thread_count += is_known;
    s->stray_count += is_known && is_stray;
    s->knows_cpus |= is_known;
}

static void
read_threads(struct run_sample *s, const struct run_plan *plan)
{
    DIR *folder = open_threads(s->process);
    const struct dirent *entry;
    while (folder && s->thread_count < THREADS_MAX && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            read_thread(s, entry->d_name, plan);
    if (folder)
        closedir(folder);
}

/* Tell whether a path is libdrystone_torch_2_15.so or libdrystone_plug.so, which the
   Python package loads to install our allocator. */
static bool
is_seam(const char *path, size_t length)
{
    static const char *const stems[] = {"/libdrystone_torch_", "/libdrystone_plug."};
    const char *name = memrchr(path, '/', length);
    return strncmp(name, stems[0], strlen(stems[0])) == 0 ||
           strncmp(name, stems[1], strlen(stems[1])) == 0;
}

static void
read_maps(struct run_sample *s)
{
    static const char deleted[] = " (deleted)";
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = open_file(s->process, "maps");
    while (file && getline(&line, &capacity, file) > 0) {
        const char *path = strchr(line, '/');
        s->knows_maps = true;
        if (!path)
            continue;
        size_t length = strcspn(path, "\n");
        if (length > sizeof deleted && memcmp(path + length - (sizeof deleted - 1),
                                              deleted, sizeof deleted - 1) == 0)
            length -= sizeof deleted - 1;
        s->has_allocator |= is_seam(path, length);
        s->mallocs |= 1u << run_malloc_of_path(path, length);
    }
    free(line);
    if (file)
        fclose(file);
}

static void
read_rollup(struct run_sample *s)
{
    char line[256];
    FILE *file = open_file(s->process, "smaps_rollup");
    while (file && fgets(line, sizeof line, file)) {
        uint64_t kib;
        if (read_keyed(line, "Anonymous", &kib)) {
            s->anonymous_bytes = kib * 1024;
            s->knows_pages = true;
        } else if (read_keyed(line, "AnonHugePages", &kib)) {
            s->huge_bytes = kib * 1024;
        }
    }
    if (file)
        fclose(file);
}

/* Add a line such as "7f00 default anon=5 N0=3 N1=2 kernelpagesize_kB=4". File mappings
   are skipped: their pages may be on any node. */
static void
add_numa_line(struct run_sample *s, const char *line)
{
    const char *size = strstr(line, "kernelpagesize_kB=");
    if (!size || strstr(line, " file="))
        return;
    uint64_t page = strtoull(size + strlen("kernelpagesize_kB="), NULL, 10) * 1024;
    for (const char *at = strstr(line, " N"); at; at = strstr(at + 1, " N")) {
        char *end;
        unsigned long node = strtoul(at + 2, &end, 10);
        if (*end == '=' && node < DRY_TOPOLOGY_NODES_MAX)
            s->node_bytes[node] += strtoull(end + 1, NULL, 10) * page;
    }
}

static void
read_nodes(struct run_sample *s)
{
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = open_file(s->process, "numa_maps");
    while (file && getline(&line, &capacity, file) > 0) {
        s->knows_nodes = true;
        add_numa_line(s, line);
    }
    free(line);
    if (file)
        fclose(file);
}

/* Compare a variable with its value. glibc overwrites colons between its tunables with
   zeros, so a zero matches a colon. */
static bool
is_value(const char *bytes, size_t length, const char *value)
{
    size_t n = strlen(value);
    if (length <= n || bytes[n] != '\0')
        return false;
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != value[i] && (bytes[i] != '\0' || value[i] != ':'))
            return false;
    return true;
}

static void
find_variables(struct run_sample *s, const char *bytes, size_t length,
               const struct run_plan *plan)
{
    for (size_t at = 0; at < length; at += strlen(bytes + at) + 1) {
        for (size_t i = 0; i < plan->count; i++) {
            const struct run_setting *set = &plan->settings[i];
            size_t n = strlen(set->name);
            if (set->what == RUN_WHAT_VARIABLE &&
                strncmp(bytes + at, set->name, n) == 0 && bytes[at + n] == '=' &&
                is_value(bytes + at + n + 1, length - at - n - 1, set->value))
                s->has_variable[i] = true;
        }
    }
}

static void
read_variables(struct run_sample *s, const struct run_plan *plan)
{
    char *bytes = malloc(ENVIRON_BYTES_MAX + 1);
    FILE *file = open_file(s->process, "environ");
    if (bytes && file) {
        size_t got = fread(bytes, 1, ENVIRON_BYTES_MAX, file);
        bytes[got] = '\0';                  /* terminates a truncated environment */
        s->knows_variables = !ferror(file); /* an empty environment is valid */
        find_variables(s, bytes, got + 1, plan);
    }
    free(bytes);
    if (file)
        fclose(file);
}

bool
run_sample_read(struct run_sample *sample, pid_t program, const struct run_plan *plan)
{
    memset(sample, 0, sizeof *sample);
    sample->is_thp_enabled = -1;
    sample->process = find_largest(program, &sample->resident_bytes);
    read_threads(sample, plan);
    read_maps(sample);
    read_rollup(sample);
    if (plan->memory_mode != RUN_MEMORY_KEEP)
        read_nodes(sample);
    read_variables(sample, plan);
    return sample->knows_cpus && sample->knows_maps;
}
