/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ELF_READ_H
#define TOOL_ELF_READ_H

/*
 * The dynamic part of a shared library: what it is called, what it needs, which symbols it wants
 * and which it has.
 *
 *     struct elf elf;
 *     if (elf_open(&elf, "libtorch_cuda.so", &err) != DRY_OK) ...
 *     for (size_t i = 0; i < elf.symbol_count; i++) {
 *         struct elf_symbol symbol = elf_symbol(&elf, i);
 *         ...
 *     }
 *     elf_close(&elf);
 *
 * The file is not trusted: every offset, count and text is held against its size. Only
 * program headers and the dynamic table are read, for sections may have been stripped.
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
    const char *soname; /* NULL: none */
    size_t symbol_count;
    /* Inside: checked offsets into the file. */
    uint64_t dynamic, dynamic_count;
    uint64_t texts, text_bytes;
    uint64_t symbols, versions, needs, need_count;
};

struct elf_symbol {
    const char *name; /* "" for the first */
    bool is_defined, is_local;
    /* The version that is wanted, and of which library; NULL: any. */
    const char *version, *library;
};

DRY_CHECK_RESULT enum dry_status elf_open(struct elf *elf, const char *path,
                                          struct dry_error *err);
void elf_close(struct elf *elf);
/* The symbol `index`, below symbol_count. */
struct elf_symbol elf_symbol(const struct elf *elf, size_t index);
/* The library that is needed as number `index`, from 0; NULL beyond the last. */
const char *elf_needed(const struct elf *elf, size_t index);

#endif
