/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PAGES_H
#define DRY_PAGES_H

/*
 * Regions of host memory with a chosen page size and NUMA node, fully populated before
 * use.
 *
 *     struct dry_pages_options options;
 *     dry_pages_options_init(&options);
 *     options.bytes = 3ull << 30;
 *     options.kind = DRY_PAGES_POOL;
 *     options.where = DRY_PAGES_ON_NODE;
 *     options.node = 1;
 *     status = dry_pages_create(&options, &pages, &report, &err);
 *     dry_pages_get_info(pages, &info);         info.address, info.bytes
 *     dry_pages_destroy(pages);
 *
 * Linux reserves huge pages when they are mapped, but kills the process if a page is
 * missing at first use: the reservation ignores nodes and limits of control groups. So
 * dry_pages_create() populates every page before it returns. MADV_POPULATE_WRITE reports
 * a missing page by an errno and not by SIGBUS. On kernels before 5.14, reading from
 * /dev/zero into the pages has the same effect. A report lists the attempts that failed,
 * each with its reason.
 *
 * The traits of the machine are read from /sys and /proc and never assumed: pools and
 * their sizes, the size of transparent huge pages, the base page, nodes, limits. These
 * files are validated like any input. A value that cannot be read is unknown, and then
 * the attempt itself decides.
 *
 * For base and transparent pages the kernel never fails safely: if memory runs out, it
 * kills a process. So pages are populated only while the node, the machine and every
 * control group above this process have enough free memory, plus keep_free_bytes. This is
 * checked before the first page and then every 256 MiB.
 *
 * Words
 *     pool     the huge pages of one size that the administrator has reserved (hugetlb)
 *     attempt  one try to make the region of one kind of pages on given nodes
 *     huge     in pages larger than the base page
 *
 * Ownership  dry_pages_create() and dry_pages_destroy(). The memory belongs to the object
 *            and is freed with it.
 * Errors     Each function names its own. err says which attempt failed, and why.
 * Threads    Objects are independent. Any thread may query an object until one thread
 *            destroys it. Create starts threads if thread_count allows, and joins them
 *            before it returns; signals are blocked in them.
 * Units      Bytes, nanoseconds and milliseconds as the names say.
 * Cost       Create takes the time to zero the memory, plus some dozen system calls.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of these enums never change; new ones are appended. */
enum dry_pages_kind {
    DRY_PAGES_BASE = 0,        /* 4 KiB on x86-64, up to 64 KiB on arm64 */
    DRY_PAGES_TRANSPARENT = 1, /* huge where the kernel finds free huge pages; needs no
                                  pool */
    DRY_PAGES_POOL = 2,        /* pages of a hugetlb pool, never swapped */
};

enum dry_pages_where {
    DRY_PAGES_ANYWHERE = 0, /* the calling thread's memory policy decides */
    DRY_PAGES_ON_NODE = 1,
    DRY_PAGES_INTERLEAVED = 2, /* page by page over a set of nodes */
    /*
     * INTERLEAVED in proportion to the weights set by the administrator
     * (/sys/kernel/mm/mempolicy/weighted_interleave, Linux 6.9). Older kernels interleave
     * evenly, unless the policy is STRICT.
     */
    DRY_PAGES_WEIGHTED = 3,
};

/* The fallbacks that are allowed if the requested pages are not available. */
enum dry_pages_policy {
    /* Smaller pages on the same node. */
    DRY_PAGES_PREFER = 0,
    /* No fallback: every page has this size and is on this node. */
    DRY_PAGES_STRICT = 1,
    /* First other nodes for the missing pages, then smaller pages. */
    DRY_PAGES_ANY = 2,
};

/*
 * The contents of these addresses in a child after fork(). Pages of a pool cannot be
 * INHERIT: a write to either copy needs a second page and kills the process if none is
 * free. Nor can they be WIPE, which the kernel supports for anonymous memory only.
 */
enum dry_pages_fork {
    DRY_PAGES_DONTFORK = 0, /* not mapped: the child must not access them */
    DRY_PAGES_INHERIT = 1,  /* a copy-on-write copy */
    DRY_PAGES_WIPE = 2,     /* zeroes */
    DRY_PAGES_SHARED = 3,   /* the same memory */
};

