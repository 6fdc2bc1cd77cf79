/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_TRACE_H
#define DRY_TRACE_H

/*
 * What happened to the memory of a program: events, the segments at the end, and who asked.
 *
 * A trace is read from a file (a PyTorch memory snapshot, a plain trace, RMM's log, a CSV of
 * lifetimes) or built call by call, and never changes afterwards. Events lie in columns, in
 * the order of the file, which is the truth inside a device; stacks, frames and strings are
 * interned, so equal things have equal numbers.
 *
 *     struct dry_trace *trace;
 *     if (dry_trace_read(&source, NULL, &trace, &err) != DRY_OK) ...
 *     const struct dry_trace_view *v = dry_trace_get_view(trace);
 *     for (size_t i = 0; i < v->event_count; i++)
 *         use(v->action[i], v->size[i]);
 *     dry_trace_destroy(trace);
 *
 * Ownership  dry_trace_read() and dry_trace_builder_finish() give the caller a trace, ended
 *            with dry_trace_destroy(). Everything a view points to belongs to the trace.
 * Errors     Reading is total: whatever the bytes are, it ends in a trace or in one status
 *            with a text and, where there is one, the byte. Nothing in a file is executed,
 *            and no memory is taken in proportion to a number the file merely claims.
 * Threads    A trace may be used by any number of threads at once. A builder: one.
 * Units      Sizes and addresses in bytes, times in microseconds.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_trace;
struct dry_trace_builder;

/* An index that points nowhere. */
#define DRY_NONE UINT32_MAX

/*
 * Where bytes come from. Each call sets *got to 1..capacity bytes, or to 0 at the end.
 * A failing read fills err itself and returns a negative status.
 */
struct dry_source {
    enum dry_status (*read)(void *self, void *buffer, size_t capacity, size_t *got,
                            struct dry_error *err);
    void *self;
};

/* Where bytes go: all of them, or a negative status with err filled. */
struct dry_sink {
    enum dry_status (*write)(void *self, const void *bytes, size_t count,
                             struct dry_error *err);
    void *self;
};

enum dry_trace_kind {
    DRY_TRACE_SNAPSHOT,  /* PyTorch's torch.cuda.memory._snapshot() */
    DRY_TRACE_PLAIN,     /* `op id size stream time_us [label]`, drystone-trace(5) */
    DRY_TRACE_RMM,       /* RMM's logging_resource_adaptor CSV */
    DRY_TRACE_LIFETIMES, /* `id,lower,upper,size` CSV */
    DRY_TRACE_BUILT,     /* by a dry_trace_builder */
};

/*
 * PyTorch's actions (c10/core/CachingDeviceAllocator.h, TraceEntry) and, after them, those
 * that a program states and a snapshot cannot. `addr` is an address in a snapshot; in the
 * other kinds it is the id of the allocation, unique among those that live at once.
 */
enum dry_action {
    DRY_ACTION_ALLOC,          /* size: as requested; addr: where it was put */
    DRY_ACTION_FREE_REQUESTED, /* the program gave it back */
    DRY_ACTION_FREE_COMPLETED, /* no stream uses it any more: reusable */
    DRY_ACTION_SEGMENT_ALLOC,  /* from the driver, whole */
    DRY_ACTION_SEGMENT_FREE,
    DRY_ACTION_SEGMENT_MAP, /* pages of an expandable segment */
    DRY_ACTION_SEGMENT_UNMAP,
    DRY_ACTION_SNAPSHOT,
    DRY_ACTION_OOM, /* size: rounded request; addr: bytes free on the device */
    DRY_ACTION_ANNOTATE,
    DRY_ACTION_OTHER,         /* an action of a later release: its name is in the note */
    DRY_ACTION_LIVE,          /* plain: alive before the window */
    DRY_ACTION_RECORD_STREAM, /* plain: the lane's stream uses it too */
    DRY_ACTION_STREAM_END,    /* plain: what is recorded on the lane's stream is done */
    DRY_ACTION_EMPTY_CACHE,   /* plain: the program called empty_cache() */
    DRY_ACTION_POOL_BEGIN,    /* plain: allocations go to the lane's pool from here */
    DRY_ACTION_POOL_END,
};
#define DRY_ACTION_COUNT 17

/* "alloc", "free_requested" ..., as PyTorch writes them where it does. */
DRY_API const char *dry_action_name(enum dry_action action);

/* A market of its own: memory moves neither between streams nor between pools. */
struct dry_lane {
    uint64_t stream;         /* the stream's pointer value, 0 is the default stream */
    uint64_t pool_a, pool_b; /* PyTorch's pool id; (0, 0) is the default pool */
    uint32_t pool_known;     /* 0: the record does not say (files older than pool_id) */
    uint32_t reserved;
};

