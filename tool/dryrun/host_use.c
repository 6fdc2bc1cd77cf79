/* SPDX-License-Identifier: Apache-2.0 */
/* See host_use.h. Cost of a look: of one process 1 ms; of several the kernel walks the pages of
   each, some 10 ms for 300 MiB. */
#include "dryrun/host_use.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/now.h"

#define MEMBERS_MAX 4096
#define SHARE_OF_TIME 50

/* --- what the kernel tells ---------------------------------------------------------------- */

/* Read "NAME:  123 kB" lines of a file of a process into bytes; 0 where there is none. */
static bool
read_lines(pid_t pid, const char *file, const char *const *names, size_t count,
           uint64_t *bytes)
{
    char path[80], line[200];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
    FILE *in = fopen(path, "r");
    memset(bytes, 0, count * sizeof *bytes);
    while (in && fgets(line, sizeof line, in)) {
        size_t length = strcspn(line, ":");
        for (size_t i = 0; i < count && line[length] == ':'; i++)
            if (strlen(names[i]) == length && memcmp(line, names[i], length) == 0)
                bytes[i] = strtoull(line + length + 1, NULL, 10) << 10;
    }
    if (in)
        fclose(in);
    return in != NULL;
}

static bool
has_left(const struct host_watch *w, pid_t pid, const char *ending)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%ld.%s", w->out, (long)pid, ending);
    return access(path, F_OK) == 0;
}

/* A process of the program. */
struct member {
    pid_t pid;
    bool is_child; /* it, or a process above it, was started by one that used a device */
};

/* Append the children of a member to `members`, which has room for MEMBERS_MAX. Returns the new
   count. */
static size_t
add_children(const struct host_watch *w, const struct member *parent,
             struct member *members, size_t count)
{
    char path[320];
    bool are_children = parent->is_child || has_left(w, parent->pid, "begun");
    snprintf(path, sizeof path, "/proc/%ld/task", (long)parent->pid);
    DIR *threads = opendir(path);
    const struct dirent *thread;
    while (threads && (thread = readdir(threads)) != NULL) {
        long long child;
        snprintf(path, sizeof path, "/proc/%ld/task/%s/children", (long)parent->pid,
                 thread->d_name);
        FILE *in = thread->d_name[0] == '.' ? NULL : fopen(path, "r");
        char word[24];
        while (in && count < MEMBERS_MAX && fscanf(in, "%23s", word) == 1)
            if ((child = strtoll(word, NULL, 10)) > 0)
                members[count++] = (struct member){(pid_t)child, are_children};
        if (in)
            fclose(in);
    }
    if (threads)
        closedir(threads);
    return count;
}

struct look {
    uint64_t own, shared, children; /* bytes; `own` without shared memory */
    size_t child_count;
    bool is_alone;  /* there is one process: its pages are its own */
    uint64_t files; /* bytes of files of /dev/shm that processes have mapped, each once */
    unsigned long long *inodes;
    size_t inode_count;
};

/* Add a file, unless the look has met the file before. */
static void
add_file(struct look *look, unsigned long long inode, uint64_t bytes)
{
    for (size_t i = 0; i < look->inode_count; i++)
        if (look->inodes[i] == inode)
            return;
    unsigned long long *more =
        realloc(look->inodes, (look->inode_count + 1) * sizeof *more);
    if (!more)
        return;
    look->inodes = more;
    look->inodes[look->inode_count++] = inode;
    look->files += bytes;
}

/* Add the files of /dev/shm that a process has mapped: tensors of workers. They count with all
   their bytes, for a process may map a file that another one wrote. */
static void
add_files(struct look *look, pid_t pid)
{
    char path[80], line[600];
    snprintf(path, sizeof path, "/proc/%ld/maps", (long)pid);
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in)) {
        char bounds[40], inode[24], *end; /* BEGIN-END MODE OFFSET DEVICE INODE PATH */
        if (!strstr(line, " /dev/shm/") ||
            sscanf(line, "%39s %*s %*s %*s %23s", bounds, inode) != 2)
            continue;
        unsigned long long begin = strtoull(bounds, &end, 16);
        if (*end == '-')
            add_file(look, strtoull(inode, NULL, 10),
                     strtoull(end + 1, NULL, 16) - begin);
    }
    if (in)
        fclose(in);
}

/* --- a look ------------------------------------------------------------------------------- */

static void
raise_to(uint64_t *most, uint64_t bytes)
{
    *most = bytes > *most ? bytes : *most;
}