/* Why an attempt failed or fell short; dry_pages_reason_text() has a sentence for
   each. */
enum dry_pages_reason {
    DRY_PAGES_REASON_NONE = 0,
    DRY_PAGES_NO_SUCH_SIZE = 1, /* the kernel has no pool of such pages */
    DRY_PAGES_NO_POOL = 2,      /* the pool has too few free pages */
    DRY_PAGES_NODE_DRY = 3,     /* the node has too little memory; others may have more */
    DRY_PAGES_CGROUP_LIMIT = 4, /* memory.max, or hugetlb.SIZE.max */
    DRY_PAGES_CGROUP_RESERVATION = 5, /* hugetlb.SIZE.rsvd.max */
    DRY_PAGES_SECCOMP = 6,            /* seccomp forbids the calls that place memory */
    DRY_PAGES_THP_OFF = 7,            /* transparent huge pages are off */
    DRY_PAGES_FRAGMENTED = 8,         /* enough memory is free, but not in huge pages */
    DRY_PAGES_TIMEOUT = 9,
    DRY_PAGES_NO_SUCH_NODE = 10,
    DRY_PAGES_NO_PERMISSION = 11, /* this process may not use the node or the pool */
    DRY_PAGES_LIMITS = 12,        /* a resource limit of this process, RLIMIT_AS */
    DRY_PAGES_NO_MEMORY = 13,     /* the machine has too little free memory */
    DRY_PAGES_FORK = 14, /* these pages do not support the requested behaviour at fork */
    DRY_PAGES_UNPROVEN = 15, /* the kernel does not report whether the pages are as
                                     requested */
    DRY_PAGES_REFUSED = 16,  /* the kernel refuses for another reason; see os_errno */
    DRY_PAGES_CANCELLED = 17,
    DRY_PAGES_NO_WEIGHTS = 18, /* the kernel supports even interleaving only */
};

/* The kernel's largest configuration (CONFIG_NODES_SHIFT 10). */
#define DRY_PAGES_NODES_MAX 1024
#define DRY_PAGES_ATTEMPTS_MAX 16
#define DRY_PAGES_SHARES_MAX 64

struct dry_pages_nodes {
    uint64_t words[DRY_PAGES_NODES_MAX / 64]; /* node n: bit n % 64 of word n / 64 */
};

struct dry_pages_options {
    size_t struct_size; /* set by dry_pages_options_init() */
    const struct dry_memory *memory;
    uint64_t bytes; /* 1 to 2^46; rounded up to whole pages, see dry_pages_info */
    enum dry_pages_kind kind;
    /* With POOL: the page size of the pool; 0: the kernel's default. Other kinds: 0. */
    uint64_t page_bytes;
    enum dry_pages_where where;
    int32_t node; /* for ON_NODE */
    /* For INTERLEAVED and WEIGHTED; empty: all nodes that this process may use. */
    struct dry_pages_nodes nodes;
    enum dry_pages_policy policy;
    enum dry_pages_fork fork;
    /* Threads that populate the memory; 0: as many as speed it up; 1: the caller only. */
    uint32_t thread_count;
    /* Limit for each attempt; 0: none. Checked after every 16 MiB, or after each larger
       page. */
    uint32_t timeout_ms;
    /* Memory that must stay free when base and transparent pages are populated; default
       64 MiB. */
    uint64_t keep_free_bytes;
    /*
     * Called in the calling thread with the bytes of this attempt filled so far: at least
     * every 50 ms while other threads fill, otherwise after every 16 MiB or larger page.
     * A result of true cancels the call, and all pages are freed.
     */
    bool (*progress)(void *self, uint64_t done_bytes, uint64_t bytes);
    void *progress_self;
    /* Prefix of the /sys and /proc files that create reads; NULL: "". */
    const char *root;
};

struct dry_pages_attempt {
    enum dry_pages_kind kind;
    uint64_t page_bytes;
    bool may_spill;                    /* other nodes were allowed */
    bool is_granted;                   /* succeeded; the reasons then say where it falls
                                          short of the request */
    enum dry_pages_reason reason;      /* about the pages, or why it failed */
    enum dry_pages_reason node_reason; /* about the nodes */
    int os_errno;                      /* 0: the failure was not the kernel's */
};

