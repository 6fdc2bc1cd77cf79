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
 * Linux promises huge pages when they are mapped and kills the process when it then has none:
 * the reservation knows neither nodes nor limits of control groups. So every page is there
 * before create returns, taken by MADV_POPULATE_WRITE, whose refusal is a number and not a
 * SIGBUS; on kernels before 5.14 by reads into the pages, which are refused the same way.
 * What could not be had is said in a report, attempt by attempt, each with its reason.
 *
 * What exists is read from /sys and /proc and never assumed: pools and their sizes, the size
 * of transparent huge pages, the base page, nodes, limits. What they say is checked as any
 * input is; what cannot be read counts as not known, and then the attempt tells.
 *
 * For base and transparent pages there is no refusal that is safe: the kernel's answer to
 * "there is none left" is to kill a process. So memory is asked for only while the node, the
 * machine and every control group above this process say that it is there, and
 * keep_free_bytes more; they are asked before and then every 256 MiB.
 *
 * Ownership  create / destroy. The memory belongs to the object and goes back once, whole.
 * Threads    Objects are independent. Of one object any thread may ask at any time until
 *            one destroys it. create starts threads of its own where thread_count allows and
 *            joins them before it returns; they take no signals.
 * Units      Bytes, nanoseconds and milliseconds as the names say.
 * Cost       That of zeroing the memory; everything else is some dozen system calls.
 */

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
    DRY_PAGES_TRANSPARENT = 1, /* huge where the kernel finds them, no pool needed */
    DRY_PAGES_POOL = 2, /* hugetlb: set aside by the administrator, never swapped */
};

enum dry_pages_where {
    DRY_PAGES_ANYWHERE = 0, /* the calling thread's own memory policy decides */
    DRY_PAGES_ON_NODE = 1,
    DRY_PAGES_INTERLEAVED = 2, /* page by page over the nodes of a set */
    /*
     * The same, more on nodes to which the administrator gave more weight
     * (/sys/kernel/mm/mempolicy/weighted_interleave, Linux 6.9). Older kernels: evenly, unless
     * the policy is STRICT.
     */
    DRY_PAGES_WEIGHTED = 3,
};

/* What may be instead, if what is asked for is not to be had. */
enum dry_pages_policy {
    /* Smaller pages may; the node is kept. */
    DRY_PAGES_PREFER = 0,
    /* Nothing: every page of this size, and on this node. */
    DRY_PAGES_STRICT = 1,
    /* Before smaller pages are tried, those the node lacks may come from other nodes. */
    DRY_PAGES_ANY = 2,
};

/*
 * What a child after fork() finds at these addresses. Pages of a pool are never INHERIT: a
 * write to either copy needs a second page, and kills the process if there is none. Nor WIPE,
 * which the kernel has for anonymous memory alone.
 */
enum dry_pages_fork {
    DRY_PAGES_DONTFORK = 0, /* nothing: the child must not touch them */
    DRY_PAGES_INHERIT = 1,  /* a copy, made at the first write */
    DRY_PAGES_WIPE = 2,     /* zeroes */
    DRY_PAGES_SHARED = 3,   /* the same memory */
};

/* Why not. dry_pages_reason_text() has a sentence for each. */
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
    uint64_t bytes; /* rounded up to whole pages; info tells to what */
    enum dry_pages_kind kind;
    /* Of POOL: which pool, 0: the kernel's default size. Of the others: 0. */
    uint64_t page_bytes;
    enum dry_pages_where where;
    int32_t node;
    /* Of INTERLEAVED and WEIGHTED; none: all this process may use. */
    struct dry_pages_nodes nodes;
    enum dry_pages_policy policy;
    enum dry_pages_fork fork;
    /* Of the threads that fill the memory; 0: as many as help, 1: the caller alone. */
    uint32_t thread_count;
    /* For each attempt; 0: none. Seen between pieces of 16 MiB, or one page if larger. */
    uint32_t timeout_ms;
    /* To be left free of base and transparent pages; default 64 MiB. */
    uint64_t keep_free_bytes;
    /*
     * Called in the calling thread, at least each 50 ms while other threads fill, else between
     * pieces, with the bytes of this attempt filled so far; not 0: stop, everything goes back.
     */
    int (*progress)(void *self, uint64_t done_bytes, uint64_t bytes);
    void *progress_self;
    /* In front of /sys and /proc where facts are read, by create alone; NULL: "". */
    const char *root;
};

