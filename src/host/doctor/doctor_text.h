/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_DOCTOR_TEXT_H
#define DRYI_HOST_DOCTOR_TEXT_H

/*
 * Parsers for formats that only the doctor reads: files of /proc, the kernel's command
 * line, a driver's version, and variables that configure malloc or PyTorch.
 *
 * Errors     false, and the output is unchanged: malformed text, or no such value.
 *            Numbers above 64 bits become UINT64_MAX.
 * Cost       Linear in the text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A range of a text; `bytes` NULL: none. */
struct dryi_doctor_piece {
    const char *bytes;
    size_t length;
};
bool dryi_doctor_piece_is(struct dryi_doctor_piece word, const char *text);
/* Get the next word from *at on, delimited by blanks and newlines; *at moves past it. */
bool dryi_doctor_piece_next(const char *text, size_t length, size_t *at,
                            struct dryi_doctor_piece *word);
/* Return whether `wanted` is one of the words. */
bool dryi_doctor_piece_find(const char *text, size_t length, const char *wanted);
/* Parse a word of digits only. */
bool dryi_doctor_piece_number(struct dryi_doctor_piece word, uint64_t *number);
/* Parse "512", "2M", "65536k", "1G", as the kernel does. */
bool dryi_doctor_piece_size(struct dryi_doctor_piece word, uint64_t *bytes);

/* Get the word in brackets: "always [madvise] never". */
bool dryi_text_chosen(const char *text, size_t length, struct dryi_doctor_piece *chosen);

/* Parse a line of /proc/self/limits: "Max open files   1024   4096   files"; UINT64_MAX:
   unlimited. */
bool dryi_text_limit(const char *text, size_t length, const char *name, uint64_t *soft,
                     uint64_t *hard);

/* Parse /proc/buddyinfo: a node's free base pages, and those of them in blocks of 2^order
   pages or more. */
bool dryi_text_buddies(const char *text, size_t length, int32_t node, unsigned order,
                       uint64_t *free, uint64_t *in_large);

/* Parse /proc/pagetypeinfo from "Number of blocks type" on: a node's blocks, each about a
   huge page, by the type of their pages. `all` includes further types. */
struct dryi_blocks {
    uint64_t unmovable, reclaimable, all;
};
bool dryi_text_blocks(const char *text, size_t length, int32_t node,
                      struct dryi_blocks *blocks);

/*
 * Find the largest prefetchable memory window in "resource" of a PCI device, whose lines
 * are begin, end and flags. A GPU's own memory has this property. False: there is none.
 */
bool dryi_text_window(const char *text, size_t length, uint64_t *bytes);

/* Find the first path in /proc/self/maps whose file name begins with `name`. */
bool dryi_text_mapped(const char *text, size_t length, const char *name,
                      struct dryi_doctor_piece *path);

/* Find the size of the last tmpfs mounted at `point` in mountinfo; UINT64_MAX: no size is
   given. */
bool dryi_text_mount_size(const char *text, size_t length, const char *point,
                          uint64_t *bytes);

/* Parse "6.12.9-amd64". */
bool dryi_text_release(const char *text, size_t length, uint32_t *major, uint32_t *minor);
/* Parse /proc/driver/nvidia/version: "NVRM version: NVIDIA UNIX ... 580.65.06 ..." */
bool dryi_text_driver(const char *text, size_t length, uint64_t *major, uint64_t *minor);

/* Find the last "NAME=VALUE" on the kernel's command line. */
bool dryi_text_boot_option(const char *text, size_t length, const char *name,
                           struct dryi_doctor_piece *value);
/* Sum the pages of a size that the command line requests: "hugepagesz=2M hugepages=512"
   or "hugepages=0:256,1:256"; without hugepagesz they have the default size. */
bool dryi_text_boot_pool(const char *text, size_t length, uint64_t page_bytes,
                         uint64_t default_bytes, uint64_t *pages);

/*
 * Get the next "key:value" of MALLOC_CONF or PYTORCH_ALLOC_CONF, separated by commas. For
 * GLIBC_TUNABLES `between` is ':' and `inside` '='. A key without a value gets length 0
 * for it. Brackets group lists: "roundup_power2_divisions:[256:1,512:2]".
 */
struct dryi_doctor_setting {
    struct dryi_doctor_piece key, value;
};
bool dryi_text_setting(struct dryi_doctor_piece text, char between, char inside,
                       size_t *at, struct dryi_doctor_setting *setting);

/* Finds jemalloc's version in its library file, "5.3.0-0-g54eaed1d8b56", fed in portions
   of any size. */
#define DRYI_JEMALLOC_TEXT_MAX 16
struct dryi_jemalloc {
    char window[DRYI_JEMALLOC_TEXT_MAX]; /* ring buffer of the last bytes */
    size_t count;
    bool is_known;
    uint32_t major, minor, patch;
};
void dryi_jemalloc_feed(struct dryi_jemalloc *j, const char *bytes, size_t length);

#endif
