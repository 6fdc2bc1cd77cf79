/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_OWNERS_H
#define DRY_OWNERS_H

/*
 * Sum up live allocations by owner: the line, function, module, stack, category, size or
 * step that made them.
 *
 *     struct dry_owners_options options;
 *     dry_owners_options_init(&options);
 *     options.moment = view->peaks[DRY_CURVE_ACTIVE].moment;
 *     if (dry_owners_create(timeline, &options, &owners, &err) != DRY_OK) ...
 *     const struct dry_owner *rows = dry_owners_get(owners, &count);
 *     dry_owners_destroy(owners);
 *
 * A stack's owner is its innermost frame of the user's own code: not of PyTorch, Python's
 * library, an installed package or C++. If no frame is the user's, it is the innermost
 * frame of the first kind that the stack has:
 *
 *     an installed package
 *     code that torch.compile made
 *     PyTorch's Python files
 *     Python's library
 *
 * A stack without Python belongs to its node of the backward graph ("autograd
 * DivBackward0"). If there is no node, it belongs to the first C++ function that is not
 * PyTorch's, CPython's or the C library's, and otherwise, to the operation.
 *
 * In the backward pass PyTorch may have recorded the line of the forward pass for which it
 * allocates (DRY_FRAME_FORWARD). Then that stack has the owner: "backward of model.py:39 f".
 *
 * `what` is the operation that the owner called: the outermost that a C++ frame below
 * Python names ("aten::mul"). If there is none, it is the innermost Python function below
 * the owner that is no wrapper ("relu"), or "".
 *
 * Allocations without an owner are summed up under a name in parentheses:
 *
 *     (earlier, no stack)      alive before the window; no stack is known
 *     (before the recording)   by step: alive before the window
 *     (no Python stack)        an empty stack: other threads (backward) have no Python
 *                              frames where only those were recorded
 *     (no stack)               stacks were not recorded
 *     (in no step)             by step: allocated after the last one
 *
 * For some blocks older than the window, only the free has a stack. These are listed
 * under the free's stack, separately: their name ends in " (freed there)".
 *
 * Ownership  create / destroy; the timeline and its trace must outlive the owners. Names
 *            belong to the owners. They are bytes of the file, not escaped for a
 *            terminal, at most 1,023 bytes; the middle of longer components is replaced
 *            by "\xe2\x80\xa6".
 * Errors     ARGUMENT, MEMORY; see dry_owners_create().
 * Threads    Any number may read at once.
 * Units      Bytes. Sums above 64 bits, which only hostile files have, saturate at
 *            UINT64_MAX.
 * Cost       All of it is in dry_owners_create(); reading is O(1).
 */

#include <stdbool.h>

#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_owners;
struct dry_steps;      /* <drystone/steps.h> */
struct dry_categories; /* <drystone/categories.h> */

/* The property by which allocations are summed up. */
enum dry_owner_key {
    DRY_OWNER_LINE,     /* "models.py:174 update_nodes" */
    DRY_OWNER_FUNCTION, /* "models.py update_nodes" */
    DRY_OWNER_MODULE, /* "models.py": the file, with as many folders as make it unique */
    DRY_OWNER_STACK,  /* every frame; the name shows the user's frames: "a.py:3 f <
                           b.py:7 g" */
    DRY_OWNER_CATEGORY, /* "activations"; needs `categories` */
    DRY_OWNER_SIZE,     /* "4096 B": allocations of equal requested size */
    DRY_OWNER_STEP,     /* "step 3": the step of the allocation; needs `steps` */
};
#define DRY_OWNER_KEY_COUNT 7
/*
 * Return the name of a key: "line", "function", "module", "stack", "category", "size",
 * "step".
 */
DRY_API const char *dry_owner_key_name(enum dry_owner_key key);

