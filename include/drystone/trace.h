/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_TRACE_H
#define DRY_TRACE_H

/*
 * The record of a program's memory: its events, their stacks, and the segments at the
 * end.
 *
 * A trace is read from a file or built call by call, and never changes afterwards. The
 * file is a PyTorch memory snapshot, a plain trace, RMM's log, a CSV of lifetimes, or a log
 * with a dump of the BFC allocator, or a Chrome trace of PyTorch's profiler.
 * Events are stored as columns, in the order of the file, which is authoritative within a
 * device. Stacks, frames and strings are interned, so equal things have equal numbers.
 *
 *     struct dry_trace *trace;
 *     if (dry_trace_read(&source, NULL, &trace, &err) != DRY_OK) ...
 *     const struct dry_trace_view *v = dry_trace_get_view(trace);
 *     for (size_t i = 0; i < v->event_count; i++)
 *         use(v->action[i], v->size[i]);
 *     dry_trace_destroy(trace);
 *
 * A lane is a stream and a pool. A field documented as a string, a stack, a frame, a lane
 * or a note is an index in that table; DRY_NONE means no entry. The field `extra` holds
 * keys that the library does not know, kept for the writer. The window is the time that
 * the events cover.
 *
 * Ownership  dry_trace_read() and dry_trace_builder_finish() give the caller a trace,
 *            ended with dry_trace_destroy(). All memory that a view points to belongs to
 *            the trace.
 * Errors     Reading any bytes gives either a trace, or a status with a text and, if
 *            possible, the byte offset. No code in a file is executed, and no memory is
 *            allocated in proportion to a number in the file.
 * Threads    Any number of threads may use a trace at once, and one thread a builder.
 * Units      Sizes and addresses in bytes, times in microseconds.
 * Cost       O(bytes) to read and to write; O(1) to look up.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_trace;
struct dry_trace_builder;

/* An index that means no entry. */
#define DRY_NONE UINT32_MAX

/* A source of bytes. Each call of `read` sets *got to 1..capacity bytes, or to 0 at the
   end. A failing read fills err itself and returns a negative status. */
struct dry_source {
    enum dry_status (*read)(void *self, void *buffer, size_t capacity, size_t *got,
                            struct dry_error *err);
    void *self;
};

/*
 * A sink of bytes: `write` accepts all of them, or fills err and returns a negative
 * status.
 */
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
    DRY_TRACE_BUILT,     /* made by a dry_trace_builder */
    DRY_TRACE_BFC,       /* a dump of the BFC allocator of TensorFlow and XLA, in a log */
    DRY_TRACE_KINETO,    /* the memory events of PyTorch's profiler, in a Chrome trace */
    DRY_TRACE_NSIGHT, /* Nsight Systems recorded what processes got from CUDA's driver */
};

/* Return the name of a kind: "snapshot", "plain" ... A value that is no kind has that of BUILT. */
DRY_API const char *dry_trace_kind_name(enum dry_trace_kind kind);
/* Return a few words that tell a reader what such a file holds, and what it lacks. */
DRY_API const char *dry_trace_kind_text(enum dry_trace_kind kind);

/*
 * Actions: first those of PyTorch (c10/core/CachingDeviceAllocator.h, TraceEntry), then
 * those that exist in plain traces only. `addr` is an address if the view says has_addresses,
 * else the id of the allocation, unique among live allocations.
 */
enum dry_action {
    DRY_ACTION_ALLOC,          /* size: as requested; addr: the address returned */
    DRY_ACTION_FREE_REQUESTED, /* the program freed the block */
    DRY_ACTION_FREE_COMPLETED, /* no stream uses the block any more: it is reusable */
    DRY_ACTION_SEGMENT_ALLOC,  /* a whole segment from the driver */
    DRY_ACTION_SEGMENT_FREE,
    DRY_ACTION_SEGMENT_MAP, /* pages of an expandable segment */
    DRY_ACTION_SEGMENT_UNMAP,
    DRY_ACTION_SNAPSHOT,
    DRY_ACTION_OOM, /* size: rounded request; addr: bytes free on the device */
    DRY_ACTION_ANNOTATE,
    DRY_ACTION_OTHER,         /* an action of a later release, named in the note */
    DRY_ACTION_LIVE,          /* plain: allocated before the window */
    DRY_ACTION_RECORD_STREAM, /* plain: the lane's stream also uses the allocation */
    DRY_ACTION_STREAM_END,    /* plain: all work recorded on the lane's stream is done */
    DRY_ACTION_EMPTY_CACHE,   /* plain: the program called empty_cache() */
    DRY_ACTION_POOL_BEGIN,    /* plain: later allocations use the lane's pool */
    DRY_ACTION_POOL_END,
};
#define DRY_ACTION_COUNT 17

