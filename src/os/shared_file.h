/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_SHARED_FILE_H
#define DRYI_OS_SHARED_FILE_H

/*
 * A file that one process writes through its memory and others read.
 *
 * The writer makes the file, has its memory set aside, and holds a lock of it (POSIX) until the
 * process ends, however that happens. A child of a fork has no part in the lock. Readers read by
 * pread(): the file of a stranger may shrink at any time, which would be a SIGBUS in memory.
 *
 * Errors     NO_SPACE: no room in the folder. SYSTEM: anything else; errno says what.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

struct dryi_shared_file {
    int file; /* -1: none */
    void *memory;
    size_t bytes;
};

/* Mode 0600. SYSTEM with EEXIST: the name is taken. */
DRY_CHECK_RESULT enum dry_status dryi_shared_file_create(const char *path, size_t bytes,
                                                         struct dryi_shared_file *file);
/* Take the lock, or take it again; false: the system refuses. */
bool dryi_shared_file_lock(const struct dryi_shared_file *file);
/* The memory goes; the file itself stays under its name. */
void dryi_shared_file_close(struct dryi_shared_file *file);
void dryi_shared_file_remove(const char *path);

struct dryi_shared_facts {
    uint64_t bytes;
    uint32_t owner, user; /* the file's, and who looks */
    uint32_t mode;        /* permissions */
    uint64_t names;
    bool is_plain;
};

/* Open a file for reading, and for wishes if that is allowed; a link is not followed. */
DRY_CHECK_RESULT enum dry_status dryi_shared_file_open(const char *path, int *file,
                                                       struct dryi_shared_facts *facts);
/* False: they cannot be read, and errno says why; ENODATA: there are fewer bytes. */
bool dryi_shared_file_read(int file, uint64_t offset, void *into, size_t bytes);
bool dryi_shared_file_write(int file, uint64_t offset, const void *from, size_t bytes);
/* Tell whether some process holds the lock; *process: its number here, 0 if it has none. */
bool dryi_shared_file_is_held(int file, uint64_t *process);
/* A second lock, on a range, for readers that write; false: another has it. */
bool dryi_shared_file_claim(int file, uint64_t offset, uint64_t bytes);
void dryi_shared_file_release(int file, uint64_t offset, uint64_t bytes);
/* Tell whether `path` still names the open file. */
bool dryi_shared_file_is_named(int file, const char *path);

/* Visit the names in a folder that begin with `prefix`. SYSTEM: it cannot be read. */
DRY_CHECK_RESULT enum dry_status dryi_shared_file_list(
    const char *folder, const char *prefix,
    enum dry_status (*visit)(void *self, const char *name), void *self);

#endif
