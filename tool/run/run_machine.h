/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_MACHINE_H
#define TOOL_RUN_MACHINE_H

/* The inputs of `drystone run`'s decisions: the machine, the settings already made, and
   the malloc libraries found. Reading them starts and changes nothing. */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/topology.h>

enum run_malloc {
    RUN_MALLOC_NONE, /* unknown malloc */
    RUN_MALLOC_GLIBC,
    RUN_MALLOC_JEMALLOC,
    RUN_MALLOC_TCMALLOC,
    RUN_MALLOC_MIMALLOC,
    RUN_MALLOC_COUNT,
};
/* Return a malloc's name, such as "jemalloc"; NULL for NONE. */
const char *run_malloc_name(enum run_malloc kind);
/* Tell which malloc a path is, by its file name: "/x/libjemalloc.so.2". */
enum run_malloc run_malloc_of_path(const char *path, size_t length);

#define RUN_PATH_MAX 1024

struct run_library {
    char path[RUN_PATH_MAX]; /* without `root`, for the program; "": not found */
    char version[24];        /* jemalloc's version, "5.3.0"; "": unknown */
};

enum run_thp_mode { /* the machine's setting for transparent huge pages */
                    RUN_THP_NOT_KNOWN,
                    RUN_THP_MODE_ALWAYS,
                    RUN_THP_MODE_ADVISED,
                    RUN_THP_MODE_NEVER,
};

struct run_machine {
    const struct dry_topology *topology;
    struct run_library libraries[RUN_MALLOC_COUNT];
    enum run_thp_mode thp_mode;
    bool is_thp_disabled; /* for this process, see PR_SET_THP_DISABLE in prctl(2) */
    /* Memory policy of this process, set_mempolicy(2). 0: the default; negative: the
       system calls are forbidden. */
    int policy;
    char command[RUN_PATH_MAX]; /* path of the running drystone command */
    char hook[RUN_PATH_MAX];    /* the Python package's hook folder; "": not installed */
    unsigned glibc_minor;       /* the N of glibc 2.N; 0: another C library */
};

/*
 * Read this machine, or files below `root` ("": this machine). `root` is prefixed to
 * paths that are read, but never appears in what the program is told. `topology` must
 * outlive `machine`.
 */
void run_machine_read(struct run_machine *machine, const struct dry_topology *topology,
                      const char *root);
/* Return an environment variable; NULL: not set, or empty. */
const char *run_variable(const char *name);

#endif