struct dry_pages_report {
    size_t count;
    struct dry_pages_attempt attempts[DRY_PAGES_ATTEMPTS_MAX];
};

struct dry_pages_info {
    size_t struct_size; /* DRY_INIT sets it */
    void *address;      /* a multiple of page_bytes */
    uint64_t bytes, requested_bytes;
    enum dry_pages_kind kind;
    uint64_t page_bytes; /* with TRANSPARENT, the size of a huge page */
    uint64_t base_page_bytes;
    enum dry_pages_where where;
    enum dry_pages_fork fork;
    /* Bytes in huge pages, and bytes on other nodes than requested, right after
       population. */
    uint64_t huge_bytes, elsewhere_bytes;
    uint32_t thread_count;
    uint64_t populate_ns;
    struct dry_pages_report report; /* the last attempt is the one that succeeded */
};

struct dry_pages;

/* A kind and size of pages that the machine has. */
struct dry_pages_size {
    enum dry_pages_kind kind;
    uint64_t page_bytes;
    bool is_off; /* TRANSPARENT: disabled by the administrator, or for this process */
    /* The pages of a pool, and those neither used nor reserved. */
    uint64_t total_count, free_count;
    uint64_t growth_count; /* pages that the kernel may add on demand (overcommit) */
};

#define DRY_PAGES_SIZES_MAX 10

/*
 * List the available kinds: base pages, transparent ones, pools from small to large.
 * Sizes that cannot be read are left out. Returns the number of entries. Cost: some dozen
 * small files.
 *     root  as in struct dry_pages_options
 *     node  -1: the whole machine; otherwise this node, for which reserved pages are not
 *           known
 */
DRY_API size_t dry_pages_read_sizes(const char *root, int32_t node,
                                    struct dry_pages_size sizes[DRY_PAGES_SIZES_MAX]);

/* The pages that a region needs from one node's part of a pool, and those missing
   there. */
struct dry_pages_part {
    int32_t node;  /* -1: any node */
    bool is_known; /* false: no such pool there, or the kernel does not report it */
    uint64_t page_count;
    uint64_t total_count, free_count, growth_count; /* see struct dry_pages_size */
    uint64_t missing_count;
};

struct dry_pages_need {
    size_t struct_size; /* DRY_INIT sets it */
    enum dry_pages_kind kind;
    uint64_t bytes, page_bytes, page_count; /* rounded up; page_bytes 0: no such pages */
    uint64_t missing_count;                 /* sum over all parts */
    size_t part_count;                      /* 0: the pages are not from a pool */
    struct dry_pages_part parts[DRY_PAGES_SHARES_MAX];
};

/* Set the defaults: transparent pages anywhere, PREFER, DONTFORK, as many threads as
   help, 64 MiB kept free, no timeout. The caller must set `bytes`. */
DRY_API void dry_pages_options_init_sized(struct dry_pages_options *options,
                                          size_t struct_size);
#define dry_pages_options_init(options)                                                  \
    dry_pages_options_init_sized(options, sizeof *(options))

/*
 * Make a region. *report (or NULL) gets the attempts in order, on success and on failure.
 * A failed call leaves no mapping and no reservation; err names the reason of the first
 * attempt, which is the requested one. Errors:
 *     ARGUMENT     An option is invalid. No attempt was made.
 *     NO_SPACE     None of the pages that the policy allows are available.
 *     UNSUPPORTED  The machine does not support the request (NO_SUCH_SIZE, NO_SUCH_NODE,
 *                  NO_WEIGHTS, THP_OFF, FORK, SECCOMP, UNPROVEN).
 *     SYSTEM       The kernel refuses for another reason.
 *     CANCELLED    `progress` returned true; err names the attempt that was running.
 *     MEMORY       No memory for the library's records.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_create(
    const struct dry_pages_options *options, struct dry_pages **pages,
    struct dry_pages_report *report, struct dry_error *err);

/*
 * Compute the pages that the first attempt of dry_pages_create() would need, and those
 * that the pool lacks now; nothing is allocated. Limits of control groups are ignored. If
 * the region is interleaved over more than 64 nodes, the last part stands for all further
 * nodes. ARGUMENT: an option is invalid.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_read_need(
    const struct dry_pages_options *options, struct dry_pages_need *need,
    struct dry_error *err);

/*
 * Write the command with which an administrator gives parts[part] the pages it lacks:
 * "echo 2048 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages". The kernel may add
 * fewer, so read the file afterwards. The text is empty if no page is missing or the pool
 * does not exist. Returns the length as snprintf() does.
 */
