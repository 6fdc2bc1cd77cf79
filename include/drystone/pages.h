/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_PAGES_H
#define DRY_PAGES_H

/*
 * Regions of host memory: of chosen pages, on a chosen node, all there before they are used.
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
 * Linux promises huge pages when they are mapped, and kills the process if it then has none:
 * the reservation knows neither nodes nor limits of control groups. So every page is there
 * before create returns. MADV_POPULATE_WRITE takes the pages, and its refusal is a number and
 * not a SIGBUS. On kernels before 5.14 reads into the pages do the same, and are refused the
 * same way. A report tells what could not be had, attempt by attempt, each with its reason.
 *
 * The traits of the machine are read from /sys and /proc and never assumed: pools and their
 * sizes, the size of transparent huge pages, the base page, nodes, limits. These files are
 * checked as any input is. A value that cannot be read counts as not known, and then the
 * attempt tells.
 *
 * For base and transparent pages there is no refusal that is safe: the kernel's answer to
 * "there is none left" is to kill a process. So memory is asked for only while the node, the
 * machine and every control group above this process say that it is there, and keep_free_bytes
 * more. They are asked before the first page and then every 256 MiB.
 *
 * Words
 *     pool     the huge pages of one size that the administrator has set aside (hugetlb)
 *     attempt  one try to have the region of certain pages in a certain place
 *     huge     said of memory in pages larger than the base page
 *
 * Ownership  dry_pages_create() and dry_pages_destroy(). The memory belongs to the object and
 *            goes back once, whole.
 * Errors     Each function names its own. err says which attempt failed, and why.
 * Threads    Objects are independent. Any thread may ask an object at any time until one
 *            thread destroys it. Create starts threads of its own if thread_count allows, and
 *            joins them before it returns; they take no signals.
 * Units      Bytes, nanoseconds and milliseconds as the names say.
 * Cost       Create costs the zeroing of the memory; all the rest is some dozen system calls.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of all of these are fixed for ever; new ones are only appended. */
enum dry_pages_kind {
    DRY_PAGES_BASE = 0,        /* 4 KiB on x86-64, up to 64 KiB on arm64 */
    DRY_PAGES_TRANSPARENT = 1, /* huge if the kernel finds them, no pool needed */
    DRY_PAGES_POOL = 2,        /* of a pool, never swapped */
};

enum dry_pages_where {
    DRY_PAGES_ANYWHERE = 0, /* the calling thread's own memory policy decides */
    DRY_PAGES_ON_NODE = 1,
    DRY_PAGES_INTERLEAVED = 2, /* page by page over the nodes of a set */
    /*
     * The same, with more on nodes to which the administrator gave more weight
     * (/sys/kernel/mm/mempolicy/weighted_interleave, Linux 6.9). Older kernels interleave
     * evenly, unless the policy is STRICT.
     */
    DRY_PAGES_WEIGHTED = 3,
};

/* The choices that are left if the pages asked for are not to be had. */
enum dry_pages_policy {
    /* Smaller pages; the node is kept. */
    DRY_PAGES_PREFER = 0,
    /* None: every page has this size and lies on this node. */
    DRY_PAGES_STRICT = 1,
    /* Before smaller pages are tried, pages that the node lacks may come from other nodes. */
    DRY_PAGES_ANY = 2,
};

/*
 * The memory that a child after fork() finds at these addresses. Pages of a pool are never
 * INHERIT, because a write to either copy needs a second page and kills the process if there is
 * none. Nor are they WIPE, which the kernel has for anonymous memory alone.
 */
enum dry_pages_fork {
    DRY_PAGES_DONTFORK = 0, /* nothing: the child must not touch them */
    DRY_PAGES_INHERIT = 1,  /* a copy, made at the first write */
    DRY_PAGES_WIPE = 2,     /* zeroes */
    DRY_PAGES_SHARED = 3,   /* the same memory */
};

/* Reasons of an attempt that fails or falls short; dry_pages_reason_text() has a sentence. */
enum dry_pages_reason {
    DRY_PAGES_REASON_NONE = 0,
    DRY_PAGES_NO_SUCH_SIZE = 1,       /* the kernel has no pool of such pages */
    DRY_PAGES_NO_POOL = 2,            /* the pool has too few free pages */
    DRY_PAGES_NODE_DRY = 3,           /* the node has too little, others may have more */
    DRY_PAGES_CGROUP_LIMIT = 4,       /* memory.max, or hugetlb.SIZE.max */
    DRY_PAGES_CGROUP_RESERVATION = 5, /* hugetlb.SIZE.rsvd.max */
    DRY_PAGES_SECCOMP = 6,            /* calls that place memory are forbidden here */
    DRY_PAGES_THP_OFF = 7,            /* transparent huge pages are off */
    DRY_PAGES_FRAGMENTED = 8,         /* free memory is there, but not in huge pieces */
    DRY_PAGES_TIMEOUT = 9,
    DRY_PAGES_NO_SUCH_NODE = 10,
    DRY_PAGES_NO_PERMISSION = 11, /* the node or the pool is not for this process */
    DRY_PAGES_LIMITS = 12,        /* a resource limit of this process: RLIMIT_AS */
    DRY_PAGES_NO_MEMORY = 13,     /* the machine has too little free memory */
    DRY_PAGES_FORK = 14,          /* no such behaviour at fork for such pages */
    DRY_PAGES_UNPROVEN = 15,      /* the kernel does not tell whether it is as asked */
    DRY_PAGES_REFUSED = 16,       /* the kernel refuses; see os_errno */
    DRY_PAGES_CANCELLED = 17,
    DRY_PAGES_NO_WEIGHTS = 18, /* the kernel interleaves evenly alone */
};