struct dry_owner {
    const char *name; /* zero-terminated; never empty */
    size_t name_length;
    const char *what; /* the operation of the largest allocation; "" */
    size_t what_length;
    uint64_t bytes, requested; /* sums over live blocks: rounded sizes, requested sizes */
    uint32_t count;
    uint64_t largest;
    uint32_t largest_allocation; /* number of the largest allocation in the timeline */
    /* The frame in the trace, if the key is a line, a function or a module and there is a
       stack; otherwise DRY_NONE. */
    uint32_t frame;
    uint32_t stack;  /* stack of the largest allocation; DRY_NONE: none */
    bool is_of_free; /* the stacks are those of the frees, for allocations older than the
                        window */
};

struct dry_owners_options {
    size_t struct_size; /* set by dry_owners_options_init() */
    const struct dry_memory *memory;
    enum dry_owner_key key; /* default DRY_OWNER_LINE */
    uint32_t moment;        /* allocations alive at this moment; default 0 */
    /*
     * Only allocations made at or after this moment; 0, the default: all that are live.
     */
    uint32_t born_from;
    /* Take the outermost frame of the user's code instead of the innermost; for lines,
       functions and modules only. */
    bool is_inverted;
    const struct dry_steps *steps;
    const struct dry_categories *categories;
};
/* Set all options to their defaults. */
DRY_API void dry_owners_options_init_sized(struct dry_owners_options *options,
                                           size_t struct_size);
#define dry_owners_options_init(options)                                                 \
    dry_owners_options_init_sized(options, sizeof *(options))

/*
 * Sum up the allocations of `timeline` selected by `options`; the result is *owners.
 * O(alive log alive + stacks and frames of the trace). Errors: ARGUMENT (a moment beyond
 * the dump, or a key without its `steps` or `categories`), MEMORY.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_owners_create(
    const struct dry_timeline *timeline, const struct dry_owners_options *options,
    struct dry_owners **owners, struct dry_error *err);
/* End the owners. NULL is fine. */
DRY_API void dry_owners_destroy(struct dry_owners *owners);

/* Return the owners, the largest first; ties by name. Their bytes add up to the total. */
DRY_API const struct dry_owner *dry_owners_get(const struct dry_owners *owners,
                                               size_t *count);
/* Return the sum of all owners' bytes. */
DRY_API uint64_t dry_owners_total(const struct dry_owners *owners);

/*
 * Write the name of a stack's owner, and its operation, even if the stack holds no
 * memory: "models.py:174 update_nodes (aten::relu)", "(no stack)". `stack` is the
 * trace's. The text is bytes of the file, cut to `capacity`, which is at least 1, and
 * zero-terminated. Returns its length.
 */
DRY_API size_t dry_owners_write_line(const struct dry_owners *owners, uint32_t stack,
                                     char *text, size_t capacity);

/*
 * Write the name that an owner of that frame has by `key`, which is a line, a function or a
 * module: "models.py:174 update_nodes", "models.py update_nodes", "models.py". `frame` is
 * the trace's. The text is bytes of the file, at most 1,023, cut to `capacity`, which is at
 * least 1, and zero-terminated. Returns its length. O(length).
 */
DRY_API size_t dry_owners_write_frame(const struct dry_owners *owners, uint32_t frame,
                                      enum dry_owner_key key, char *text,
                                      size_t capacity);

/* Return the frame of a stack's owner, even if the stack holds no memory. `stack` is the
   trace's. DRY_NONE for DRY_NONE, and for a stack without frames. O(1). */
DRY_API uint32_t dry_owners_find_frame(const struct dry_owners *owners, uint32_t stack);

/* The origin of a frame's code. */
enum dry_frame_kind {
    DRY_FRAME_NATIVE,    /* C++ */
    DRY_FRAME_LIBRARY,   /* Python's own library */
    DRY_FRAME_TORCH,     /* PyTorch's Python files */
    DRY_FRAME_GENERATED, /* generated by torch.compile, or by exec() in a library */
    DRY_FRAME_PACKAGE,   /* another installed package */
    DRY_FRAME_USER,
};
/* Return the kind of a frame of the trace. */
DRY_API enum dry_frame_kind dry_owners_frame_kind(const struct dry_owners *owners,
                                                  uint32_t frame);

#ifdef __cplusplus
}
#endif

#endif
