/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ELF_READ_H
#define TOOL_ELF_READ_H

/*
 * Read the dynamic part of a shared library: its name, the libraries it needs, and the
 * symbols it imports and exports.
 *
 *     struct elf elf;
 *     if (elf_open(&elf, "libtorch_cuda.so", &err) != DRY_OK) ...
 *     for (size_t i = 0; i < elf.symbol_count; i++) {
 *         struct elf_symbol symbol = elf_symbol(&elf, i);
 *         ...
 *     }
 *     elf_close(&elf);
 *
 * The file is not trusted: offsets, counts and strings are checked against its size. Only
 * program headers and the dynamic table are used, because sections may be stripped.
 *
 * Ownership  Names are bytes of the file; they live until elf_close().
 * Errors     FORMAT with the byte where, and what was expected; UNSUPPORTED: not of 64 bits and
 *            little-endian, or of another kind of machine than x86-64 and aarch64; SYSTEM.
 * Cost       The file is mapped, and pages of its dynamic part alone are read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

enum elf_machine { ELF_X86_64 = 62, ELF_AARCH64 = 183 };

struct elf {
    const unsigned char *bytes;
    size_t size;
    enum elf_machine machine;
    const char *soname; /* NULL: not set */
    size_t symbol_count;
    /* Private: checked offsets into the file. */
    uint64_t dynamic, dynamic_count;
    uint64_t texts, text_bytes;
    uint64_t symbols, versions, needs, need_count;
};

struct elf_symbol {
    const char *name; /* "" for symbol 0, which ELF reserves */
    bool is_defined, is_local;
    /* The required version, and the library that has to provide it; NULL: any. */
    const char *version, *library;
};

DRY_CHECK_RESULT enum dry_status elf_open(struct elf *elf, const char *path,
                                          struct dry_error *err);
void elf_close(struct elf *elf);
/* Return symbol `index`. Requires index < symbol_count. */
struct elf_symbol elf_symbol(const struct elf *elf, size_t index);
/* Return the name of needed library `index`; NULL if there are no more. */
const char *elf_needed(const struct elf *elf, size_t index);

#endif
