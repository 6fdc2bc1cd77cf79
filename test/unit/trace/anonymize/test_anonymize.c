/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anonymous traces: what is replaced, what stays, and that the proof accepts the right
 * results and no others.
 */
#include "support/cmocka.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/anonymize.h>

#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/pickle_text.h"

#define EVENT(name, file, line, rest)                                                    \
    "}('action' 'alloc' 'addr' #4096 'size' #512 'stream' #0 'time_us' #1000 'frames' "  \
    "](}('name' '" name "' 'filename' '" file "' 'line' #" line " u e " rest " u "
#define SNAPSHOT(events) "}('segments' ] 'device_traces' ](](" events "e e u."
#define LONG_NAME "train_step"

static const char full[] =
    "}('segments' ](}('device' #0 'address' #4096 'total_size' #2097152 'stream' #0 "
    "'owner' 'grace hopper' 'blocks' ](}('address' #4096 'size' #512 'requested_size' "
    "#500 "
    "'state' 'active_allocated' 'bookmark' #70000 u e u e "
    "'device_traces' ](](" EVENT(
        LONG_NAME, "/home/ada/acme/model.py", "7",
        "'user_metadata' 'ada rank 3' 'compile_context' 'N/A' 'mood' 'happy days'")
        EVENT("forward", "/home/ada/lib/site-packages/torch/nn/modules/linear.py", "8",
              "") EVENT("forward", "/home/ada/acme/layers.py", "9",
                        "'compile_context' '0/0'")
            EVENT("at::native::add(at::Tensor)", "??", "0", "")
                EVENT("acme::kernel(at::Tensor)", "??", "0",
                      "") "}('action' 'levitate' 'addr' #1 'size' #2 'stream' #3 "
                          "'time_us' #5000 u "
                          "e e "
                          "'external_annotations' ](}('name' 'epoch of ada' 'stage' "
                          "'START' 'device' #0 "
                          "'time_us' #900 u }('name' 'ProfilerStep#3' 'stage' 'END' "
                          "'device' #0 'time_us' #6000 u e "
                          "'allocator_settings' }('PYTORCH_CUDA_ALLOC_CONF' "
                          "'expandable_segments:True,acme_mode:3' "
                          "'max_split_size' #-1 'garbage_collection_threshold' % "
                          "'expandable_segments' + "
                          "'trace_alloc_max_entries' #100000 'acme_entries' #100000 u "
                          "'notes' }('host' 'ada-laptop' 'pid' #31337 'lowest' #7 "
                          "'share' % 'pair' #5 #6= u u.";

static const unsigned char key_bytes[16] = "0123456789abcde";

static struct dry_anonymize_options
make_options(void)
{
    struct dry_anonymize_options options;
    dry_anonymize_options_init(&options);
    options.key = key_bytes;
    options.key_bytes = sizeof key_bytes;
    return options;
}

static struct dry_trace *
read_text(const char *text)
{
    struct pickle_text pickle;
    pickle_text_init(&pickle, text);
    return bytes_read_trace(pickle.bytes, pickle.count);
}