/* Return the name of an action, "alloc", "free_requested" ..., as PyTorch writes it if
   PyTorch has it. */
DRY_API const char *dry_action_name(enum dry_action action);

/* A stream and a pool. The allocator moves no memory between lanes. */
struct dry_lane {
    uint64_t stream;         /* the stream's pointer value, 0 is the default stream */
    uint64_t pool_a, pool_b; /* PyTorch's pool id; (0, 0) is the default pool */
    bool pool_known; /* false: the file has no pool ids, because it is older than them */
    uint8_t reserved[7];
};

/* Rare properties of an event. Strings are DRY_NONE if the key was absent. */
struct dry_note {
    uint32_t action_name;     /* a string: the name of a DRY_ACTION_OTHER */
    uint32_t compile_context; /* a string */
    uint32_t user_metadata;   /* a string; in a plain trace its label */
    uint32_t extra;           /* keys unknown to the library, kept for the writer */
    uint32_t flags;           /* DRY_NOTE_… */
};
#define DRY_NOTE_NO_TIME 1u /* the event had no time_us */
#define DRY_NOTE_NO_ADDR 2u /* the event had no address */

struct dry_frame {
    uint32_t name, file; /* strings, DRY_NONE if absent */
    uint32_t
        extra; /* unknown keys (fx_…), kept for the writer; with DRY_FRAME_TEXT a string */
    uint32_t line;
    uint32_t flags; /* DRY_FRAME_… */
};
/*
 * The frame is of the forward pass, in the stack of an allocation of the backward pass: PyTorch's
 * forward_frames. Such frames are the outermost of their stack, and have equal flags.
 */
#define DRY_FRAME_FORWARD 1u
/*
 * `extra` is the frame as traceback.format_stack() wrote it, and has the other members. A text of
 * another form is the name. Requires DRY_FRAME_FORWARD.
 */
#define DRY_FRAME_TEXT 2u

enum dry_block_state {
    DRY_BLOCK_INACTIVE,
    DRY_BLOCK_ACTIVE, /* "active_allocated" */
    /* "active_pending_free", in older files "active_awaiting_free". */
    DRY_BLOCK_PENDING_FREE,
};

/* A block as the file lists it, after the last event. */
struct dry_trace_block {
    uint64_t address; /* computed from the segment if the file does not have it */
    uint64_t size, requested_size;
    uint32_t stack; /* DRY_NONE if absent */
    uint32_t extra;
    enum dry_block_state state;
};

/* A segment as the file lists it, after the last event. */
struct dry_trace_segment {
    uint64_t address, total_size;
    /* the file's values; the sums over the blocks where the file has none */
    uint64_t allocated_size, active_size, requested_size;
    uint32_t lane;
    uint32_t stack;
    uint32_t extra;
    size_t first_block, block_count;
    int32_t device;
    bool is_large, is_expandable;
    /* true: the file has the key; files of 2023 lack it. */
    bool pool_id_known, expandable_known;
};

/* A record_function scope: PyTorch's external_annotations. */
struct dry_trace_annotation {
    int64_t time_us;
    uint32_t name, stage; /* strings; stage is "START" or "END" */
    uint32_t extra;
    int32_t device;
};

/* One device's ranges in the tables below. Device -1 is pinned host memory. */
struct dry_trace_device {
    int32_t device;
    size_t first_event, event_count;
    size_t first_segment, segment_count;
};
#define DRY_DEVICE_HOST (-1)

/* `allocator_settings`; a snapshot exports no other settings. */
struct dry_trace_settings {
    bool known;    /* false: the file has no settings (before about 2.1) */
    uint32_t conf; /* a string: the last PYTORCH_CUDA_ALLOC_CONF; DRY_NONE if absent */
    int64_t max_split_size; /* -1: unlimited */
    double garbage_collection_threshold;
    bool expandable_segments;
    bool roundup_known;
    uint64_t roundup_power2_divisions[16]; /* index i: key 2^i MiB */
    uint32_t extra;                        /* all other keys, kept for the writer */
};

