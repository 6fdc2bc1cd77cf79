/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See elf_read.h. The load segments translate addresses to file offsets. The number of
 * symbols comes from the hash table, DT_HASH or DT_GNU_HASH. Sources: the ELF-64 object
 * file format, and the gABI extensions for GNU hash and symbol versions.
 */
#include "dryrun/elf_read.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

/* --- bounds ------------------------------------------------------------------------------- */

static bool
has(const struct elf *e, uint64_t offset, uint64_t bytes)
{
    return offset <= e->size && bytes <= e->size - offset;
}

static bool
has_array(const struct elf *e, uint64_t offset, uint64_t count, uint64_t bytes)
{
    return count <= e->size / bytes && has(e, offset, count * bytes);
}

/* Copy a record out of the file, because records need not be aligned. */
static void
get(const struct elf *e, uint64_t offset, void *to, size_t bytes)
{
    memcpy(to, e->bytes + offset, bytes);
}

static uint32_t
get_word(const struct elf *e, uint64_t offset)
{
    uint32_t word;
    get(e, offset, &word, sizeof word);
    return word;
}

/* Return the string at offset `at` of the string table; "" if it is not terminated. */
static const char *
text_at(const struct elf *e, uint64_t at)
{
    if (at >= e->text_bytes)
        return "";
    const char *text = (const char *)e->bytes + e->texts + at;
    return memchr(text, 0, e->text_bytes - at) ? text : "";
}

/* --- segments ----------------------------------------------------------------------------- */

static Elf64_Ehdr
get_header(const struct elf *e)
{
    Elf64_Ehdr header;
    get(e, 0, &header, sizeof header);
    return header;
}

static Elf64_Phdr
segment_at(const struct elf *e, uint16_t index)
{
    Elf64_Phdr segment;
    get(e, get_header(e).e_phoff + (uint64_t)index * sizeof segment, &segment,
        sizeof segment);
    return segment;
}

/* Translate an address to a file offset. False: no load segment contains the address. */
static bool
find_offset(const struct elf *e, uint64_t address, uint64_t *offset)
{
    uint16_t count = get_header(e).e_phnum;
    for (uint16_t i = 0; i < count; i++) {
        Elf64_Phdr s = segment_at(e, i);
        if (s.p_type != PT_LOAD || address < s.p_vaddr ||
            address - s.p_vaddr >= s.p_filesz || s.p_offset > e->size)
            continue;
        *offset = s.p_offset + (address - s.p_vaddr);
        return *offset >= s.p_offset && has(e, *offset, 0);
    }
    return false;
}

static enum dry_status
check_header(struct elf *e, struct dry_error *err)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F'};
    if (!has(e, 0, sizeof(Elf64_Ehdr)) || memcmp(e->bytes, magic, sizeof magic) != 0)
        return fail_at(err, DRY_ERR_FORMAT, 0, "not a shared library: no ELF header");
    Elf64_Ehdr header = get_header(e);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
        return fail_at(err, DRY_ERR_UNSUPPORTED, EI_CLASS,
                       "class %u, data %u: 64 bits and little-endian are expected",
                       header.e_ident[EI_CLASS], header.e_ident[EI_DATA]);
    e->machine = (enum elf_machine)header.e_machine;
    if (header.e_machine != ELF_X86_64 && header.e_machine != ELF_AARCH64)
        return fail_at(err, DRY_ERR_UNSUPPORTED, 18,
                       "machine %u: x86-64 or aarch64 is expected", header.e_machine);
    if (header.e_phentsize != sizeof(Elf64_Phdr) ||
        !has_array(e, header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr)))
        return fail_at(err, DRY_ERR_FORMAT, 32,
                       "the program headers lie outside of the file");
    return DRY_OK;
}

/* --- the dynamic table -------------------------------------------------------------------- */

static Elf64_Dyn
entry_at(const struct elf *e, uint64_t index)
{
    Elf64_Dyn entry;
    get(e, e->dynamic + index * sizeof entry, &entry, sizeof entry);
    return entry;
}