static struct dry_trace *
anonymize(const struct dry_trace *trace, const struct dry_anonymize_options *options)
{
    struct dry_trace *anonymous = NULL;
    struct dry_error err = {0};
    if (dry_trace_anonymize(trace, options, &anonymous, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return anonymous;
}

static void
write_trace(const struct dry_trace *trace, struct bytes_sink *to)
{
    struct dry_sink sink = bytes_sink_init(to, SIZE_MAX);
    assert_int_equal(dry_trace_write(trace, &sink, NULL), DRY_OK);
}

static struct dry_anonymize_proof
verify(const struct dry_trace *trace, const struct dry_anonymize_options *options,
       const void *bytes, size_t count)
{
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, bytes, count);
    source.self = &from;
    from.step = 3; /* words lie across reads */
    struct dry_anonymize_proof proof = DRY_INIT(struct dry_anonymize_proof);
    struct dry_error err = {0};
    if (dry_anonymize_verify(trace, options, &source, &proof, &err) != DRY_OK)
        fail_msg("%s", err.text);
    assert_int_equal(proof.is_verified, proof.text[0] == '\0');
    return proof;
}

/* The whole way; the trace that was written and read again. */
static struct dry_trace *
share(const struct dry_trace *trace, const struct dry_anonymize_options *options,
      struct dry_anonymize_proof *proof)
{
    struct dry_trace *anonymous = anonymize(trace, options);
    struct bytes_sink to;
    write_trace(anonymous, &to);
    dry_trace_destroy(anonymous);
    *proof = verify(trace, options, to.bytes, to.count);
    if (!proof->is_verified)
        fail_msg("%s", proof->text);
    struct dry_trace *again = bytes_read_trace(to.bytes, to.count);
    bytes_sink_finish(&to);
    return again;
}

static const char *
string(const struct dry_trace *trace, uint32_t id)
{
    return dry_trace_string(trace, id, NULL);
}

/* The first frame of an event. */
static const struct dry_frame *
frame_of(const struct dry_trace *trace, size_t event)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    size_t count;
    const uint32_t *frames = dry_trace_stack(trace, v->stack[event], &count);
    assert_true(count > 0);
    return &v->frames[frames[0]];
}

/* '#' in the form is one to 64 digits, the rest stands for itself. */
static bool
has_form(const char *text, const char *form)
{
    for (; *form; form++) {
        if (*form != '#') {
            if (*text++ != *form)
                return false;
            continue;
        }
        size_t n = strspn(text, "0123456789abcdef");
        if (n == 0)
            return false;
        text += n;
    }
    return *text == '\0';
}

static void
assert_form(const char *text, const char *form)
{
    if (!text || !has_form(text, form))
        fail_msg("'%s' has not the form '%s'", text ? text : "(none)", form);
}

static void
names_and_paths_are_replaced(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(full);
    struct dry_anonymize_options options = make_options();
    struct dry_anonymize_proof proof = DRY_INIT(struct dry_anonymize_proof);
    struct dry_trace *again = share(trace, &options, &proof);
    const struct dry_frame *first = frame_of(again, 0), *third = frame_of(again, 2);
    assert_form(string(again, first->name), "f_#");
    assert_int_equal(strlen(string(again, first->name)), 2 + 8);
    const char *file = string(again, first->file);
    assert_form(file, "/d_#/d_#/d_#/m_#.py");
    /* The same folders, another file. */
    assert_memory_equal(file, string(again, third->file), strlen("/d_12345678") * 3);
    assert_string_not_equal(file, string(again, third->file));
    assert_form(string(again, frame_of(again, 1)->file),
                "/d_#/d_#/d_#/site-packages/torch/nn/modules/linear.py");
    assert_string_equal(string(again, frame_of(again, 1)->name), "forward");
    assert_form(string(again, third->name), "f_#");
    assert_string_equal(string(again, frame_of(again, 3)->name),
                        "at::native::add(at::Tensor)");
    assert_string_equal(string(again, frame_of(again, 3)->file), "??");
    assert_form(string(again, frame_of(again, 4)->name), "f_#");
    assert_int_equal(first->line, 7);
    assert_int_equal(proof.functions.replaced, 3);
    assert_int_equal(proof.functions.kept, 2);
    assert_int_equal(proof.files.replaced, 3);
    assert_int_equal(proof.files.kept, 1);
    assert_true(proof.searched_words > 10);
    dry_trace_destroy(again);
    dry_trace_destroy(trace);
}

