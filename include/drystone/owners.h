/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_OWNERS_H
#define DRY_OWNERS_H

/*
 * Who holds the memory: allocations summed up by the line, function, module, stack,
 * category, size or step that they come from.
 *
 *     struct dry_owners_options options;
 *     dry_owners_options_init(&options);
 *     options.moment = view->peaks[DRY_CURVE_ACTIVE].moment;
 *     if (dry_owners_create(timeline, &options, &owners, &err) != DRY_OK) ...
 *     const struct dry_owner *rows = dry_owners_get(owners, &count);
 *
 * A stack's owner is its innermost frame of the user's own code: not of PyTorch, not of
 * Python's library or an installed package, not of C++. Where there is none, the innermost
 * of an installed package; then of what torch.compile made, of PyTorch's Python files, of
 * Python's library. A stack without Python belongs to its node of the backward graph
 * ("autograd DivBackward0"), else to the first C++ function that is not PyTorch's,
 * CPython's or the C library's, else to the operation.
 *
 * `what` is the operation that the owner called: the outermost named by a C++ frame below
 * Python ("aten::mul"), else the innermost Python function below the owner that is no
 * wrapper ("relu"), else "".
 *
 * Allocations without an owner are summed up under a name in parentheses:
 *
 *     (before the recording)   alive before the window; no stack is known
 *     (no Python stack)        an empty stack: other threads (backward) have no Python
 *                              frames where only those were recorded
 *     (no stack)               stacks were not recorded
 *     (in no step)             by step: born behind the last one
 *
 * A block older than the window of which only its free has a stack goes by that of the
 * free, apart from the others: its name ends in " (freed there)".
 *
 * Ownership  create / destroy; the timeline and its trace must outlive the owners. Names
 *            belong to them: bytes of the file, not made safe for a terminal, at most
 *            1,023; longer parts lose their middle to "\xe2\x80\xa6".
 * Threads    Read by any number at once.
 * Units      Bytes. Sums that pass 2^64, which only hostile files have, stay at UINT64_MAX.
 */

#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_owners;
struct dry_steps;      /* <drystone/steps.h> */
struct dry_categories; /* <drystone/categories.h> */

enum dry_owner_key {
    DRY_OWNER_LINE,     /* "models.py:174 update_nodes" */
    DRY_OWNER_FUNCTION, /* "models.py update_nodes" */
    DRY_OWNER_MODULE,   /* "models.py": the file, by as many folders as tell it apart */
    DRY_OWNER_STACK,    /* every frame; the name has the user's: "a.py:3 f < b.py:7 g" */
    DRY_OWNER_CATEGORY, /* "activations"; needs `categories` */
    DRY_OWNER_SIZE,     /* "4096 B": by requested size, equal sizes together */
    DRY_OWNER_STEP,     /* "step 3": the one it was born in; needs `steps` */
};
#define DRY_OWNER_KEY_COUNT 7
/* "line", "function", "module", "stack", "category", "size", "step". */
DRY_API const char *dry_owner_key_name(enum dry_owner_key key);

struct dry_owner {
    const char *name; /* zero-terminated; never empty */
    size_t name_length;
    const char *what; /* the operation of the largest allocation; "" */
    size_t what_length;
    uint64_t bytes, requested; /* of the blocks alive: rounded, and as asked */
    uint32_t count;
    uint64_t largest;
    uint32_t largest_allocation; /* of the timeline: a specimen */
    uint32_t frame; /* of the trace, where the key is a line, a function or a module and
                       there is a stack; else DRY_NONE */
    uint32_t stack; /* of the specimen; DRY_NONE */
    uint32_t is_of_free; /* the stacks are those of the frees */
};

struct dry_owners_options {
    size_t struct_size; /* set by dry_owners_options_init() */
    const struct dry_memory *memory;
    enum dry_owner_key key; /* default DRY_OWNER_LINE */
    uint32_t moment;        /* alive then; default 0 */
    /* Only those born at or after this moment; 0, the default: all that are alive. */
    uint32_t born_from;
    /* By the outermost frame of the user's code instead of the innermost; lines, functions
     * and modules only. */
    int is_inverted;
    const struct dry_steps *steps;
    const struct dry_categories *categories;
};
DRY_API void dry_owners_options_init(struct dry_owners_options *options);

/*
 * O(alive log alive + stacks and frames of the trace). ARGUMENT: a moment beyond the dump,
 * or a key without what it needs.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_owners_create(
    const struct dry_timeline *timeline, const struct dry_owners_options *options,
    struct dry_owners **owners, struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_owners_destroy(struct dry_owners *owners);

/* The largest first; ties by name. Their bytes add up to the total. */
DRY_API const struct dry_owner *dry_owners_get(const struct dry_owners *owners,
                                               size_t *count);
DRY_API uint64_t dry_owners_total(const struct dry_owners *owners);

/*
 * The name that a stack of the trace goes by, and its operation, whether or not it holds
 * anything: "models.py:174 update_nodes (aten::relu)", "(no stack)". Bytes of the file; cut
 * and zero-terminated. `capacity` is at least 1. Returns the length.
 */
DRY_API size_t dry_owners_write_line(const struct dry_owners *owners, uint32_t stack,
                                     char *text, size_t capacity);

/*
 * The frame that a stack of the trace goes by, whether or not it holds anything; DRY_NONE for
 * DRY_NONE and for a stack without frames. O(1).
 */
DRY_API uint32_t dry_owners_find_frame(const struct dry_owners *owners, uint32_t stack);

/* Whose code a frame of the trace is. */
enum dry_frame_kind {
    DRY_FRAME_NATIVE,    /* C++ */
    DRY_FRAME_LIBRARY,   /* Python's own library */
    DRY_FRAME_TORCH,     /* PyTorch's Python files */
    DRY_FRAME_GENERATED, /* by torch.compile, or by exec() of a library */
    DRY_FRAME_PACKAGE,   /* another installed package */
    DRY_FRAME_USER,
};
DRY_API enum dry_frame_kind dry_owners_frame_kind(const struct dry_owners *owners,
                                                  uint32_t frame);

#ifdef __cplusplus
}
#endif

#endif