#define DRY_PAGES_NODES_MAX 1024 /* as the kernel's largest configuration */
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
    /* With POOL the pool, 0: the kernel's default size. With the other kinds 0. */
    uint64_t page_bytes;
    enum dry_pages_where where;
    int32_t node; /* of ON_NODE */
    /* The set of INTERLEAVED and WEIGHTED; empty: all nodes that this process may use. */
    struct dry_pages_nodes nodes;
    enum dry_pages_policy policy;
    enum dry_pages_fork fork;
    /* The number of threads that fill the memory; 0: as many as help, 1: the caller alone. */
    uint32_t thread_count;
    /* For each attempt; 0: none. Looked at between pieces of 16 MiB, or of one larger page. */
    uint32_t timeout_ms;
    /* The memory to be left free when base and transparent pages are taken; default 64 MiB. */
    uint64_t keep_free_bytes;
    /*
     * Called in the calling thread with the bytes of this attempt filled so far: at least every
     * 50 ms while other threads fill, otherwise between pieces. A result of true stops the
     * call, and everything goes back.
     */
    bool (*progress)(void *self, uint64_t done_bytes, uint64_t bytes);
    void *progress_self;
    /* A prefix of the /sys and /proc that create alone reads facts from; NULL: "". */
    const char *root;
};

/* One attempt, and how it ended. */
struct dry_pages_attempt {
    enum dry_pages_kind kind;
    uint64_t page_bytes;
    bool may_spill;                    /* other nodes were allowed */
    bool is_granted;                   /* then the reasons tell where it falls short */
    enum dry_pages_reason reason;      /* of the pages, or of the refusal */
    enum dry_pages_reason node_reason; /* of their place */
    int os_errno;                      /* 0 if the kernel was not asked */
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
    uint64_t page_bytes; /* with TRANSPARENT the size of a huge page */
    uint64_t base_page_bytes;
    enum dry_pages_where where;
    enum dry_pages_fork fork;
    /* When it was filled, these bytes were huge, and these on other nodes than asked for. */
    uint64_t huge_bytes, elsewhere_bytes;
    uint32_t thread_count;
    uint64_t populate_ns;
    struct dry_pages_report report; /* the last attempt is the one that was granted */
};

struct dry_pages;

/* A kind and size of pages that a machine has. */
struct dry_pages_size {
    enum dry_pages_kind kind;
    uint64_t page_bytes;
    bool is_off; /* of TRANSPARENT: by the administrator, or for this process */
    /* The pages of a pool, and the pages in it that nobody uses or was promised. */
    uint64_t total_count, free_count;
    uint64_t growth_count; /* how many more the kernel may find when asked (overcommit) */
};

#define DRY_PAGES_SIZES_MAX 10

/*
 * List the pages there are: base pages, transparent ones, pools from small to large. Sizes that
 * cannot be read are left out. Returns how many there are. Cost: some dozen small files.
 *     root  as in struct dry_pages_options
 *     node  -1: the whole machine; otherwise this node, for which promises are not known
 */
DRY_API size_t dry_pages_read_sizes(const char *root, int32_t node,
                                    struct dry_pages_size sizes[DRY_PAGES_SIZES_MAX]);

/* The pages that a region takes of one node's share of a pool, and those that it lacks. */
struct dry_pages_part {
    int32_t node;  /* -1: wherever */
    bool is_known; /* false: the kernel has no such pool there, or does not tell */
    uint64_t page_count;
    uint64_t total_count, free_count, growth_count; /* as in struct dry_pages_size */
    uint64_t missing_count;
};

struct dry_pages_need {
    size_t struct_size; /* DRY_INIT sets it */
    enum dry_pages_kind kind;
    uint64_t bytes, page_bytes, page_count; /* rounded up; page_bytes 0: there are none */
    uint64_t missing_count;                 /* of all parts */
    size_t part_count;                      /* 0: not of a pool */
    struct dry_pages_part parts[DRY_PAGES_SHARES_MAX];
};

/*
 * Set the defaults: transparent pages anywhere, PREFER, DONTFORK, as many threads as help,
 * 64 MiB kept free, no timeout. `bytes` is 0 and to be set.
 */