static void
texts_actions_and_annotations_are_replaced(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(full);
    struct dry_anonymize_options options = make_options();
    struct dry_anonymize_proof proof = DRY_INIT(struct dry_anonymize_proof);
    struct dry_trace *again = share(trace, &options, &proof);
    const struct dry_trace_view *v = dry_trace_get_view(again);
    const struct dry_note *note = dry_trace_note(again, v->note[0]);
    assert_form(string(again, note->user_metadata), "s_#");
    assert_string_equal(string(again, note->compile_context), "N/A");
    assert_form(string(again, dry_trace_note(again, v->note[2])->compile_context), "s_#");
    assert_int_equal(v->action[5], DRY_ACTION_OTHER);
    assert_form(string(again, dry_trace_note(again, v->note[5])->action_name), "s_#");
    assert_form(string(again, v->annotations[0].name), "s_#");
    assert_string_equal(string(again, v->annotations[0].stage), "START");
    assert_string_equal(string(again, v->annotations[1].name), "ProfilerStep#3");
    assert_form(string(again, v->settings.conf), "expandable_segments:True,s_#:3");
    assert_int_equal(proof.annotations.replaced, 1);
    assert_int_equal(proof.settings.replaced, 1);
    dry_trace_destroy(again);
    dry_trace_destroy(trace);
}

static bool
contains(const struct bytes_sink *to, const char *text)
{
    return memmem(to->bytes, to->count, text, strlen(text)) != NULL;
}

