/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See elf_write.h. The file is assembled in memory, section by section, and addresses
 * equal file offsets. The three segments begin at multiples of 64 KiB, which suits every
 * page size. Sources: the ELF-64 object file format; the processor supplements for
 * relocations; Intel's and Arm's manuals for the five instructions.
 */
#include "dryrun/elf_write.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#define SEGMENT_ALIGN UINT64_C(65536)
#define RECORD_BYTES 24u
#define STUB_BYTES 32u
#define IMPORT "drystone_standin_unwritten"
#define IMPORT_INDEX 1u /* index in the symbol table; the functions follow */
#define HEADERS 5u      /* program headers: three PT_LOAD, PT_DYNAMIC, PT_GNU_STACK */
#define DYNAMIC_MAX 16u /* dynamic entries without DT_NEEDED */

struct image {
    const struct elf_library *library;
    unsigned char *bytes;
    size_t size, capacity;
    bool failed;
    uint64_t symbols, texts, text_bytes, hash, versions, definitions, relocations;
    uint64_t code, data, dynamic, dynamic_count, slot, records;
};

/* --- bytes -------------------------------------------------------------------------------- */

static void
put(struct image *m, const void *bytes, size_t count)
{
    if (m->failed)
        return;
    if (count > m->capacity - m->size) {
        size_t wanted = (m->size + count) * 2;
        unsigned char *more = realloc(m->bytes, wanted);
        if (!more) {
            m->failed = true;
            return;
        }
        m->bytes = more;
        m->capacity = wanted;
    }
    if (bytes)
        memcpy(m->bytes + m->size, bytes, count);
    else
        memset(m->bytes + m->size, 0, count);
    m->size += count;
}

/* Pad with zeros to a multiple. Returns the offset reached. */
static uint64_t
align(struct image *m, uint64_t multiple)
{
    put(m, NULL, (size_t)((multiple - m->size % multiple) % multiple));
    return m->size;
}

static void
put_word(struct image *m, uint32_t word)
{
    put(m, &word, sizeof word);
}

/* --- texts -------------------------------------------------------------------------------- */

/* Offsets in the string table. The strings of a list are adjacent, in list order. */
struct texts {
    uint64_t import, soname, functions, versions, needed;
};

static uint64_t
put_text(struct image *m, const char *text)
{
    uint64_t at = m->size - m->texts;
    put(m, text, strlen(text) + 1);
    return at;
}

static uint64_t
put_texts(struct image *m, const char *const *texts, size_t count)
{
    uint64_t first = m->size - m->texts;
    for (size_t i = 0; i < count; i++)
        put_text(m, texts[i]);
    return first;
}

static struct texts
put_all_texts(struct image *m)
{
    const struct elf_library *l = m->library;
    struct texts at;
    m->texts = m->size;
    put_text(m, "");
    at.import = put_text(m, IMPORT);
    at.soname = put_text(m, l->soname);
    at.functions = put_texts(m, l->functions, l->function_count);
    at.versions = put_texts(m, l->versions, l->version_count);
    at.needed = put_texts(m, l->needed, l->needed_count);
    m->text_bytes = m->size - m->texts;
    return at;
}

static uint32_t
compute_hash(const char *name)
{
    uint32_t hash = 0;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        hash = (hash << 4) + *c;
        uint32_t high = hash & 0xf0000000;
        hash = (hash ^ high >> 24) & ~high;
    }
    return hash;
}

/* --- tables that are read ------------------------------------------------------------------ */

static size_t
symbol_count(const struct elf_library *l)
{
    return IMPORT_INDEX + 1 + l->function_count;
}

static void
put_symbols(struct image *m, const struct texts *at)
{
    const struct elf_library *l = m->library;
    m->symbols = align(m, 8);
    Elf64_Sym symbol = {0};
    put(m, &symbol, sizeof symbol);
    symbol.st_name = (Elf64_Word)at->import;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    put(m, &symbol, sizeof symbol);
    uint64_t name = at->functions;
    for (size_t i = 0; i < l->function_count; i++) {
        symbol.st_name = (Elf64_Word)name;
        symbol.st_shndx = 1; /* any but SHN_UNDEF: there are no sections */
        symbol.st_value = m->code + i * STUB_BYTES;
        symbol.st_size = STUB_BYTES;
        put(m, &symbol, sizeof symbol);
        name += strlen(l->functions[i]) + 1;
    }
}

/* Write a DT_HASH table with about two symbols per bucket, to keep the chains short. */
static void
put_hash(struct image *m)
{
    const struct elf_library *l = m->library;
    size_t count = symbol_count(l), buckets = l->function_count / 2 + 1;
    uint32_t *table = calloc(2 + buckets + count, sizeof *table);
    m->hash = align(m, 8);
    if (!table) {
        m->failed = true;
        return;
    }
    table[0] = (uint32_t)buckets;
    table[1] = (uint32_t)count;
    for (size_t i = 0; i < l->function_count; i++) {
        uint32_t *bucket = &table[2 + compute_hash(l->functions[i]) % buckets];
        uint32_t symbol = (uint32_t)(IMPORT_INDEX + 1 + i);
        table[2 + buckets + symbol] = *bucket;
        *bucket = symbol;
    }
    put(m, table, (2 + buckets + count) * sizeof *table);
    free(table);
}