DRY_API void dry_pages_options_init_sized(struct dry_pages_options *options,
                                          size_t struct_size);
#define dry_pages_options_init(options)                                                  \
    dry_pages_options_init_sized(options, sizeof *(options))

/*
 * Make a region. *report (or NULL) is written on success and on failure: the attempts in order.
 * After a failure nothing is mapped and nothing reserved, and err names the reason of the first
 * attempt, which is the one that was asked for. Errors:
 *     ARGUMENT     An option is impossible. No attempt was made.
 *     NO_SPACE     Nothing that the policy allows is to be had.
 *     UNSUPPORTED  The machine has nothing of the kind (NO_SUCH_SIZE, NO_SUCH_NODE,
 *                  NO_WEIGHTS, THP_OFF, FORK, SECCOMP, UNPROVEN).
 *     SYSTEM       The kernel refuses otherwise.
 *     CANCELLED    `progress` asked for it; err names this attempt then.
 *     MEMORY       There is no memory for our records.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_create(
    const struct dry_pages_options *options, struct dry_pages **pages,
    struct dry_pages_report *report, struct dry_error *err);

/*
 * Tell the pages that the first attempt of dry_pages_create() would need, and those that the
 * pool lacks now; nothing is taken. Limits of control groups are not looked at. If the region
 * is interleaved over more than 64 nodes, the last part is all the rest. ARGUMENT: an option is
 * impossible.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_read_need(
    const struct dry_pages_options *options, struct dry_pages_need *need,
    struct dry_error *err);

/*
 * Write the command with which an administrator gives parts[part] the pages it lacks:
 * "echo 2048 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages". The kernel gives what it
 * finds, so the file is to be read afterwards. The text is empty if nothing is missing or there
 * is no such pool. Returns its length without the end, as snprintf() does.
 */
DRY_API size_t dry_pages_need_command(const struct dry_pages_need *need, size_t part,
                                      char *text, size_t capacity);

/*
 * Give a region back; NULL is fine. In a child of the process that created it, the record goes
 * and the memory stays as fork left it. Cost: the kernel's, some ms a GiB of huge pages, and 20
 * times as much for base pages.
 */
DRY_API void dry_pages_destroy(struct dry_pages *pages);

/* Tell what was had, as it was when create returned. */
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
    uint64_t populated_bytes; /* with a page under them; memory in swap has none */
    /* Of a pool: all. Linux 6.1 leaves out pages that NUMA balancing has marked and none used since. */
    uint64_t huge_bytes;
    bool knows_nodes, knows_huge; /* false: the kernel does not tell, the numbers are 0 */
    size_t share_count;
    struct dry_pages_share shares[DRY_PAGES_SHARES_MAX]; /* by node; no zeroes */
    uint64_t elsewhere_bytes; /* not on the nodes that were asked for */
};

/*
 * Ask the kernel about every page, now. Nodes are from move_pages() as a query, or else from
 * /proc/self/numa_maps; huge pages from PAGEMAP_SCAN (Linux 6.7), or else /proc/self/smaps.
 * UNSUPPORTED: this is a child after fork. Facts that the kernel does not tell are no error:
 * the proof says so. Cost: some 100 ns a page.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_prove(const struct dry_pages *pages,
                                                         struct dry_pages_proof *proof,
                                                         struct dry_error *err);

/*
 * Tell the nodes of `count` pages from number `first` on: nodes[i] is the node of page
 * first + i, or -1 if there is no page. Pages are of info.page_bytes with POOL, otherwise of
 * info.base_page_bytes. Errors:
 *     ARGUMENT     The pages are beyond the region.
 *     UNSUPPORTED  As dry_pages_prove(); or the call is forbidden, and `nodes` then holds
 *                  nothing of use.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_query_nodes(
    const struct dry_pages *pages, uint64_t first, size_t count, int32_t *nodes,
    struct dry_error *err);

/*
 * Try once more to have huge pages under transparent memory that lacks some, for `timeout_ms`
 * at most (0: no limit). *huge_bytes is what is huge then. The obstacle may be gone by now: the
 * page cache of files that were read into the memory, say, once it is dropped (posix_fadvise).
 * Contents are moved, and threads that use them wait for the page they touch.
 * UNSUPPORTED: before Linux 6.1; base pages; the kernel does not tell what is huge; in a child
 * after fork. Cost: about that of filling the memory that was not huge.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_collapse(const struct dry_pages *pages,
                                                            uint32_t timeout_ms,
                                                            uint64_t *huge_bytes,
                                                            struct dry_error *err);

/* The word for programs, "pool", "node-dry" ...; NULL for other numbers. */
DRY_API const char *dry_pages_kind_name(enum dry_pages_kind kind);
DRY_API const char *dry_pages_reason_name(enum dry_pages_reason reason);

/* The sentence for people, without a full stop; NULL for other numbers. */
DRY_API const char *dry_pages_reason_text(enum dry_pages_reason reason);

#ifdef __cplusplus
}
#endif

#endif