static void
unknown_keys_keep_their_shape_only(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(full);
    struct dry_anonymize_options options = make_options();
    struct dry_trace *anonymous = anonymize(trace, &options);
    const struct dry_trace_view *a = dry_trace_get_view(trace),
                                *b = dry_trace_get_view(anonymous);
    assert_true(a->top_extra != DRY_NONE && b->top_extra != DRY_NONE);
    assert_int_equal(a->unknown_count, b->unknown_count);
    for (size_t i = 0; i < a->unknown_count; i++) {
        assert_true(a->unknowns[i].count == b->unknowns[i].count);
        assert_true(a->unknowns[i].where == b->unknowns[i].where);
        assert_form(string(anonymous, b->unknowns[i].name), "s_#");
    }
    struct bytes_sink to;
    write_trace(anonymous, &to);
    static const char *const hidden[] = {
        "rank 3", "epoch of", "hopper", "owner",   "bookmark",  "mood",       "happy",
        "notes",  "host",     "laptop", "pid",     "lowest",    "share",      "pair",
        "acme",   "levitate", "home",   LONG_NAME, "M\x69\x7a", "J\x70\x11\1"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (contains(&to, hidden[i]))
            fail_msg("'%s' is in the result", hidden[i]);
    assert_true(contains(&to, "trace_alloc_max_entries"));
    assert_non_null(memmem(to.bytes, to.count, "J\xa0\x86\1\0", 5)); /* its 100000 */
    assert_non_null(memmem(to.bytes, to.count, "K\5K\6\x86", 5));    /* the small pair */
    /* One half is a setting; the other was under a key of nobody. */
    static const char half[] = "G\x3f\xe0\0\0\0\0\0";
    const unsigned char *first = memmem(to.bytes, to.count, half, sizeof half);
    assert_non_null(first);
    first += sizeof half;
    assert_null(memmem(first, to.count - (size_t)(first - to.bytes), half, sizeof half));
    bytes_sink_finish(&to);
    dry_trace_destroy(anonymous);
    dry_trace_destroy(trace);
}

static void
all_numbers_of_the_record_stay(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(full);
    struct dry_anonymize_options options = make_options();
    struct dry_anonymize_proof proof = DRY_INIT(struct dry_anonymize_proof);
    struct dry_trace *again = share(trace, &options, &proof);
    const struct dry_trace_view *a = dry_trace_get_view(trace),
                                *b = dry_trace_get_view(again);
    assert_int_equal(b->event_count, a->event_count);
    for (size_t i = 0; i < a->event_count; i++) {
        assert_true(a->addr[i] == b->addr[i] && a->size[i] == b->size[i]);
        assert_true(a->time_us[i] - 900 == b->time_us[i]); /* an annotation was first */
    }
    assert_true(b->annotations[0].time_us == 0);
    assert_true(b->segments[0].address == 4096);
    assert_true(b->blocks[0].requested_size == 500);
    assert_true(b->settings.garbage_collection_threshold > 0.4);
    dry_trace_destroy(again);
    dry_trace_destroy(trace);
}

/* Strings of forward_frames are written anew, without the source code that they show. */
static void
frames_that_are_texts_keep_their_form(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(SNAPSHOT(
        EVENT("line", "/x/y.py", "1",
              "'forward_frames' ('  File \"/home/ada/acme/model.py\", line 7, in "
              "grace\n    ada_lovelace = 1\n' '  [Previous line repeated by ada]\n' "
              "'  File \"/a/site-packages/torch/nn/modules/linear.py\", line 134, "
              "in forward\n    return F.linear(ada)\n' l")));
    struct dry_anonymize_options options = make_options();
    for (int i = 0; i < 2; i++) {
        options.drop_lines = i == 1;
        struct dry_anonymize_proof proof = DRY_INIT(struct dry_anonymize_proof);
        struct dry_trace *again = share(trace, &options, &proof);
        size_t count;
        const struct dry_trace_view *v = dry_trace_get_view(again);
        const uint32_t *frames = dry_trace_stack(again, v->stack[0], &count);
        assert_int_equal(count, 4);
        const char *text = string(again, v->frames[frames[1]].extra);
        assert_non_null(
            strstr(text, i ? "torch/nn/modules/linear.py\", line 0, in forward"
                           : "torch/nn/modules/linear.py\", line 134, in forward"));
        assert_int_equal(v->frames[frames[2]].extra, v->frames[frames[2]].name);
        assert_int_equal(v->frames[frames[3]].line, i ? 0 : 7);
        for (uint32_t k = 0; k < v->string_count; k++) {
            assert_null(strstr(string(again, k), "acme"));
            assert_null(strstr(string(again, k), "grace"));
            assert_null(strstr(string(again, k), "lovelace"));
            assert_null(strstr(string(again, k), "repeated"));
        }
        dry_trace_destroy(again);
    }
    dry_trace_destroy(trace);
}

static void
options_hide_more_or_less(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(full);
    struct dry_anonymize_options options = make_options();
    options.hash_all = true;
    options.drop_lines = true;
    options.keep_times = true;
    options.digits = 12;
    struct dry_anonymize_proof proof = DRY_INIT(struct dry_anonymize_proof);
    struct dry_trace *again = share(trace, &options, &proof);
    assert_form(string(again, frame_of(again, 1)->file),
                "/d_#/d_#/d_#/site-packages/d_#/d_#/d_#/m_#.py");
    assert_form(string(again, frame_of(again, 1)->name), "f_#");
    assert_form(string(again, frame_of(again, 3)->name), "f_#");
    assert_int_equal(strlen(string(again, frame_of(again, 3)->name)), 2 + 12);
    assert_int_equal(frame_of(again, 0)->line, 0);
    assert_true(dry_trace_get_view(again)->time_us[0] == 1000);
    assert_form(string(again, dry_trace_get_view(again)->annotations[1].name), "s_#");
    dry_trace_destroy(again);
    dry_trace_destroy(trace);
}

static void
the_key_decides(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(full);
    struct dry_anonymize_options options = make_options();
    struct dry_trace *one = anonymize(trace, &options);
    struct dry_trace *two = anonymize(trace, &options);
    options.key = "another";
    options.key_bytes = 7;
    struct dry_trace *three = anonymize(trace, &options);
    const char *name = string(one, frame_of(one, 0)->name);
    assert_string_equal(name, string(two, frame_of(two, 0)->name));
    assert_string_not_equal(name, string(three, frame_of(three, 0)->name));
    dry_trace_destroy(one);
    dry_trace_destroy(two);
    dry_trace_destroy(three);
    dry_trace_destroy(trace);
}

static void
bad_options_are_refused(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(full), *anonymous = NULL;
    struct dry_anonymize_options options = make_options();
    struct dry_error err;
    options.digits = 17;
    assert_int_equal(dry_trace_anonymize(trace, &options, &anonymous, &err),
                     DRY_ERR_ARGUMENT);
    options = make_options();
    options.key_bytes = 0;
    assert_int_equal(dry_trace_anonymize(trace, &options, &anonymous, &err),
                     DRY_ERR_ARGUMENT);
    assert_int_equal(dry_trace_anonymize(trace, NULL, &anonymous, &err),
                     DRY_ERR_ARGUMENT);
    assert_null(anonymous);
    dry_trace_destroy(trace);
}

/* One digit has sixteen values: nearly every name must be given more. */
static void
collisions_are_told_apart(void **state)
{
    (void)state;
    struct dry_trace_builder *builder;
    assert_int_equal(dry_trace_builder_create(NULL, &builder, NULL), DRY_OK);
    uint32_t lane = dry_trace_add_lane(builder, &(struct dry_lane){.pool_known = true});
    for (uint32_t i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "layer_%u", i);
        struct dry_frame frame = {
            .name = dry_trace_add_string(builder, name, strlen(name)),
            .file = dry_trace_add_string(builder, name, strlen(name)),
            .extra = DRY_NONE,
        };
        uint32_t id = dry_trace_add_frame(builder, &frame);
        struct dry_event event = {.addr = 512 * i,
                                  .size = 512,
                                  .lane = lane,
                                  .stack = dry_trace_add_stack(builder, &id, 1),
                                  .note = DRY_NONE};
        dry_trace_add_event(builder, &event);
    }
    struct dry_trace *trace;
    assert_int_equal(dry_trace_builder_finish(builder, &trace, NULL), DRY_OK);
    struct dry_anonymize_options options = make_options();
    options.digits = 1;
    struct dry_anonymize_proof proof = DRY_INIT(struct dry_anonymize_proof);
    struct dry_trace *again = share(trace, &options, &proof);
    assert_int_equal(dry_trace_get_view(again)->frame_count, 500);
    for (uint32_t i = 0; i < 500; i++) { /* equal digits in both parts */
        const struct dry_frame *frame = frame_of(again, i);
        assert_string_equal(string(again, frame->name) + 2,
                            string(again, frame->file) + 2);
    }
    dry_trace_destroy(again);
    dry_trace_destroy(trace);
}