/* Return what is kept of a process; NULL: memory ran out. */
static struct host_process *
find_process(struct host_watch *w, pid_t pid)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->processes[i].pid == pid)
            return &w->processes[i];
    struct host_process *more = realloc(w->processes, (w->count + 1) * sizeof *more);
    if (!more)
        return NULL;
    w->processes = more;
    w->processes[w->count] = (struct host_process){.pid = pid};
    return &w->processes[w->count++];
}

static void
look_at(struct host_watch *w, const struct member *m, struct look *look)
{
    static const char *const parts[] = {"Pss_Anon", "Pss_Shmem"}, *const whole[] = {
                                                                      "VmHWM", "RssFile",
                                                                      "RssAnon",
                                                                      "RssShmem"};
    uint64_t part[2], now[4];
    struct host_process *p = find_process(w, m->pid);
    if (!p || p->is_done || !read_lines(m->pid, "status", whole, 4, now))
        return;
    bool is_shared = !look->is_alone &&
                     read_lines(m->pid, "smaps_rollup", parts, 2, part) &&
                     part[0] + part[1] > 0;
    if (!is_shared) /* or an old kernel, where shared pages count twice */
        memcpy(part, now + 2, sizeof part);
    p->is_done = has_left(w, m->pid, "host");
    if (p->is_done)
        return;
    uint64_t bytes = part[0] + part[1];
    raise_to(&p->file_bytes, now[1]);
    add_files(look, m->pid);
    look->own += part[0];
    look->shared += part[1];
    if (m->is_child && !has_left(w, m->pid, "begun")) {
        look->children += bytes;
        look->child_count++;
        raise_to(&w->use.child_bytes, bytes);
    } else if (now[0] > p->file_bytes &&
               !m->is_child) { /* a child's has what it inherited */
        raise_to(&w->use.peak_bytes, now[0] - p->file_bytes);
    }
}

/* Return whether memory has grown since the last look. Shared pages count twice. */
static bool
has_grown(struct host_watch *w, const struct member *members, size_t count)
{
    static const char *const names[] = {"RssAnon", "RssShmem"};
    uint64_t sum = 0, bytes[2];
    for (size_t i = 0; i < count; i++) {
        read_lines(members[i].pid, "status", names, 2, bytes);
        sum += bytes[0] + bytes[1];
    }
    bool is_more = sum > w->rough_bytes + w->rough_bytes / HOST_GROWN_SHARE;
    if (is_more)
        w->rough_bytes = sum;
    return is_more;
}

static void
look_at_all(struct host_watch *w, const struct member *members, size_t count)
{
    struct look look = {.is_alone = count == 1};
    for (size_t i = 0; i < count; i++)
        look_at(w, &members[i], &look);
    free(look.inodes);
    raise_to(&look.shared, look.files);
    raise_to(&w->use.peak_bytes, look.own + look.shared);
    raise_to(&w->use.shared_bytes, look.shared);
    raise_to(&w->use.children_bytes, look.children);
    if (look.child_count > w->use.child_count)
        w->use.child_count = look.child_count;
}

void
host_watch_look(struct host_watch *w, pid_t root)
{
    uint64_t begin = now_ns(CLOCK_PROCESS_CPUTIME_ID), now = now_ns(CLOCK_MONOTONIC);
    struct member *members =
        now < w->rough_ns ? NULL : malloc(MEMBERS_MAX * sizeof *members);
    if (!members)
        return;
    members[0] = (struct member){.pid = root};
    size_t count = 1;
    for (size_t i = 0; i < count; i++)
        count = add_children(w, &members[i], members, count);
    bool is_due = has_grown(w, members, count) || now >= w->next_ns;
    uint64_t middle = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    w->rough_ns = now + SHARE_OF_TIME * (middle - begin);
    if (is_due) {
        look_at_all(w, members, count);
        w->next_ns = now + SHARE_OF_TIME * (now_ns(CLOCK_PROCESS_CPUTIME_ID) - middle);
    }
    free(members);
}

void
host_watch_end(struct host_watch *w)
{
    for (size_t i = 0; i < w->count; i++) {
        char path[4400], line[60] = "", *rest = line;
        snprintf(path, sizeof path, "%s/%ld.host", w->out, (long)w->processes[i].pid);
        FILE *in = fopen(path, "r");
        if (!in)
            continue;
        uint64_t peak = fgets(line, sizeof line, in) ? strtoull(line, &rest, 10) : 0;
        raise_to(&w->processes[i].file_bytes, strtoull(rest, NULL, 10));
        fclose(in);
        if (peak > w->processes[i].file_bytes)
            raise_to(&w->use.peak_bytes, peak - w->processes[i].file_bytes);
    }
    free(w->processes);
    w->processes = NULL;
    w->count = 0;
}