static void
put_definition(struct image *m, uint16_t number, uint16_t flags, const char *name,
               uint64_t text, bool is_last)
{
    Elf64_Verdef definition = {
        .vd_version = VER_DEF_CURRENT,
        .vd_flags = flags,
        .vd_ndx = number,
        .vd_cnt = 1,
        .vd_hash = compute_hash(name),
        .vd_aux = sizeof definition,
        .vd_next = is_last ? 0 : sizeof definition + sizeof(Elf64_Verdaux),
    };
    const Elf64_Verdaux names = {.vda_name = (Elf64_Word)text};
    put(m, &definition, sizeof definition);
    put(m, &names, sizeof names);
}

static void
put_versions(struct image *m, const struct texts *at)
{
    const struct elf_library *l = m->library;
    if (l->version_count == 0)
        return;
    m->versions = align(m, 8);
    for (size_t i = 0; i < symbol_count(l); i++) {
        const uint16_t any = i <= IMPORT_INDEX ? VER_NDX_LOCAL : VER_NDX_GLOBAL;
        put(m, &any, sizeof any);
    }
    m->definitions = align(m, 8);
    put_definition(m, 1, VER_FLG_BASE, l->soname, at->soname, false);
    uint64_t text = at->versions;
    for (size_t i = 0; i < l->version_count; i++) {
        put_definition(m, (uint16_t)(2 + i), 0, l->versions[i], text,
                       i + 1 == l->version_count);
        text += strlen(l->versions[i]) + 1;
    }
}

static void
put_relocations(struct image *m, const struct texts *at)
{
    const struct elf_library *l = m->library;
    bool is_arm = l->machine == ELF_AARCH64;
    uint32_t relative = is_arm ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
    uint32_t global = is_arm ? R_AARCH64_GLOB_DAT : R_X86_64_GLOB_DAT;
    m->relocations = align(m, 8);
    uint64_t text = m->texts + at->functions;
    for (size_t i = 0; i < l->function_count; i++) {
        const Elf64_Rela name = {.r_offset = m->records + i * RECORD_BYTES,
                                 .r_info = ELF64_R_INFO(0, relative),
                                 .r_addend = (Elf64_Sxword)text};
        put(m, &name, sizeof name);
        text += strlen(l->functions[i]) + 1;
    }
    const Elf64_Rela import = {
        .r_offset = m->slot,
        .r_info = ELF64_R_INFO((uint64_t)IMPORT_INDEX, global),
    };
    put(m, &import, sizeof import);
}

/* --- code --------------------------------------------------------------------------------- */

/* Write an x86-64 stub: lea rdi, [rip + record]; jmp [rip + slot]. */
static void
put_x86_stub(struct image *m, uint64_t record)
{
    uint64_t here = m->size;
    const unsigned char lea[] = {0x48, 0x8d, 0x3d}, jmp[] = {0xff, 0x25};
    put(m, lea, sizeof lea);
    put_word(m, (uint32_t)(record - (here + 7)));
    put(m, jmp, sizeof jmp);
    put_word(m, (uint32_t)(m->slot - (here + 13)));
    put(m, NULL, STUB_BYTES - 13);
}

/* Encode adrp REGISTER, the 4 KiB page of `address`. */
static uint32_t
adrp(uint64_t here, uint64_t address, unsigned to)
{
    uint64_t pages = (address >> 12) - (here >> 12);
    return 0x90000000u | (uint32_t)(pages & 3) << 29 |
           (uint32_t)(pages >> 2 & 0x7ffff) << 5 | to;
}

/* Write an AArch64 stub: adrp, add (x0: the record); adrp, ldr, br (x16: the slot). */
static void
put_arm_stub(struct image *m, uint64_t record)
{
    uint64_t here = m->size;
    put_word(m, adrp(here, record, 0));
    put_word(m, 0x91000000u | (uint32_t)(record & 0xfff) << 10);
    put_word(m, adrp(here + 8, m->slot, 16));
    put_word(m, 0xf9400000u | (uint32_t)(m->slot & 0xfff) / 8 << 10 | 16u << 5 | 16u);
    put_word(m, 0xd61f0200u);
    put(m, NULL, STUB_BYTES - 20);
}

static void
put_code(struct image *m)
{
    const struct elf_library *l = m->library;
    for (size_t i = 0; i < l->function_count; i++) {
        uint64_t record = m->records + i * RECORD_BYTES;
        if (l->machine == ELF_AARCH64)
            put_arm_stub(m, record);
        else
            put_x86_stub(m, record);
    }
    put(m, NULL, STUB_BYTES); /* without functions the segment would be empty */
}

/* --- data --------------------------------------------------------------------------------- */

static void
put_entry(struct image *m, int64_t tag, uint64_t value)
{
    const Elf64_Dyn entry = {.d_tag = tag, .d_un.d_val = value};
    put(m, &entry, sizeof entry);
}