/* Unknown keys may grow beyond what a reader takes: then they are left out, and counted. */
static void
too_long_unknown_keys_are_left_out(void **state)
{
    (void)state;
    enum { COUNT = 15000 };
    char *extra = malloc(8 + COUNT * 3);
    assert_non_null(extra);
    memcpy(extra, "\x8c\1k](", 5);
    for (size_t i = 0; i < COUNT; i++)
        memcpy(extra + 5 + i * 3, "\x8c\1v", 3);
    extra[5 + COUNT * 3] = 'e';
    struct dry_trace_builder *builder;
    assert_int_equal(dry_trace_builder_create(NULL, &builder, NULL), DRY_OK);
    struct dry_note note = {DRY_NONE, DRY_NONE, DRY_NONE, 0, 0};
    note.extra = dry_trace_add_string(builder, extra, 6 + COUNT * 3);
    struct dry_event event = {
        .lane = dry_trace_add_lane(builder, &(struct dry_lane){.pool_known = true}),
        .stack = DRY_NONE,
        .note = dry_trace_add_note(builder, &note)};
    dry_trace_add_event(builder, &event);
    struct dry_trace *trace;
    assert_int_equal(dry_trace_builder_finish(builder, &trace, NULL), DRY_OK);
    struct dry_anonymize_options options = make_options();
    struct dry_anonymize_proof proof = DRY_INIT(struct dry_anonymize_proof);
    dry_trace_destroy(share(trace, &options, &proof));
    assert_int_equal(proof.dropped_values, 1);
    dry_trace_destroy(trace);
    free(extra);
}

