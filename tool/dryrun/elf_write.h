/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ELF_WRITE_H
#define TOOL_ELF_WRITE_H

/*
 * Write a shared library of functions that the stand-in does not implement, without a
 * compiler or a linker.
 *
 * Each function passes its record, {const char *name; uint64_t calls; void *next}, to
 * drystone_standin_unwritten() and returns that function's result. Versions serve
 * importers that require a version from this library; unversioned symbols satisfy any
 * version.
 *
 *     [ headers, symbols, texts, hash, versions, relocations ]  read
 *     [ a stub a function ]                                     read, execute
 *     [ dynamic table, address of the one import, records ]     read, write
 */

#include <stddef.h>

#include <drystone/status.h>

#include "dryrun/elf_read.h"

struct elf_library {
    enum elf_machine machine;
    const char *soname;
    const char *const *needed;
    size_t needed_count;
    const char *const *versions;
    size_t version_count;
    const char *const *functions;
    size_t function_count;
};

/* Write the library to `path`. Errors: SYSTEM, MEMORY, LIMIT (more than 2^31 bytes). */
DRY_CHECK_RESULT enum dry_status elf_write(const struct elf_library *library,
                                           const char *path, struct dry_error *err);

#endif