static enum dry_status
find_dynamic(struct elf *e, struct dry_error *err)
{
    uint16_t count = get_header(e).e_phnum;
    for (uint16_t i = 0; i < count; i++) {
        Elf64_Phdr s = segment_at(e, i);
        if (s.p_type != PT_DYNAMIC)
            continue;
        e->dynamic = s.p_offset;
        e->dynamic_count = s.p_filesz / sizeof(Elf64_Dyn);
        if (!has_array(e, s.p_offset, e->dynamic_count, sizeof(Elf64_Dyn)))
            return fail_at(err, DRY_ERR_FORMAT, s.p_offset,
                           "the dynamic table lies outside of the file");
        return DRY_OK;
    }
    return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                   "not a shared library: no dynamic table");
}

/* Find the value of the first dynamic entry with this tag. False: there is none. */
static bool
find_entry(const struct elf *e, int64_t tag, uint64_t *value)
{
    for (uint64_t i = 0; i < e->dynamic_count; i++) {
        Elf64_Dyn entry = entry_at(e, i);
        if (entry.d_tag == DT_NULL)
            return false;
        if (entry.d_tag == tag) {
            *value = entry.d_un.d_val;
            return true;
        }
    }
    return false;
}

/* Find the file offset of the table that an entry points to; 0: no such entry. */
static enum dry_status
find_table(const struct elf *e, int64_t tag, const char *what, uint64_t *offset,
           struct dry_error *err)
{
    uint64_t address;
    *offset = 0;
    if (!find_entry(e, tag, &address))
        return DRY_OK;
    if (!find_offset(e, address, offset))
        return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       "%s: address 0x%llx lies in no segment of the file", what,
                       (unsigned long long)address);
    return DRY_OK;
}

/* --- how many symbols --------------------------------------------------------------------- */

/* Count the symbols. DT_GNU_HASH has no count: the last symbol of the highest chain is
   the last one of the table. */
static bool
count_by_gnu_hash(const struct elf *e, uint64_t at, uint64_t *count)
{
    if (!has(e, at, 16))
        return false;
    uint32_t buckets = get_word(e, at), first = get_word(e, at + 4);
    uint64_t filters = get_word(e, at + 8);
    uint64_t bucket = at + 16 + filters * 8, chain = bucket + (uint64_t)buckets * 4;
    uint32_t last = 0;
    if (!has_array(e, at + 16, filters, 8) || !has_array(e, bucket, buckets, 4))
        return false;
    for (uint32_t i = 0; i < buckets; i++) {
        uint32_t begin = get_word(e, bucket + (uint64_t)i * 4);
        last = begin > last ? begin : last;
    }
    *count = first;
    if (last < first)
        return true; /* no symbol is defined */
    for (;; last++) {
        uint64_t link = chain + (uint64_t)(last - first) * 4;
        if (!has(e, link, 4))
            return false;
        if (get_word(e, link) & 1)
            break;
    }
    *count = (uint64_t)last + 1;
    return true;
}

static enum dry_status
count_symbols(struct elf *e, struct dry_error *err)
{
    uint64_t hash, gnu, count = 0;
    enum dry_status status = find_table(e, DT_HASH, "DT_HASH", &hash, err);
    if (status == DRY_OK)
        status = find_table(e, DT_GNU_HASH, "DT_GNU_HASH", &gnu, err);
    if (status != DRY_OK)
        return status;
    if (hash && has(e, hash, 8))
        count = get_word(e, hash + 4);
    else if (!gnu || !count_by_gnu_hash(e, gnu, &count))
        return fail_at(err, DRY_ERR_FORMAT, gnu ? gnu : DRY_NO_OFFSET,
                       "no hash table that tells how many symbols there are");
    if (!has_array(e, e->symbols, count, sizeof(Elf64_Sym)))
        return fail_at(err, DRY_ERR_FORMAT, e->symbols,
                       "%llu symbols lie outside of the file", (unsigned long long)count);
    e->symbol_count = count;
    return DRY_OK;
}

/* --- opening ------------------------------------------------------------------------------ */