static void
plain_labels_are_replaced_in_memory(void **state)
{
    (void)state;
    static const char text[] = "a 1 512 0 10 ada_weights\nf 1 512 0 20\n";
    struct dry_trace *trace = bytes_read_trace(text, sizeof text - 1);
    struct dry_anonymize_options options = make_options();
    struct dry_trace *anonymous = anonymize(trace, &options);
    const struct dry_trace_view *v = dry_trace_get_view(anonymous);
    assert_int_equal(v->kind, DRY_TRACE_PLAIN);
    assert_form(string(anonymous, dry_trace_note(anonymous, v->note[0])->user_metadata),
                "s_#");
    assert_true(v->time_us[0] == 0 && v->time_us[1] == 10);
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    assert_int_equal(dry_trace_write(anonymous, &sink, NULL), DRY_ERR_UNSUPPORTED);
    bytes_sink_finish(&to);
    dry_trace_destroy(anonymous);
    dry_trace_destroy(trace);
}

/* --- the proof ---------------------------------------------------------------------------- */

/* The proof of one trace against the anonymous form of another. */
static struct dry_anonymize_proof
verify_other(const char *original, const char *other,
             const struct dry_anonymize_options *options)
{
    struct dry_trace *trace = read_text(original), *from = read_text(other);
    struct dry_trace *anonymous = anonymize(from, options);
    struct bytes_sink to;
    write_trace(anonymous, &to);
    struct dry_anonymize_proof proof = verify(trace, options, to.bytes, to.count);
    bytes_sink_finish(&to);
    dry_trace_destroy(anonymous);
    dry_trace_destroy(from);
    dry_trace_destroy(trace);
    return proof;
}

static void
another_record_is_no_proof(void **state)
{
    (void)state;
    static const char one[] = SNAPSHOT(EVENT("aaaa", "/x/y.py", "1", "'zz' 'v'")
                                           EVENT("bbbb", "/x/y.py", "1", ""));
    static const char *const others[] = {
        /* two names became one; one event less; other lines, paths, texts */
        SNAPSHOT(EVENT("aaaa", "/x/y.py", "1", "'zz' 'v'")
                     EVENT("aaaa", "/x/y.py", "1", "")),
        SNAPSHOT(EVENT("aaaa", "/x/y.py", "1", "'zz' 'v'")),
        SNAPSHOT(EVENT("aaaa", "/x/y.py", "2", "'zz' 'v'")
                     EVENT("bbbb", "/x/y.py", "1", "")),
        SNAPSHOT(EVENT("aaaa", "/x/z.py", "1", "'zz' 'v'")
                     EVENT("bbbb", "/x/y.py", "1", "")),
        SNAPSHOT(EVENT("aaaa", "/x/y.cu", "1", "'zz' 'v'")
                     EVENT("bbbb", "/x/y.py", "1", "")),
        SNAPSHOT(EVENT("aaaa", "/x/y/y.py", "1", "'zz' 'v'")
                     EVENT("bbbb", "/x/y.py", "1", "")),
        SNAPSHOT(EVENT("aaaa", "/x/y.py", "1", "'zz' 'zz'")
                     EVENT("bbbb", "/x/y.py", "1", "")),
        SNAPSHOT(EVENT("aaaa", "/x/y.py", "1", "'zz' #5")
                     EVENT("bbbb", "/x/y.py", "1", "")),
        SNAPSHOT(EVENT("aaaa", "/x/y.py", "1", "'zz' 'v' 'user_metadata' 'm'")
                     EVENT("bbbb", "/x/y.py", "1", "")),
        SNAPSHOT(EVENT("aaaa", "/x/y.py", "1", "'zz' 'v'")
                     EVENT("bbbb", "/x/y.py", "1", "'forward_frames' ('t' l")),
    };
    struct dry_anonymize_options options = make_options();
    assert_true(verify_other(one, one, &options).is_verified);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (verify_other(one, others[i], &options).is_verified)
            fail_msg("case %zu was taken for the same", i);
    }
}