static void
put_dynamic(struct image *m, const struct texts *at)
{
    const struct elf_library *l = m->library;
    uint64_t text = at->needed, end = m->dynamic + m->dynamic_count * sizeof(Elf64_Dyn);
    for (size_t i = 0; i < l->needed_count; i++) {
        put_entry(m, DT_NEEDED, text);
        text += strlen(l->needed[i]) + 1;
    }
    put_entry(m, DT_SONAME, at->soname);
    put_entry(m, DT_HASH, m->hash);
    put_entry(m, DT_STRTAB, m->texts);
    put_entry(m, DT_STRSZ, m->text_bytes);
    put_entry(m, DT_SYMTAB, m->symbols);
    put_entry(m, DT_SYMENT, sizeof(Elf64_Sym));
    put_entry(m, DT_RELA, m->relocations);
    put_entry(m, DT_RELASZ, (l->function_count + 1) * sizeof(Elf64_Rela));
    put_entry(m, DT_RELAENT, sizeof(Elf64_Rela));
    if (l->version_count > 0) {
        put_entry(m, DT_VERSYM, m->versions);
        put_entry(m, DT_VERDEF, m->definitions);
        put_entry(m, DT_VERDEFNUM, l->version_count + 1);
    }
    if (!m->failed && m->size < end)
        put(m, NULL, (size_t)(end - m->size)); /* zeros are DT_NULL entries */
}

/* --- headers ------------------------------------------------------------------------------ */

static Elf64_Phdr
segment(uint32_t type, uint32_t flags, uint64_t begin, uint64_t end, uint64_t alignment)
{
    return (Elf64_Phdr){.p_type = type,
                        .p_flags = flags,
                        .p_offset = begin,
                        .p_vaddr = begin,
                        .p_paddr = begin,
                        .p_filesz = end - begin,
                        .p_memsz = end - begin,
                        .p_align = alignment};
}

static void
write_headers(struct image *m, uint64_t read_end, uint64_t code_end)
{
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                    EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = (Elf64_Half)m->library->machine,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof header,
        .e_ehsize = sizeof header,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = HEADERS,
        .e_shentsize = sizeof(Elf64_Shdr),
    };
    const Elf64_Phdr segments[HEADERS] = {
        segment(PT_LOAD, PF_R, 0, read_end, SEGMENT_ALIGN),
        segment(PT_LOAD, PF_R | PF_X, m->code, code_end, SEGMENT_ALIGN),
        segment(PT_LOAD, PF_R | PF_W, m->data, m->size, SEGMENT_ALIGN),
        segment(PT_DYNAMIC, PF_R | PF_W, m->dynamic,
                m->dynamic + m->dynamic_count * sizeof(Elf64_Dyn), 8),
        segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16),
    };
    memcpy(m->bytes, &header, sizeof header);
    memcpy(m->bytes + sizeof header, segments, sizeof segments);
}

/* Write the read-only segment, given the offsets of code and data. The first call, with
   offsets 0, determines its length. */
static struct texts
put_read_part(struct image *m)
{
    m->size = 0;
    put(m, NULL, sizeof(Elf64_Ehdr) + HEADERS * sizeof(Elf64_Phdr));
    struct texts at = put_all_texts(m);
    put_symbols(m, &at);
    put_hash(m);
    put_versions(m, &at);
    put_relocations(m, &at);
    return at;
}

static uint64_t
next_segment(uint64_t end)
{
    return (end + SEGMENT_ALIGN - 1) / SEGMENT_ALIGN * SEGMENT_ALIGN;
}

static void
make(struct image *m)
{
    const struct elf_library *l = m->library;
    put_read_part(m);
    m->code = next_segment(m->size);
    m->data = next_segment(m->code + (l->function_count + 1) * STUB_BYTES);
    m->dynamic = m->data;
    m->dynamic_count = l->needed_count + DYNAMIC_MAX;
    m->slot = m->dynamic + m->dynamic_count * sizeof(Elf64_Dyn);
    m->records = m->slot + 8;
    struct texts at = put_read_part(m);
    uint64_t read_end = m->size;
    align(m, SEGMENT_ALIGN);
    put_code(m);
    uint64_t code_end = m->size;
    align(m, SEGMENT_ALIGN);
    put_dynamic(m, &at);
    put(m, NULL, 8 + l->function_count * RECORD_BYTES);
    if (!m->failed)
        write_headers(m, read_end, code_end);
}

enum dry_status
elf_write(const struct elf_library *library, const char *path, struct dry_error *err)
{
    struct image m = {.library = library};
    make(&m);
    enum dry_status status = DRY_OK;
    FILE *out = NULL;
    if (m.failed)
        status = fail_memory(err, "no memory for a library");
    else if (m.size > INT32_MAX)
        status =
            fail_at(err, DRY_ERR_LIMIT, DRY_NO_OFFSET, "a library of more than 2 GiB");
    else if (!(out = fopen(path, "wbe")) || fwrite(m.bytes, 1, m.size, out) != m.size ||
             fflush(out) != 0)
        status = fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "%s: cannot be written: %s",
                         path, strerror(errno));
    if (out)
        fclose(out);
    free(m.bytes);
    return status;
}