/* One try: these pages, there, and how it ended. */
struct dry_pages_attempt {
    enum dry_pages_kind kind;
    uint64_t page_bytes;
    int may_spill;                     /* other nodes were allowed */
    int is_granted;                    /* then the reasons are what it falls short of */
    enum dry_pages_reason reason;      /* of the pages, or of the refusal */
    enum dry_pages_reason node_reason; /* of their place */
    int os_errno;                      /* 0 where the kernel was not asked */
};

struct dry_pages_report {
    size_t count;
    struct dry_pages_attempt attempts[DRY_PAGES_ATTEMPTS_MAX];
};

struct dry_pages_info {
    void *address; /* a multiple of page_bytes */
    uint64_t bytes, requested_bytes;
    enum dry_pages_kind kind;
    uint64_t page_bytes; /* of TRANSPARENT: of a huge one */
    uint64_t base_page_bytes;
    enum dry_pages_where where;
    enum dry_pages_fork fork;
    /* What lay in huge pages when it was filled, and on other nodes than asked for. */
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
    int is_off; /* of TRANSPARENT: by the administrator, or for this process */
    /* Of POOL, in pages: what it has, and what of it nobody uses or was promised. */
    uint64_t total_count, free_count;
    uint64_t growth_count; /* how many more the kernel may find when asked (overcommit) */
};

#define DRY_PAGES_SIZES_MAX 10

/*
 * What there is: base pages, transparent ones, pools from small to large. With `node` -1 of
 * the whole machine, else on that node, where promises are not known. What cannot be read is
 * left out. `root` as in options; returns how many. Cost: some dozen small files.
 */
DRY_API size_t dry_pages_read_sizes(const char *root, int32_t node,
                                    struct dry_pages_size sizes[DRY_PAGES_SIZES_MAX]);

/* What a region takes of one node's share of a pool, in pages, and what that lacks. */
struct dry_pages_part {
    int32_t node; /* -1: wherever */
    int is_known; /* 0: the kernel has no such pool there, or does not tell */
    uint64_t page_count;
    uint64_t total_count, free_count, growth_count; /* as in struct dry_pages_size */
    uint64_t missing_count;
};
struct dry_pages_need {
    enum dry_pages_kind kind;
    uint64_t bytes, page_bytes, page_count; /* rounded up; page_bytes 0: there are none */
    uint64_t missing_count;                 /* of all parts */
    size_t part_count;                      /* 0: not of a pool */
    struct dry_pages_part parts[DRY_PAGES_SHARES_MAX];
};

/*
 * Transparent pages anywhere, PREFER, DONTFORK, as many threads as help, 64 MiB kept free, no
 * timeout; bytes is 0 and to be set.
 */
DRY_API void dry_pages_options_init(struct dry_pages_options *options);

/*
 * `report` (may be NULL) is written on success and on failure: attempts in order.
 *
 * Errors     ARGUMENT: an option is impossible, no attempt was made. NO_SPACE: nothing that
 *            the policy allows is to be had. UNSUPPORTED: the machine has nothing of the
 *            kind (NO_SUCH_SIZE, NO_SUCH_NODE, NO_WEIGHTS, THP_OFF, FORK, SECCOMP, UNPROVEN).
 *            SYSTEM: refused otherwise. CANCELLED: by progress. MEMORY: no memory for our records.
 *            err names the first attempt's reason, which is what was asked for.
 *            After a failure nothing is mapped and nothing reserved.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_create(
    const struct dry_pages_options *options, struct dry_pages **pages,
    struct dry_pages_report *report, struct dry_error *err);
/*
 * What dry_pages_create() would need of what is asked for first, and what the pool lacks now;
 * nothing is taken. Limits of control groups are not looked at. Interleaved over more than 64
 * nodes, the last part is all the rest.
 *
 * Errors     ARGUMENT: an option is impossible.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_read_need(
    const struct dry_pages_options *options, struct dry_pages_need *need,
    struct dry_error *err);
/*
 * What an administrator types so that parts[part] has what is missing:
 * "echo 2048 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages". The kernel gives what it
 * finds, so the file is to be read afterwards. Empty where nothing is missing or there is no
 * such pool. Returns its length without the end, as snprintf() does.
 */