static void
other_numbers_are_no_proof(void **state)
{
    (void)state;
    static const char *const from[] = {"'size' #512",
                                       "'addr' #4096",
                                       "'stream' #0",
                                       "'total_size' #2097152",
                                       "'requested_size' #500",
                                       "'time_us' #6000",
                                       "'max_split_size' #-1",
                                       "'bookmark' #70000",
                                       "'lowest' #7",
                                       "'trace_alloc_max_entries' #100000",
                                       "'END'",
                                       "expandable_segments:True",
                                       "??"};
    static const char *const to[] = {"'size' #513",
                                     "'addr' #4097",
                                     "'stream' #1",
                                     "'total_size' #2097153",
                                     "'requested_size' #501",
                                     "'time_us' #6001",
                                     "'max_split_size' #77",
                                     "'bookmark' #70001",
                                     "'lowest' #8",
                                     "'trace_alloc_max_entries' #100001",
                                     "'WAY'",
                                     "expandable_segments:Wall",
                                     "?!"};
    struct dry_anonymize_options options = make_options();
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        char other[sizeof full + 16];
        const char *place = strstr(full, from[i]);
        assert_non_null(place);
        snprintf(other, sizeof other, "%.*s%s%s", (int)(place - full), full, to[i],
                 place + strlen(from[i]));
        if (verify_other(full, other, &options).is_verified)
            fail_msg("%s was taken for %s", to[i], from[i]);
    }
}

static void
what_leaks_is_found(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(full);
    struct dry_anonymize_options options = make_options();
    struct dry_trace *anonymous = anonymize(trace, &options);
    struct bytes_sink to;
    write_trace(anonymous, &to);
    const char *alias = string(anonymous, frame_of(anonymous, 0)->name);
    assert_int_equal(strlen(alias), strlen(LONG_NAME));
    unsigned char *place = memmem(to.bytes, to.count, alias, strlen(alias));
    assert_non_null(place);
    memcpy(place, LONG_NAME, strlen(LONG_NAME));
    struct dry_anonymize_proof proof = verify(trace, &options, to.bytes, to.count);
    assert_false(proof.is_verified);
    assert_true(proof.found_texts > 0 && proof.found_bytes > 0);
    assert_non_null(strstr(proof.text, LONG_NAME));
    memcpy(place, "ada plays!", strlen(LONG_NAME)); /* of another text, in pieces */
    proof = verify(trace, &options, to.bytes, to.count);
    assert_false(proof.is_verified);
    bytes_sink_finish(&to);
    dry_trace_destroy(anonymous);
    dry_trace_destroy(trace);
}

static void
the_original_itself_is_no_proof(void **state)
{
    (void)state;
    struct pickle_text pickle;
    pickle_text_init(&pickle, full);
    struct dry_trace *trace = bytes_read_trace(pickle.bytes, pickle.count);
    struct dry_anonymize_options options = make_options();
    struct dry_anonymize_proof proof =
        verify(trace, &options, pickle.bytes, pickle.count);
    assert_false(proof.is_verified);
    assert_true(proof.found_texts >= 10 && proof.found_bytes >= 3);
    dry_trace_destroy(trace);
}

static void
bytes_behind_the_end_are_no_proof(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(full);
    struct dry_anonymize_options options = make_options();
    struct dry_trace *anonymous = anonymize(trace, &options);
    struct bytes_sink to;
    write_trace(anonymous, &to);
    unsigned char *longer = malloc(to.count + 3);
    assert_non_null(longer);
    memcpy(longer, to.bytes, to.count);
    memcpy(longer + to.count, "abc", 3);
    assert_true(verify(trace, &options, longer, to.count).is_verified);
    assert_false(verify(trace, &options, longer, to.count + 3).is_verified);
    free(longer);
    bytes_sink_finish(&to);
    dry_trace_destroy(anonymous);
    dry_trace_destroy(trace);
}