static enum dry_status
find_tables(struct elf *e, struct dry_error *err)
{
    uint64_t soname;
    enum dry_status status = find_dynamic(e, err);
    if (status == DRY_OK)
        status = find_table(e, DT_STRTAB, "DT_STRTAB", &e->texts, err);
    if (status == DRY_OK)
        status = find_table(e, DT_SYMTAB, "DT_SYMTAB", &e->symbols, err);
    if (status == DRY_OK)
        status = find_table(e, DT_VERSYM, "DT_VERSYM", &e->versions, err);
    if (status == DRY_OK)
        status = find_table(e, DT_VERNEED, "DT_VERNEED", &e->needs, err);
    if (status != DRY_OK)
        return status;
    if (!e->texts || !e->symbols || !find_entry(e, DT_STRSZ, &e->text_bytes) ||
        !has(e, e->texts, e->text_bytes))
        return fail_at(err, DRY_ERR_FORMAT, e->texts,
                       "no table of symbols and texts within the file");
    if (!find_entry(e, DT_VERNEEDNUM, &e->need_count))
        e->need_count = 0;
    if (find_entry(e, DT_SONAME, &soname))
        e->soname = text_at(e, soname);
    status = count_symbols(e, err);
    if (status == DRY_OK && e->versions && !has_array(e, e->versions, e->symbol_count, 2))
        return fail_at(err, DRY_ERR_FORMAT, e->versions,
                       "the versions of symbols lie outside of the file");
    return status;
}

enum dry_status
elf_open(struct elf *e, const char *path, struct dry_error *err)
{
    struct stat about;
    *e = (struct elf){0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "%s", strerror(errno));
    bool is_file =
        fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0;
    void *bytes = MAP_FAILED;
    if (is_file)
        bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (bytes == MAP_FAILED)
        return fail_at(err, is_file ? DRY_ERR_SYSTEM : DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       is_file ? "cannot be mapped"
                               : "not a shared library: not a plain file "
                                 "with something in it");
    e->bytes = bytes;
    e->size = (size_t)about.st_size;
    enum dry_status status = check_header(e, err);
    if (status == DRY_OK)
        status = find_tables(e, err);
    if (status != DRY_OK)
        elf_close(e);
    return status;
}

void
elf_close(struct elf *e)
{
    if (e->bytes)
        munmap((void *)(uintptr_t)e->bytes, e->size);
    *e = (struct elf){0};
}

/* --- what is there ------------------------------------------------------------------------ */

/* Find the name of version `index` among the versions required from other libraries
   (DT_VERNEED), a list of lists. */
static void
find_version(const struct elf *e, uint16_t index, struct elf_symbol *symbol)
{
    uint64_t at = e->needs;
    for (uint64_t i = 0; i < e->need_count && has(e, at, sizeof(Elf64_Verneed)); i++) {
        Elf64_Verneed need;
        get(e, at, &need, sizeof need);
        uint64_t part = at + need.vn_aux;
        for (uint16_t k = 0; k < need.vn_cnt && has(e, part, sizeof(Elf64_Vernaux));
             k++) {
            Elf64_Vernaux version;
            get(e, part, &version, sizeof version);
            if (version.vna_other == index) {
                symbol->version = text_at(e, version.vna_name);
                symbol->library = text_at(e, need.vn_file);
                return;
            }
            if (version.vna_next == 0)
                break;
            part += version.vna_next;
        }
        if (need.vn_next == 0)
            return;
        at += need.vn_next;
    }
}

struct elf_symbol
elf_symbol(const struct elf *e, size_t index)
{
    Elf64_Sym raw;
    uint16_t version = 0;
    get(e, e->symbols + index * sizeof raw, &raw, sizeof raw);
    struct elf_symbol symbol = {
        .name = text_at(e, raw.st_name),
        .is_defined = raw.st_shndx != SHN_UNDEF,
        .is_local = ELF64_ST_BIND(raw.st_info) == STB_LOCAL,
    };
    if (e->versions)
        get(e, e->versions + index * sizeof version, &version, sizeof version);
    if (!symbol.is_defined && (version & 0x7fff) > 1)
        find_version(e, version & 0x7fff, &symbol);
    return symbol;
}

const char *
elf_needed(const struct elf *e, size_t index)
{
    for (uint64_t i = 0; i < e->dynamic_count; i++) {
        Elf64_Dyn entry = entry_at(e, i);
        if (entry.d_tag == DT_NULL)
            return NULL;
        if (entry.d_tag == DT_NEEDED && index-- == 0)
            return text_at(e, entry.d_un.d_val);
    }
    return NULL;
}
