/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_DOCTOR_TEXT_H
#define DRYI_HOST_DOCTOR_TEXT_H

/*
 * Forms of text that only the doctor reads: of /proc, of the kernel's command line, of a
 * driver, and of the variables that set up a malloc or PyTorch.
 *
 * Errors     false, and the output as it was: the text is not of this form, or does not say.
 *            Numbers beyond 64 bits are UINT64_MAX.
 * Cost       Linear in the text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a text; NULL: none. */
struct dryi_doctor_piece {
    const char *bytes;
    size_t length;
};
bool dryi_doctor_piece_is(struct dryi_doctor_piece word, const char *text);
/* The next word from *at on, between blanks and line ends; *at goes behind it. */
bool dryi_doctor_piece_next(const char *text, size_t length, size_t *at,
                            struct dryi_doctor_piece *word);
/* Is one of the words `wanted`? */
bool dryi_doctor_piece_find(const char *text, size_t length, const char *wanted);
/* Digits alone. */
bool dryi_doctor_piece_number(struct dryi_doctor_piece word, uint64_t *number);
/* "512", "2M", "65536k", "1G": as the kernel takes sizes. */
bool dryi_doctor_piece_size(struct dryi_doctor_piece word, uint64_t *bytes);

/* The word in brackets: "always [madvise] never". */
bool dryi_text_chosen(const char *text, size_t length, struct dryi_doctor_piece *chosen);

/* /proc/self/limits: "Max open files   1024   4096   files"; UINT64_MAX: unlimited. */
bool dryi_text_limit(const char *text, size_t length, const char *name, uint64_t *soft,
                     uint64_t *hard);

/*
 * /proc/buddyinfo: how many free base pages a node has, and how many of these lie in pieces of
 * 2^order pages and more.
 */
bool dryi_text_buddies(const char *text, size_t length, int32_t node, unsigned order,
                       uint64_t *free, uint64_t *in_large);

/*
 * /proc/pagetypeinfo, of "Number of blocks type" on: how many blocks, of a huge page each or
 * about, hold pages of which kind, on a node. `all` has those of other kinds too.
 */
struct dryi_blocks {
    uint64_t unmovable, reclaimable, all;
};
bool dryi_text_blocks(const char *text, size_t length, int32_t node,
                      struct dryi_blocks *blocks);

/*
 * "resource" of a PCI device, a line with begin, end and flags a window: the largest of memory
 * that may be prefetched, as that to a GPU's own is. false: there is none.
 */
bool dryi_text_window(const char *text, size_t length, uint64_t *bytes);

/* /proc/self/maps: the path of the first file whose own name begins with `name`. */
bool dryi_text_mapped(const char *text, size_t length, const char *name,
                      struct dryi_doctor_piece *path);

/* The size of the tmpfs last mounted at `point`, of mountinfo; UINT64_MAX: no size is given. */
bool dryi_text_mount_size(const char *text, size_t length, const char *point,
                          uint64_t *bytes);

/* "6.12.9-amd64" */
bool dryi_text_release(const char *text, size_t length, uint32_t *major, uint32_t *minor);
/* /proc/driver/nvidia/version: "NVRM version: NVIDIA UNIX ... 580.65.06 ..." */
bool dryi_text_driver(const char *text, size_t length, uint64_t *major, uint64_t *minor);

/* "NAME=VALUE" among the words of the kernel's command line, the last one. */
bool dryi_text_boot_option(const char *text, size_t length, const char *name,
                           struct dryi_doctor_piece *value);
/*
 * How many pages of a size the command line asks for: "hugepagesz=2M hugepages=512" or
 * "hugepages=0:256,1:256"; without hugepagesz they are of the default size.
 */
bool dryi_text_boot_pool(const char *text, size_t length, uint64_t page_bytes,
                         uint64_t default_bytes, uint64_t *pages);

/*
 * "key:value,key:value": the next of MALLOC_CONF or PYTORCH_ALLOC_CONF; with `between` ':' and
 * `inside` '=' of GLIBC_TUNABLES. A key without a value has one of length 0. Brackets hold
 * lists together: "roundup_power2_divisions:[256:1,512:2]".
 */
struct dryi_doctor_setting {
    struct dryi_doctor_piece key, value;
};
bool dryi_text_setting(struct dryi_doctor_piece text, char between, char inside,
                       size_t *at, struct dryi_doctor_setting *setting);

/*
 * jemalloc's own version in the bytes of its library, "5.3.0-0-g54eaed1d8b56": fed in pieces of
 * any size.
 */
#define DRYI_JEMALLOC_TEXT_MAX 16
struct dryi_jemalloc {
    char window[DRYI_JEMALLOC_TEXT_MAX]; /* the last bytes, a ring */
    size_t count;
    bool is_known;
    uint32_t major, minor, patch;
};
void dryi_jemalloc_feed(struct dryi_jemalloc *j, const char *bytes, size_t length);

#endif