static void
what_stays_elsewhere_is_excused(void **state)
{
    (void)state;
    /* `linear` and `torch/nn` are texts of the user and parts of PyTorch's paths. */
    static const char text[] =
        SNAPSHOT(EVENT("linear", "/home/x.py", "1", "'user_metadata' 'torch/nn'")
                     EVENT("linear", "/v/site-packages/torch/nn/linear.py", "1",
                           "'compile_context' '.pyc'") EVENT("f", "/v/a.pyc", "1", ""));
    struct dry_trace *trace = read_text(text);
    struct dry_anonymize_options options = make_options();
    struct dry_anonymize_proof proof = DRY_INIT(struct dry_anonymize_proof);
    struct dry_trace *again = share(trace, &options, &proof);
    assert_true(proof.public_words >= 3);
    assert_form(string(again, frame_of(again, 0)->name), "f_#");
    assert_string_equal(string(again, frame_of(again, 1)->name), "linear");
    dry_trace_destroy(again);
    dry_trace_destroy(trace);
}

/* --- no memory ----------------------------------------------------------------------------- */

static void
no_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(full);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_anonymize_options options = make_options();
        options.memory = &memory;
        struct dry_trace *anonymous = NULL;
        struct dry_error err = {0};
        enum dry_status status = dry_trace_anonymize(trace, &options, &anonymous, &err);
        assert_int_equal(status == DRY_OK, anonymous != NULL);
        dry_trace_destroy(anonymous);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
        if (status != DRY_ERR_MEMORY)
            fail_msg("request %zu: %s", n, dry_status_name(status));
        assert_int_equal(err.status, DRY_ERR_MEMORY);
    }
    dry_trace_destroy(trace);
}

static void
no_memory_is_no_proof(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text(full);
    struct dry_anonymize_options options = make_options();
    struct dry_trace *anonymous = anonymize(trace, &options);
    struct bytes_sink to;
    write_trace(anonymous, &to);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        options.memory = &memory;
        struct bytes_source from;
        struct dry_source source = bytes_source_init(&from, to.bytes, to.count);
        struct dry_anonymize_proof proof = DRY_INIT(struct dry_anonymize_proof);
        struct dry_error err = {0};
        enum dry_status status =
            dry_anonymize_verify(trace, &options, &source, &proof, &err);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_true(status == DRY_OK && proof.is_verified);
            break;
        }
        assert_int_equal(status, DRY_ERR_MEMORY);
        assert_false(proof.is_verified);
    }
    bytes_sink_finish(&to);
    dry_trace_destroy(anonymous);
    dry_trace_destroy(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_paths_are_replaced),
        cmocka_unit_test(texts_actions_and_annotations_are_replaced),
        cmocka_unit_test(unknown_keys_keep_their_shape_only),
        cmocka_unit_test(all_numbers_of_the_record_stay),
        cmocka_unit_test(frames_that_are_texts_keep_their_form),
        cmocka_unit_test(options_hide_more_or_less),
        cmocka_unit_test(the_key_decides),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(collisions_are_told_apart),
        cmocka_unit_test(too_long_unknown_keys_are_left_out),
        cmocka_unit_test(plain_labels_are_replaced_in_memory),
        cmocka_unit_test(another_record_is_no_proof),
        cmocka_unit_test(other_numbers_are_no_proof),
        cmocka_unit_test(what_leaks_is_found),
        cmocka_unit_test(the_original_itself_is_no_proof),
        cmocka_unit_test(bytes_behind_the_end_are_no_proof),
        cmocka_unit_test(what_stays_elsewhere_is_excused),
        cmocka_unit_test(no_memory_leaves_nothing_behind),
        cmocka_unit_test(no_memory_is_no_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