/* What is rarely there. Strings are DRY_NONE when the key was absent. */
struct dry_note {
    uint32_t action_name;     /* of a DRY_ACTION_OTHER */
    uint32_t compile_context; /* string */
    uint32_t user_metadata;   /* string; in a plain trace its label */
    uint32_t forward_stack;   /* stack */
    uint32_t extra;           /* keys unknown to us, kept for the writer */
    uint32_t flags;           /* DRY_NOTE_… */
};
#define DRY_NOTE_NO_TIME 1u /* the event carried no time_us */
#define DRY_NOTE_NO_ADDR 2u /* nor an address */

struct dry_frame {
    uint32_t name, file; /* strings, DRY_NONE if absent */
    uint32_t extra;      /* unknown keys (fx_…), kept for the writer */
    uint32_t line;
};

enum dry_block_state {
    DRY_BLOCK_INACTIVE,
    DRY_BLOCK_ACTIVE,       /* "active_allocated" */
    DRY_BLOCK_PENDING_FREE, /* "active_pending_free", in older files "active_awaiting_free" */
};

struct dry_trace_block {
    uint64_t address; /* computed from the segment where the file has none */
    uint64_t size, requested_size;
    uint32_t stack; /* DRY_NONE if absent */
    uint32_t forward_stack;
    uint32_t extra;
    enum dry_block_state state;
};

struct dry_trace_segment {
    uint64_t address, total_size;
    uint64_t allocated_size, active_size, requested_size; /* as the file says */
    uint32_t lane;
    uint32_t stack;
    uint32_t forward_stack;
    uint32_t extra;
    size_t first_block, block_count;
    int32_t device;
    uint8_t is_large, is_expandable;
    uint8_t pool_id_known, expandable_known; /* keys present: absent in files of 2023 */
};

/* record_function scopes: PyTorch's external_annotations. */
struct dry_trace_annotation {
    int64_t time_us;
    uint32_t name, stage; /* strings; stage is "START" or "END" */
    uint32_t extra;
    int32_t device;
};

/* One device's part: ranges of the tables below. Device -1 is pinned host memory. */
struct dry_trace_device {
    int32_t device;
    size_t first_event, event_count;
    size_t first_segment, segment_count;
};
#define DRY_DEVICE_HOST (-1)

/* `allocator_settings`; a snapshot does not export the others. */
struct dry_trace_settings {
    uint32_t known; /* 0: the file has none (before about 2.1) */
    uint32_t conf;  /* string: the last PYTORCH_CUDA_ALLOC_CONF; DRY_NONE if absent */
    int64_t max_split_size; /* -1: unlimited */
    double garbage_collection_threshold;
    uint32_t expandable_segments;
    uint32_t roundup_known;
    uint64_t roundup_power2_divisions[16]; /* index i: key 2^i MiB */
    uint32_t extra;                        /* all other keys, kept for the writer */
};

/* A key or an action we do not know, and how often it was met. */
struct dry_trace_unknown {
    uint32_t name;  /* string */
    uint32_t where; /* DRY_UNKNOWN_… */
    uint64_t count;
};
#define DRY_UNKNOWN_ACTION 0u
#define DRY_UNKNOWN_EVENT_KEY 1u
#define DRY_UNKNOWN_BLOCK_KEY 2u
#define DRY_UNKNOWN_SEGMENT_KEY 3u
#define DRY_UNKNOWN_FRAME_KEY 4u
#define DRY_UNKNOWN_TOP_KEY 5u
#define DRY_UNKNOWN_ANNOTATION_KEY 6u

/* Everything, to read from. Fields are only ever appended. */
struct dry_trace_view {
    enum dry_trace_kind kind;
    int protocol;        /* pickle protocol, -1 where there is none */
    uint64_t byte_count; /* of the file, after decompression */

    size_t event_count; /* columns, 37 bytes an event */
    const uint8_t *action;
    const uint64_t *addr;
    const uint64_t *size;
    const int64_t *time_us;
    const uint32_t *lane;
    const uint32_t *stack; /* DRY_NONE: the event has no stack */
    const uint32_t *note;  /* DRY_NONE: nothing to note */

    size_t device_count;
    const struct dry_trace_device *devices;
    size_t segment_count;
    const struct dry_trace_segment *segments;
    size_t block_count;
    const struct dry_trace_block *blocks;
    size_t annotation_count;
    const struct dry_trace_annotation *annotations;
    size_t unknown_count;
    const struct dry_trace_unknown *unknowns;
    struct dry_trace_settings settings;
    uint32_t top_extra; /* top-level keys unknown to us, kept for the writer */
    uint32_t
        is_bare_list;    /* the file was a list of segments, memory_snapshot()'s shape */
    uint32_t has_traces; /* the file has a device_traces key */
    uint32_t has_settings, has_annotations, has_host;

    uint32_t lane_count, frame_count, stack_count, string_count, note_count;
    const struct dry_lane *lanes;
    const struct dry_frame *frames;
};

