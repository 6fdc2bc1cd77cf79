/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Search each string for the keywords of two tables, as a function's name and as a file's. A
 * frame's hints come from its two strings; a stack's are the union of its frames'. Cost: O(bytes of
 * strings + frames + lengths of stacks). hints.h has the idea.
 */
#include "explain/steps/hints.h"

#include <stdbool.h>
#include <string.h>

#include "base/ascii.h"
#include "base/fail.h"
#include "base/memory.h"

/* The hints of a string as a function's name and as a file's name. */
struct meaning {
    uint16_t name, file;
    uint8_t is_module_file, is_module_call, is_module_move, is_torch;
};

struct word {
    const char *text;
    uint16_t flags;
};

/* A string and the set of its bytes, which rules out most keywords without a search. */
struct text {
    const char *bytes;
    size_t length;
    uint64_t letters[4]; /* one bit per byte value */
};

static struct text
make_text(const char *bytes, size_t length)
{
    struct text text = {.bytes = bytes, .length = length};
    for (size_t i = 0; i < length; i++) {
        unsigned char letter = (unsigned char)bytes[i];
        text.letters[letter / 64] |= UINT64_C(1) << letter % 64;
    }
    return text;
}

static bool
holds(const struct text *text, const char *word)
{
    for (const char *at = word; *at; at++) {
        unsigned char letter = (unsigned char)*at;
        if (!(text->letters[letter / 64] >> letter % 64 & 1))
            return false;
    }
    return memmem(text->bytes, text->length, word, strlen(word)) != NULL;
}

static uint16_t
find_text_words(const struct text *text, const struct word *words, size_t count)
{
    uint16_t flags = 0;
    for (size_t i = 0; i < count; i++) {
        if (holds(text, words[i].text))
            flags |= words[i].flags;
    }
    return flags;
}

/* Find hints in a function's name, of Python or C++. */
static uint16_t
read_name(const struct text *text)
{
    static const struct word words[] = {
        {"Backward", DRYI_HINT_BACKWARD},
        {"backward", DRYI_HINT_BACKWARD},
        {"autograd::Engine", DRYI_HINT_BACKWARD},
        {"zero_grad", DRYI_HINT_ZERO_GRAD},
        {"optimizer_step", DRYI_HINT_OPTIMIZER},
        {"optimizer.step", DRYI_HINT_OPTIMIZER},
        {"Optimizer.step", DRYI_HINT_OPTIMIZER},
        {"Adam.", DRYI_HINT_OPTIMIZER},
        {"AdamW.", DRYI_HINT_OPTIMIZER},
        {"SGD.", DRYI_HINT_OPTIMIZER},
        {"DataLoader", DRYI_HINT_LOADER},
        {"next_batch", DRYI_HINT_LOADER},
        {"get_batch", DRYI_HINT_LOADER},
        {"load_batch", DRYI_HINT_LOADER},
        {"collate", DRYI_HINT_LOADER},
        {"__init__", DRYI_HINT_INIT},
        {"load_state_dict", DRYI_HINT_INIT},
        {"from_pretrained", DRYI_HINT_INIT},
        {"reset_parameters", DRYI_HINT_INIT},
        {"load_weights", DRYI_HINT_INIT},
        {"kv_cache", DRYI_HINT_KV_CACHE}, /* vLLM, SGLang, TensorRT-LLM */
        {"kv_buffer", DRYI_HINT_KV_CACHE},
        {"KVCache", DRYI_HINT_KV_CACHE},
        {"StaticCache", DRYI_HINT_KV_CACHE}, /* transformers */
        {"DynamicCache", DRYI_HINT_KV_CACHE},
    };
    uint16_t flags = find_text_words(text, words, sizeof words / sizeof *words);
    /* A name with both words is a schedule that runs both passes: no hint. */
    if ((flags & DRYI_HINT_BACKWARD) &&
        (holds(text, "forward") || holds(text, "Forward")))
        flags &= (uint16_t)~DRYI_HINT_BACKWARD;
    if (dryi_text_is(text->bytes, text->length, "forward") ||
        dryi_text_ends(text->bytes, text->length, ".forward"))
        flags |= DRYI_HINT_FORWARD;
    return flags;
}

