/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_MACHINE_H
#define TOOL_RUN_MACHINE_H

/*
 * The things that `drystone run` looks at before it decides: the machine, what is set
 * already, and the libraries that could stand in for malloc. Nothing of it is started or
 * changed.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/topology.h>

enum run_malloc {
    RUN_MALLOC_NONE, /* not one we know */
    RUN_MALLOC_GLIBC,
    RUN_MALLOC_JEMALLOC,
    RUN_MALLOC_TCMALLOC,
    RUN_MALLOC_MIMALLOC,
    RUN_MALLOC_COUNT,
};
/* "jemalloc" ...; NULL for NONE. */
const char *run_malloc_name(enum run_malloc kind);
/* Tell whose library a path names, by its file name: "/x/libjemalloc.so.2". */
enum run_malloc run_malloc_of_path(const char *path, size_t length);

#define RUN_PATH_MAX 1024

struct run_library {
    char path[RUN_PATH_MAX]; /* as the program will see it; "": none was found */
    char version[24];        /* of jemalloc, "5.3.0"; "" where it is not known */
};

enum run_thp_mode { /* what the administrator chose for the machine */
                    RUN_THP_NOT_KNOWN,
                    RUN_THP_MODE_ALWAYS,
                    RUN_THP_MODE_ADVISED,
                    RUN_THP_MODE_NEVER,
};

struct run_machine {
    const struct dry_topology *topology;
    /* The environment: NULL for what is not set. */
    const char *(*variable)(void *self, const char *name);
    void *variable_self;
    struct run_library libraries[RUN_MALLOC_COUNT];
    enum run_thp_mode thp_mode;
    bool is_thp_disabled; /* for this process: prctl(2) */
    /* Memory policy of this process: 0 is the default, negative: the calls are forbidden. */
    int policy;
    char command[RUN_PATH_MAX]; /* this one */
    char hook[RUN_PATH_MAX];    /* of the Python package; "": it is not there */
    unsigned glibc_minor;       /* of 2.N; 0: another C library */
};

/*
 * Read this machine, or the folders below `root` ("" is this one): `root` stands before
 * paths of files that are read, never in what the program is told. The topology is the
 * caller's and must outlive `machine`.
 */
void run_machine_read(struct run_machine *machine, const struct dry_topology *topology,
                      const char *root);

#endif