DRY_API const struct dry_trace_view *dry_trace_get_view(const struct dry_trace *trace);

/* A string's bytes, zero-terminated besides; *length may be NULL. NULL for DRY_NONE. */
DRY_API const char *dry_trace_string(const struct dry_trace *trace, uint32_t string,
                                     size_t *length);

/* A stack's frames, innermost first. NULL and 0 for DRY_NONE. */
DRY_API const uint32_t *dry_trace_stack(const struct dry_trace *trace, uint32_t stack,
                                        size_t *count);

/* A note; for DRY_NONE one in which everything is absent. */
DRY_API const struct dry_note *dry_trace_note(const struct dry_trace *trace,
                                              uint32_t note);

struct dry_trace_options {
    size_t struct_size; /* set by dry_trace_options_init() */
    const struct dry_memory *memory;
    uint64_t memory_bytes_max; /* for the trace and while reading; default no limit */
    uint32_t depth_max;        /* nesting of unknown values; default 64 */
    uint32_t string_bytes_max; /* one string; default 16 MiB */
    /* Called about every 16 MiB with the bytes read so far; other than 0 cancels. */
    int (*progress)(void *self, uint64_t byte_count);
    void *progress_self;
};

DRY_API void dry_trace_options_init(struct dry_trace_options *options);

/*
 * Read a trace; the format is known by its first bytes. A pickle is walked, never run:
 * every opcode that could name code (GLOBAL, REDUCE, ...) is refused with its name and
 * byte. `options` NULL: the defaults. O(bytes). Fails with FORMAT (err->offset says where),
 * LIMIT, MEMORY, CANCELLED or what the source returned.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_read(
    const struct dry_source *source, const struct dry_trace_options *options,
    struct dry_trace **trace, struct dry_error *err);

/* NULL is fine. */
DRY_API void dry_trace_destroy(struct dry_trace *trace);

/*
 * Write a trace as PyTorch writes its snapshots (pickle protocol 4), for every kind of
 * trace that has addresses: SNAPSHOT and BUILT; others are UNSUPPORTED. What was read
 * is written: reading it again gives an equal trace, and CPython's unpickler an equal
 * object, but for lists of pool ids (tuples here) and the 2023 shape (made modern).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_write(const struct dry_trace *trace,
                                                         const struct dry_sink *sink,
                                                         struct dry_error *err);

/*
 * Building. Calls after a failed one return the same status, so that only finish needs a
 * check. Ids returned are those of the trace; DRY_NONE after a failure.
 */
struct dry_trace_builder_options {
    size_t struct_size;
    const struct dry_memory *memory;
    enum dry_trace_kind kind; /* default DRY_TRACE_BUILT: addresses are addresses */
};

struct dry_event {
    enum dry_action action;
    uint64_t addr, size;
    int64_t time_us;
    uint32_t lane, stack, note; /* DRY_NONE for no stack or note */
};

DRY_API void dry_trace_builder_options_init(struct dry_trace_builder_options *options);
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_builder_create(
    const struct dry_trace_builder_options *options, struct dry_trace_builder **builder,
    struct dry_error *err);
DRY_API void dry_trace_builder_destroy(struct dry_trace_builder *builder);

DRY_API uint32_t dry_trace_add_string(struct dry_trace_builder *builder,
                                      const char *bytes, size_t length);
DRY_API uint32_t dry_trace_add_frame(struct dry_trace_builder *builder,
                                     const struct dry_frame *frame);
DRY_API uint32_t dry_trace_add_stack(struct dry_trace_builder *builder,
                                     const uint32_t *frames, size_t count);
DRY_API uint32_t dry_trace_add_lane(struct dry_trace_builder *builder,
                                    const struct dry_lane *lane);
DRY_API uint32_t dry_trace_add_note(struct dry_trace_builder *builder,
                                    const struct dry_note *note);
/* Events of one device come one after the other: begin the device, then its events. */
DRY_API enum dry_status dry_trace_begin_device(struct dry_trace_builder *builder,
                                               int32_t device);
DRY_API enum dry_status dry_trace_add_event(struct dry_trace_builder *builder,
                                            const struct dry_event *event);
/* A segment with its blocks (first_block and block_count are set here). */
DRY_API enum dry_status dry_trace_add_segment(struct dry_trace_builder *builder,
                                              const struct dry_trace_segment *segment,
                                              const struct dry_trace_block *blocks,
                                              size_t block_count);
DRY_API enum dry_status dry_trace_add_annotation(
    struct dry_trace_builder *builder, const struct dry_trace_annotation *annotation);
DRY_API enum dry_status dry_trace_set_settings(struct dry_trace_builder *builder,
                                               const struct dry_trace_settings *settings);
/* The trace, and the end of the builder whether or not this succeeds. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_builder_finish(
    struct dry_trace_builder *builder, struct dry_trace **trace, struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