/* A key or an action that the library does not know, and its number of occurrences. */
struct dry_trace_unknown {
    uint32_t name;  /* a string */
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

/* All tables of a trace; the caller must not change them. New fields are appended. */
struct dry_trace_view {
    enum dry_trace_kind kind;
    int protocol;        /* pickle protocol, -1: not a pickle */
    uint64_t byte_count; /* size of the file after decompression */

    size_t event_count; /* length of the columns below, which take 37 bytes per event */
    const uint8_t *action;
    const uint64_t *addr;
    const uint64_t *size;
    const int64_t *time_us;
    const uint32_t *lane;
    const uint32_t *stack; /* DRY_NONE: the event has no stack */
    const uint32_t *note;  /* DRY_NONE: the event has no note */

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
    uint32_t top_extra; /* top-level keys unknown to the library, kept for the writer */
    /* The file is a list of segments, as memory_snapshot() returns. */
    bool is_bare_list;
    bool has_traces; /* the file has a device_traces key */
    bool has_settings, has_annotations, has_host;

    uint32_t lane_count, frame_count, stack_count, string_count, note_count;
    const struct dry_lane *lanes;
    const struct dry_frame *frames;
    /* SNAPSHOT, BUILT, BFC, NSIGHT: events and segments have addresses. */
    bool has_addresses;
    uint64_t
        reserved_peak_bytes; /* KINETO: most that a device reserved, as recorded; else 0 */
    uint32_t dump_count; /* BFC: dumps in the log, of which the last was read; else 0 */
    /* NSIGHT: an allocation is one of the driver, a segment with one block. No request to an allocator
       is known, nor whether one failed; so such a trace cannot be run or written. */
    bool is_of_driver;
};

/* Return the view, which lives as long as the trace. */
DRY_API const struct dry_trace_view *dry_trace_get_view(const struct dry_trace *trace);

/* Return the bytes of `string`, followed by a zero byte; NULL for DRY_NONE. *length gets
   their number; `length` may be NULL. */
DRY_API const char *dry_trace_string(const struct dry_trace *trace, uint32_t string,
                                     size_t *length);

/*
 * Return the frames of `stack`, innermost first, and their *count; NULL and 0 for
 * DRY_NONE.
 */
DRY_API const uint32_t *dry_trace_stack(const struct dry_trace *trace, uint32_t stack,
                                        size_t *count);

/* Return a note; for DRY_NONE, a note in which every field is absent. */
DRY_API const struct dry_note *dry_trace_note(const struct dry_trace *trace,
                                              uint32_t note);

struct dry_trace_options {
    size_t struct_size; /* set by dry_trace_options_init() */
    const struct dry_memory *memory;
    uint64_t memory_bytes_max; /* limit for the trace and for reading it; default: none */
    uint32_t depth_max;        /* nesting limit of unknown values; default 64 */
    uint32_t string_bytes_max; /* limit on one string; default 16 MiB */
    /* Called about every 16 MiB with the bytes read so far; a result of true cancels. */
    bool (*progress)(void *self, uint64_t byte_count);
    void *progress_self;
};

/* Set all options to their defaults. */
DRY_API void dry_trace_options_init_sized(struct dry_trace_options *options,
                                          size_t struct_size);
#define dry_trace_options_init(options)                                                  \
    dry_trace_options_init_sized(options, sizeof *(options))

/*
 * Read a trace from `source` to its end; the result is *trace. The first bytes decide the
 * format. A pickle is parsed, never executed: every opcode that could name code (GLOBAL,
 * REDUCE, ...) is rejected with its name and byte offset. `options` NULL: the defaults.
 * O(bytes). Errors: FORMAT (err->offset has the position), LIMIT, MEMORY, CANCELLED, or
 * what the source returned.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_read(
    const struct dry_source *source, const struct dry_trace_options *options,
    struct dry_trace **trace, struct dry_error *err);

/* End the trace. NULL is fine. */
DRY_API void dry_trace_destroy(struct dry_trace *trace);

/*
 * Write a trace to `sink` as PyTorch writes its snapshots (pickle protocol 4). The kinds
 * of trace that have addresses can be written (has_addresses); others are
 * UNSUPPORTED. All data of the file is written. Reading it again gives an equal trace,
 * and CPython's unpickler an equal object. There are three exceptions: lists of pool ids
 * become tuples, the format of 2023 is modernized, and `forward_frames` that are empty or
 * without `frames` lose or get that list. Errors: UNSUPPORTED, MEMORY, or what the sink
 * returned.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_write(const struct dry_trace *trace,
                                                         const struct dry_sink *sink,
                                                         struct dry_error *err);

/*
 * Options of a builder. Calls after a failed call return the same status, so that only
 * dry_trace_builder_finish() needs a check. The ids returned by calls are those of the
 * trace; DRY_NONE after a failure.
 */
struct dry_trace_builder_options {
    size_t struct_size;
    const struct dry_memory *memory;
    /* Default DRY_TRACE_BUILT, in which `addr` is an address. */
    enum dry_trace_kind kind;
};

struct dry_event {
    enum dry_action action;
    uint64_t addr, size;
    int64_t time_us;
    uint32_t lane, stack, note; /* DRY_NONE for no stack or note */
};

/* Set all options to their defaults. */
DRY_API void dry_trace_builder_options_init_sized(
    struct dry_trace_builder_options *options, size_t struct_size);
#define dry_trace_builder_options_init(options)                                          \
    dry_trace_builder_options_init_sized(options, sizeof *(options))
/* Make a builder, *builder. `options` NULL: the defaults. Errors: MEMORY. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_builder_create(
    const struct dry_trace_builder_options *options, struct dry_trace_builder **builder,
    struct dry_error *err);
/* End a builder without a trace. NULL is fine. */
DRY_API void dry_trace_builder_destroy(struct dry_trace_builder *builder);

/*
 * Add a string of `length` bytes, and return its number; equal strings have equal
 * numbers.
 */
DRY_API uint32_t dry_trace_add_string(struct dry_trace_builder *builder,
                                      const char *bytes, size_t length);
/* Add a frame, whose strings must have been added. Returns its number; equal frames share one. */
DRY_API uint32_t dry_trace_add_frame(struct dry_trace_builder *builder,
                                     const struct dry_frame *frame);
/* Add a stack of `count` added frames, innermost first. Returns its number; equal stacks share one. */
DRY_API uint32_t dry_trace_add_stack(struct dry_trace_builder *builder,
                                     const uint32_t *frames, size_t count);
/* Add a lane. Returns its number; equal lanes share one. */
DRY_API uint32_t dry_trace_add_lane(struct dry_trace_builder *builder,
                                    const struct dry_lane *lane);
/* Add a note, whose strings and stack must have been added. Returns its number. */
DRY_API uint32_t dry_trace_add_note(struct dry_trace_builder *builder,
                                    const struct dry_note *note);
/*
 * Begin a device: the events added after this call belong to the device. All events of a
 * device must be added together. Without a call, the first event begins device 0. Errors:
 * ARGUMENT (a `device` below -1), MEMORY.
 */
DRY_API enum dry_status dry_trace_begin_device(struct dry_trace_builder *builder,
                                               int32_t device);
/* Add an event to the device begun last. Errors: ARGUMENT (an unknown action, lane, stack
   or note), MEMORY. */
DRY_API enum dry_status dry_trace_add_event(struct dry_trace_builder *builder,
                                            const struct dry_event *event);
/* Add a segment with its `block_count` blocks; first_block and block_count are set here.
   Errors: ARGUMENT, MEMORY. */
DRY_API enum dry_status dry_trace_add_segment(struct dry_trace_builder *builder,
                                              const struct dry_trace_segment *segment,
                                              const struct dry_trace_block *blocks,
                                              size_t block_count);
/* Add an annotation. */
DRY_API enum dry_status dry_trace_add_annotation(
    struct dry_trace_builder *builder, const struct dry_trace_annotation *annotation);
/* Set the settings of the trace. */
DRY_API enum dry_status dry_trace_set_settings(struct dry_trace_builder *builder,
                                               const struct dry_trace_settings *settings);
/* Finish the trace, which becomes *trace, and end the builder even on failure. Errors:
   the first failure of an earlier call, MEMORY. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_builder_finish(
    struct dry_trace_builder *builder, struct dry_trace **trace, struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