DRY_API size_t dry_pages_need_command(const struct dry_pages_need *need, size_t part,
                                      char *text, size_t capacity);
/*
 * NULL: nothing. In a child of the process that created it, the record goes and the memory
 * stays as fork left it. Cost: the kernel's, some ms a GiB of huge pages, 20 times as much of
 * base pages.
 */
DRY_API void dry_pages_destroy(struct dry_pages *pages);
/* What was had, as it was when create returned. */
DRY_API void dry_pages_get_info(const struct dry_pages *pages,
                                struct dry_pages_info *info);

/* Where the memory is now. */
struct dry_pages_share {
    int32_t node;
    uint64_t bytes;
};
struct dry_pages_proof {
    uint64_t bytes;
    uint64_t populated_bytes;    /* with a page under it, now; in swap there is none */
    uint64_t huge_bytes;         /* in pages larger than the base page; of a pool: all */
    int knows_nodes, knows_huge; /* 0: the kernel does not tell, the numbers are 0 */
    size_t share_count;
    struct dry_pages_share shares[DRY_PAGES_SHARES_MAX]; /* by node; no zeroes */
    uint64_t elsewhere_bytes; /* not on the nodes that were asked for */
};
/*
 * Asks the kernel about every page, now: move_pages() as a query, else /proc/self/numa_maps,
 * for nodes; PAGEMAP_SCAN (Linux 6.7), else /proc/self/smaps, for huge ones. Some 100 ns a page.
 *
 * Errors     UNSUPPORTED: in a child after fork. What the kernel does not tell is said in
 *            the proof and is no error.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_prove(const struct dry_pages *pages,
                                                         struct dry_pages_proof *proof,
                                                         struct dry_error *err);
/*
 * The node of each page from number `first` on: nodes[i] is that of page first + i, -1 where
 * there is no page. Pages are of info.page_bytes for POOL, else of info.base_page_bytes.
 *
 * Errors     ARGUMENT: beyond the region. UNSUPPORTED: as prove; or the call is forbidden;
 *            nodes then holds nothing of use.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_query_nodes(
    const struct dry_pages *pages, uint64_t first, size_t count, int32_t *nodes,
    struct dry_error *err);

/*
 * Tries once more to have huge pages under transparent memory that lacks some, until the time
 * is over (0: no limit). What kept them away may be gone by now: the page cache of files that
 * were read into it, say, once it is dropped (posix_fadvise). What is there is moved; threads
 * that use it wait for the page they touch. *huge_bytes is what is huge then.
 *
 * Errors     UNSUPPORTED: before Linux 6.1; base pages; the kernel does not tell what is
 *            huge; in a child after fork.
 * Cost       About that of filling it, for what was not huge.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_pages_collapse(const struct dry_pages *pages,
                                                            uint32_t timeout_ms,
                                                            uint64_t *huge_bytes,
                                                            struct dry_error *err);

/* "pool", "node-dry" ...: a word for programs; NULL for other numbers. */
DRY_API const char *dry_pages_kind_name(enum dry_pages_kind kind);
DRY_API const char *dry_pages_reason_name(enum dry_pages_reason reason);
/* A sentence for people, without a full stop; NULL for other numbers. */
DRY_API const char *dry_pages_reason_text(enum dry_pages_reason reason);

#ifdef __cplusplus
}
#endif

#endif