static uint16_t
read_file(const struct text *text)
{
    static const struct word words[] = {
        {"torch/optim/", DRYI_HINT_OPTIMIZER},
        {"torch\\optim\\", DRYI_HINT_OPTIMIZER},
        {"/optimizers/", DRYI_HINT_OPTIMIZER},
        {"utils/data/", DRYI_HINT_LOADER},
        {"dataloader", DRYI_HINT_LOADER},
        {"data_loader", DRYI_HINT_LOADER},
        {"kv_cache", DRYI_HINT_KV_CACHE},
        {"cache_engine.py", DRYI_HINT_KV_CACHE},
        {"transformers/cache_utils.py", DRYI_HINT_KV_CACHE},
    };
    uint16_t flags = find_text_words(text, words, sizeof words / sizeof *words);
    return dryi_text_ends(text->bytes, text->length, ".py") ? flags | DRYI_HINT_PYTHON
                                                            : flags;
}

static struct meaning
read_meaning(const char *bytes, size_t length)
{
    struct text text = make_text(bytes, length);
    return (struct meaning){
        .name = read_name(&text),
        .file = read_file(&text),
        .is_module_file = dryi_text_ends(bytes, length, "torch/nn/modules/module.py") ||
                          dryi_text_ends(bytes, length, "torch\\nn\\modules\\module.py"),
        .is_module_call = dryi_text_is(bytes, length, "_call_impl") ||
                          dryi_text_is(bytes, length, "_wrapped_call_impl"),
        .is_torch = holds(&text, "torch/nn/") || holds(&text, "torch\\nn\\"),
        .is_module_move = dryi_text_is(bytes, length, "_apply") ||
                          dryi_text_is(bytes, length, "convert"),
    };
}

static uint16_t
read_frame(const struct meaning *meanings, const struct dry_frame *frame)
{
    static const struct meaning nothing;
    if (frame->flags & DRY_FRAME_FORWARD) /* names of the forward pass mislead there */
        return DRYI_HINT_BACKWARD;
    const struct meaning *name =
        frame->name == DRY_NONE ? &nothing : &meanings[frame->name];
    const struct meaning *file =
        frame->file == DRY_NONE ? &nothing : &meanings[frame->file];
    uint16_t flags = name->name | file->file;
    if (file->is_torch) /* forward() of a PyTorch wrapper, as
                           DistributedDataParallel.forward, is not the model's */
        flags &= (uint16_t)~DRYI_HINT_FORWARD;
    if (file->is_module_file && name->is_module_call)
        flags |= DRYI_HINT_MODULE;
    if (file->is_module_file && name->is_module_move)
        flags |= DRYI_HINT_INIT | DRYI_HINT_MOVE;
    return flags;
}

static void
read_frames(struct dryi_hints *w, const struct dry_trace_view *view,
            struct meaning *meanings)
{
    for (uint32_t s = 0; s < view->string_count; s++) {
        size_t length;
        const char *text = dry_trace_string(w->trace, s, &length);
        meanings[s] = read_meaning(text, length);
    }
    for (uint32_t f = 0; f < view->frame_count; f++)
        w->frames[f] = read_frame(meanings, &view->frames[f]);
    for (uint32_t s = 0; s < view->stack_count; s++) {
        size_t count;
        const uint32_t *frames = dry_trace_stack(w->trace, s, &count);
        for (size_t i = 0; i < count; i++)
            w->stacks[s] |= w->frames[frames[i]];
    }
}

enum dry_status
dryi_hints_init(struct dryi_hints *w, const struct dry_trace *trace,
                const struct dry_memory *memory, struct dry_error *err)
{
    const struct dry_trace_view *view = dry_trace_get_view(trace);
    *w = (struct dryi_hints){.memory = *memory,
                             .trace = trace,
                             .frame_count = view->frame_count,
                             .stack_count = view->stack_count};
    if (view->frame_count == 0 || view->stack_count == 0 || view->string_count == 0) {
        w->stack_count = w->frame_count = 0;
        return DRY_OK; /* all stacks are empty or missing, so there are no hints */
    }
    struct meaning *meanings =
        dryi_memory_zalloc(memory, view->string_count, sizeof *meanings);
    w->frames = dryi_memory_zalloc(memory, view->frame_count, sizeof *w->frames);
    w->stacks = dryi_memory_zalloc(memory, view->stack_count, sizeof *w->stacks);
    bool is_ok = meanings && w->frames && w->stacks;
    if (is_ok)
        read_frames(w, view, meanings);
    dryi_memory_free(memory, meanings, view->string_count, sizeof *meanings);
    if (is_ok)
        return DRY_OK;
    dryi_hints_finish(w);
    return dryi_fail_memory(err, "the words of the stacks");
}

void
dryi_hints_finish(struct dryi_hints *w)
{
    dryi_memory_free(&w->memory, w->frames, w->frame_count, sizeof *w->frames);
    dryi_memory_free(&w->memory, w->stacks, w->stack_count, sizeof *w->stacks);
    *w = (struct dryi_hints){.memory = w->memory};
}