DRY_API size_t dry_pages_need_command(const struct dry_pages_need *need, size_t part,
                                      char *text, size_t capacity);

/*
 * Free a region; NULL is fine. In a child of the process that created it, only the record
 * is freed and the memory stays as fork left it. Cost: the kernel's, some ms per GiB of
 * huge pages, and 20 times as much for base pages.
 */
DRY_API void dry_pages_destroy(struct dry_pages *pages);

/* Get the region's properties as they were when create returned. */
DRY_API enum dry_status dry_pages_get_info(const struct dry_pages *pages,
                                           struct dry_pages_info *info);

/* The bytes of a region that are on one node now. */
struct dry_pages_share {
    int32_t node;
    uint64_t bytes;
};

struct dry_pages_proof {
    size_t struct_size; /* DRY_INIT sets it */
    uint64_t bytes;
    uint64_t populated_bytes; /* bytes with a page; swapped memory has none */
    /* All bytes if from a pool. Linux 6.1 omits pages that NUMA balancing has marked and
       no thread has used since. */
    uint64_t huge_bytes;
    bool knows_nodes, knows_huge; /* false: the kernel does not report it, and the numbers
                                     are 0 */
    size_t share_count;
    /* One per node that has bytes. */
    struct dry_pages_share shares[DRY_PAGES_SHARES_MAX];
    uint64_t elsewhere_bytes; /* not on the requested nodes */
};

/*
 * Query the kernel about every page now. Nodes come from move_pages(), or else from
 * /proc/self/numa_maps; huge pages come from PAGEMAP_SCAN (Linux 6.7), or else from
 * /proc/self/smaps. UNSUPPORTED: this is a child after fork. Facts that the kernel does
 * not report are no error: knows_nodes and knows_huge are then false. Cost: some 100 ns
 * per page.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_prove(const struct dry_pages *pages,
                                                         struct dry_pages_proof *proof,
                                                         struct dry_error *err);

/*
 * Get the nodes of `count` pages from number `first` on: nodes[i] is the node of page
 * first + i, or -1 if there is no page. Pages are of info.page_bytes with POOL, otherwise
 * of info.base_page_bytes. Errors:
 *     ARGUMENT     The pages are beyond the region.
 *     UNSUPPORTED  As dry_pages_prove(); or seccomp forbids the call; `nodes` is then
 *                  undefined.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_query_nodes(
    const struct dry_pages *pages, uint64_t first, size_t count, int32_t *nodes,
    struct dry_error *err);

/*
 * Try again to get huge pages for transparent memory that lacks some, for at most
 * `timeout_ms` (0: no limit). *huge_bytes gets the bytes in huge pages afterwards. A
 * retry helps if memory was freed meanwhile, for example page cache that the program
 * dropped by posix_fadvise(). Contents are moved; threads that access a page being moved
 * wait. UNSUPPORTED: before Linux 6.1; base pages; the kernel does not report huge pages;
 * in a child after fork. Cost: about that of populating the memory that was not huge.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_collapse(const struct dry_pages *pages,
                                                            uint32_t timeout_ms,
                                                            uint64_t *huge_bytes,
                                                            struct dry_error *err);

/* Return the key, "pool", "node-dry" ...; NULL for other numbers. */
DRY_API const char *dry_pages_kind_name(enum dry_pages_kind kind);
DRY_API const char *dry_pages_reason_name(enum dry_pages_reason reason);

/* Return a sentence for people, without a full stop; NULL for other numbers. */
DRY_API const char *dry_pages_reason_text(enum dry_pages_reason reason);

#ifdef __cplusplus
}
#endif

#endif
