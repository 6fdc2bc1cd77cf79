/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_SHARED_FILE_H
#define DRYI_OS_SHARED_FILE_H

/*
 * A file that one process writes through a mapping and others read.
 *
 * The writer creates the file, allocates its blocks, and holds a POSIX lock on it until
 * the process ends for any reason. A child of a fork does not inherit the lock. Readers
 * use pread(): another user may shrink the file at any time, which would raise SIGBUS in
 * a mapping.
 *
 * Errors     NO_SPACE: no space in the folder. SYSTEM: any other failure; errno has the
 *            reason.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

struct dryi_shared_file {
    int file; /* -1: not open */
    void *memory;
    size_t bytes;
};

/* Create the file with mode 0600, map it and take the lock. SYSTEM with EEXIST: the name
   exists. On failure the file is removed. */
DRY_CHECK_RESULT enum dry_status dryi_shared_file_create(const char *path, size_t bytes,
                                                         struct dryi_shared_file *file);
/* Take the writer's lock, or take it again. False: the system refuses. */
bool dryi_shared_file_lock(const struct dryi_shared_file *file);
/* Unmap and close; the file itself stays under its name. */
void dryi_shared_file_close(struct dryi_shared_file *file);
void dryi_shared_file_remove(const char *path);

struct dryi_shared_facts {
    uint64_t bytes;
    uint32_t owner, user; /* user ids: the file's owner, the calling process */
    uint32_t mode;        /* permission bits */
    uint64_t names;
    bool is_plain;
};

/* Open a file for reading, and for writing too if permitted, which requests need. Links
   are not followed. */
DRY_CHECK_RESULT enum dry_status dryi_shared_file_open(const char *path, int *file,
                                                       struct dryi_shared_facts *facts);
/* Read or write `bytes` bytes in full. False: failed, errno has the reason; ENODATA: the
   file is shorter. */
bool dryi_shared_file_read(int file, uint64_t offset, void *into, size_t bytes);
bool dryi_shared_file_write(int file, uint64_t offset, const void *from, size_t bytes);
/* Tell whether a process holds the writer's lock. *process gets its id in this PID
   namespace, or 0 if it has none here. */
bool dryi_shared_file_is_held(int file, uint64_t *process);
/* Lock a range against other readers that write requests. False: another process holds
   it. */
bool dryi_shared_file_claim(int file, uint64_t offset, uint64_t bytes);
void dryi_shared_file_release(int file, uint64_t offset, uint64_t bytes);
/* Tell whether `path` still names this open file, so a replaced file is noticed. */
bool dryi_shared_file_is_named(int file, const char *path);

/* Visit the names in a folder that begin with `prefix`, until `visit` fails. SYSTEM: the
   folder cannot be read. */
DRY_CHECK_RESULT enum dry_status dryi_shared_file_list(
    const char *folder, const char *prefix,
    enum dry_status (*visit)(void *self, const char *name), void *self);

#endif
