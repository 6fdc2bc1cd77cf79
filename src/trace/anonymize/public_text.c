/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The idea is in public_text.h. Lists hold words; grammars are scanners from left to
 * right. Sources: the files of PyTorch and CPython that are named beside each list.
 */
#include "trace/anonymize/public_text.h"

#include <string.h>

#include "base/ascii.h"
#include "trace/model/trace.h"
#include "trace/pickle/pickle_key.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Fixed values and keys that have no number in the pickle reader. */
static const char *const words[] = {
    "N/A", /* no compile context */
    "START", "END", "other",
    /* Words of allocator_settings: torch/cuda/memory.py, c10/core/AllocatorConfig.h. */
    "pinned_num_register_threads", "release_lock_on_cudamalloc",
    "release_lock_on_hipmalloc", "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register", "graph_capture_record_stream_reuse",
    "max_round_threshold", "max_cached_size", "trace_alloc_overflowed",
    "trace_alloc_max_entries",
    /* Words that Drystone's pools write, to tell readers whose placement rules apply. */
    "drystone_placement", "drystone_conf", "paged",
    /* Words of frames in code made by torch.fx. */
    "fx_node_op", "fx_node_name", "fx_node_target", "fx_original_trace"};

/* Words of PYTORCH_CUDA_ALLOC_CONF, except those above and keys of the reader. */
static const char *const setting_names[] = {"large_segment_size_mb",
                                            "max_split_size_mb",
                                            "max_non_split_rounding_mb",
                                            "pinned_use_background_threads",
                                            "pinned_max_round_threshold_mb",
                                            "pinned_max_cached_size_mb",
                                            "backend",
                                            "pinned_reserve_segment_size_mb",
                                            "pinned_free_catch_all",
                                            "per_process_memory_fraction",
                                            "throw_on_cudamalloc_oom",
                                            "expandable_segments_reserve",
                                            "expandable_segments_reserve_by_class",
                                            "True",
                                            "False",
                                            "native",
                                            "cudaMallocAsync"};

static const char *const python_functions[] = {
    "<module>",  "<lambda>",  "<listcomp>",           "<dictcomp>",
    "<setcomp>", "<genexpr>", "<unwind unsupported>", "??"};

static const char *const files_of_nobody[] = {"??",
                                              "<string>",
                                              "<stdin>",
                                              "<frozen importlib._bootstrap>",
                                              "<frozen importlib._bootstrap_external>",
                                              "<frozen runpy>"};

static const char *const public_parts[] = {"site-packages", "dist-packages", ".", ".."};

/* Names at the top of PyTorch's package, releases 1.13 to 2.15, without file endings. */
static const char *const torch_parts[] = {
    "_C",
    "_C_flatbuffer",
    "_VF",
    "__config__",
    "__future__",
    "__init__",
    "_appdirs",
    "_awaits",
    "_classes",
    "_compile",
    "_custom_op",
    "_custom_ops",
    "_decomp",
    "_deploy",
    "_dispatch",
    "_dynamo",
    "_export",
    "_functorch",
    "_guards",
    "_higher_order_ops",
    "_inductor",
    "_jit_internal",
    "_lazy",
    "_library",
    "_linalg_utils",
    "_lobpcg",
    "_logging",
    "_lowrank",
    "_masked",
    "_meta_registrations",
    "_namedtensor_internals",
    "_numpy",
    "_ops",
    "_prims",
    "_prims_common",
    "_refs",
    "_sources",
    "_storage_docs",
    "_streambase",
    "_strobelight",
    "_subclasses",
    "_tensor",
    "_tensor_docs",
    "_tensor_str",
    "_thread_safe_fork",
    "_torch_docs",
    "_utils",
    "_utils_internal",
    "_vendor",
    "_vmap_internals",
    "_weights_only_unpickler",
    "accelerator",
    "amp",
    "ao",
    "autograd",
    "backends",
    "bin",
    "compiler",
    "contrib",
    "cpu",
    "csrc",
    "cuda",
    "distributed",
    "distributions",
    "export",
    "fft",
    "func",
    "functional",
    "futures",
    "fx",
    "hub",
    "include",
    "jit",
    "lib",
    "library",
    "linalg",
    "masked",
    "monitor",
    "mps",
    "mtia",
    "multiprocessing",
    "nativert",
    "nested",
    "nn",
    "numa",
    "onnx",
    "optim",
    "overrides",
    "package",
    "profiler",
    "quantization",
    "quasirandom",
    "random",
    "return_types",
    "serialization",
    "signal",
    "sparse",
    "special",
    "storage",
    "testing",
    "torch_version",
    "types",
    "utils",
    "version",
    "xpu",
};

static const char *const endings[] = {".py", ".pyc", ".pyx", ".ipynb", ".cpp",
                                      ".cc", ".cxx", ".c",   ".cu",    ".cuh",
                                      ".h",  ".hpp", ".so"};

static const char *const namespaces[] = {"at",     "c10", "c10d",      "torch",
                                         "caffe2", "std", "__gnu_cxx", "pybind11",
                                         "thrust", "cub"};

/* Words of C++ names outside any namespace: keywords, types, and gcc's clone suffixes. */
static const char *const cpp_keywords[] = {
    "void",     "bool",     "char",     "short",    "int",      "long",      "float",
    "double",   "signed",   "unsigned", "const",    "volatile", "auto",      "decltype",
    "nullptr",  "true",     "false",    "operator", "lambda",   "static",    "constexpr",
    "noexcept", "struct",   "class",    "enum",     "typename", "template",  "new",
    "delete",   "size_t",   "int8_t",   "int16_t",  "int32_t",  "int64_t",   "uint8_t",
    "uint16_t", "uint32_t", "uint64_t", "wchar_t",  "char8_t",  "char16_t",  "char32_t",
    "__int128", "__half",   "_object",  "clone",    "isra",     "constprop", "part",
    "cold"};

static const char *const optimizers[] = {"Adadelta", "Adafactor", "Adagrad",   "Adam",
                                         "AdamW",    "Adamax",    "ASGD",      "LBFGS",
                                         "Muon",     "NAdam",     "RAdam",     "RMSprop",
                                         "Rprop",    "SGD",       "SparseAdam"};

static bool
is_in(const char *const *list, size_t count, const char *text, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (dryi_text_is(text, length, list[i]))
            return true;
    }
    return false;
}

bool
dryi_public_word(const char *text, size_t length)
{
    for (unsigned key = 0; key < DRYI_TEXT_COUNT; key++) {
        if (dryi_text_is(text, length, dryi_key_text((enum dryi_key)key)))
            return true;
    }
    for (unsigned action = 0; action < DRY_ACTION_COUNT; action++) {
        if (dryi_text_is(text, length, dry_action_name((enum dry_action)action)))
            return true;
    }
    return is_in(words, COUNT_OF(words), text, length);
}

const char *
dryi_public_word_at(size_t index)
{
    static const struct {
        const char *const *words;
        size_t count;
    } lists[] = {
        {words, COUNT_OF(words)},
        {setting_names, COUNT_OF(setting_names)},
        {python_functions, COUNT_OF(python_functions)},
        {files_of_nobody, COUNT_OF(files_of_nobody)},
        {public_parts, COUNT_OF(public_parts)},
        {endings, COUNT_OF(endings)},
    };
    if (index < DRYI_TEXT_COUNT)
        return dryi_key_text((enum dryi_key)index);
    index -= DRYI_TEXT_COUNT;
    if (index < DRY_ACTION_COUNT)
        return dry_action_name((enum dry_action)index);
    index -= DRY_ACTION_COUNT;
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        if (index < lists[i].count)
            return lists[i].words[index];
        index -= lists[i].count;
    }
    return NULL;
}

bool
dryi_is_word_char(char c)
{
    return dryi_is_letter(c) || dryi_is_digit(c) || c == '_' || (unsigned char)c >= 0x80;
}

static size_t
count_word(const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && dryi_is_word_char(text[n]))
        n++;
    return n;
}

static bool
are_digits(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!dryi_is_digit(text[i]))
            return false;
    }
    return length > 0 && length <= 20;
}

/* --- C++ names ------------------------------------------------------------------------- */

/* The token left of the current position in a C++ name. */
enum left {
    LEFT_NOTHING, /* a chain may begin here */
    LEFT_PUBLIC,  /* a chain whose first name is public, or a closing bracket */
    LEFT_JOIN,    /* "::" after a public chain */
};

/* Return true for numbers such as "4ul" and "0": 20 characters identify nothing. */
static bool
is_number(const char *word, size_t length)
{
    return dryi_is_digit(word[0]) && length <= 20 && word[length - 1] != '_';
}

/* Accept a name that continues or begins a public chain, or a word of the language. */
static bool
take_word(const char *word, size_t length, bool has_join, enum left *left)
{
    if (*left == LEFT_JOIN ||
        (has_join && is_in(namespaces, COUNT_OF(namespaces), word, length))) {
        *left = LEFT_PUBLIC;
        return true;
    }
    *left = LEFT_NOTHING;
    return is_in(cpp_keywords, COUNT_OF(cpp_keywords), word, length) ||
           is_number(word, length);
}

static bool
take_mark(char c, enum left *left)
{
    if (c == '~' && *left == LEFT_JOIN)
        return true;
    *left = strchr(">)}]'", c) ? LEFT_PUBLIC : LEFT_NOTHING;
    return c != '\0' && strchr("<>()[]{}&*,#~.=+-!|^%/' ", c);
}

static bool
is_public_cpp(const char *name, size_t length)
{
    static const char nameless[] = "(anonymous namespace)";
    enum left left = LEFT_NOTHING;
    for (size_t at = 0; at < length;) {
        const char *rest = name + at;
        size_t count = length - at, n = count_word(rest, count);
        if (n > 0) {
            if (!take_word(rest, n, dryi_text_begins(rest + n, count - n, "::"), &left))
                return false;
        } else if (dryi_text_begins(rest, count, "::")) {
            n = 2;
            if (left != LEFT_PUBLIC)
                return false;
            left = LEFT_JOIN;
        } else if (left == LEFT_JOIN && dryi_text_begins(rest, count, nameless)) {
            n = sizeof nameless - 1;
            left = LEFT_PUBLIC;
        } else {
            n = 1;
            if (!take_mark(*rest, &left))
                return false;
        }
        at += n;
    }
    return true;
}

bool
dryi_public_python(const char *name, size_t length)
{
    return length == 0 ||
           is_in(python_functions, COUNT_OF(python_functions), name, length);
}

bool
dryi_public_cpp(const char *name, size_t length)
{
    return memmem(name, length, "::", 2) && is_public_cpp(name, length);
}

/* --- annotations and settings ---------------------------------------------------------- */

/* Match "Optimizer.step#AdamW.step", `what` being "step" (torch/optim/optimizer.py). */
static bool
is_optimizer(const char *name, size_t length, const char *what)
{
    static const char head[] = "Optimizer.";
    size_t n = strlen(what), head_length = sizeof head - 1;
    if (length <= head_length + 2 * n + 2 || !dryi_text_begins(name, length, head) ||
        memcmp(name + head_length, what, n) != 0 || name[head_length + n] != '#' ||
        memcmp(name + length - n, what, n) != 0 || name[length - n - 1] != '.')
        return false;
    size_t begin = head_length + n + 1;
    return is_in(optimizers, COUNT_OF(optimizers), name + begin, length - n - 1 - begin);
}

bool
dryi_public_annotation(const char *name, size_t length)
{
    static const char step[] = "ProfilerStep#";
    size_t n = sizeof step - 1;
    if (dryi_text_begins(name, length, step) && are_digits(name + n, length - n))
        return true;
    return is_optimizer(name, length, "step") || is_optimizer(name, length, "zero_grad");
}

bool
dryi_is_setting_separator(char c)
{
    return c != '\0' && strchr(",:[]> \t\r\n", c);
}

/* Return true for a size or a fraction, such as "512", "0.8" or "40G". */
static bool
is_quantity(const char *word, size_t length)
{
    size_t n = 0;
    while (n < length && (dryi_is_digit(word[n]) || word[n] == '.'))
        n++;
    if (n == 0 || n > 20 || length - n > 3)
        return false;
    for (; n < length; n++) {
        if (word[n] == '\0' || !strchr("kmgtpbiKMGTPB", word[n]))
            return false;
    }
    return true;
}

bool
dryi_public_setting(const char *word, size_t length)
{
    return dryi_public_word(word, length) ||
           is_in(setting_names, COUNT_OF(setting_names), word, length) ||
           is_quantity(word, length);
}

/* --- paths ------------------------------------------------------------------------------ */

bool
dryi_is_path_separator(char c)
{
    return c == '/' || c == '\\';
}

bool
dryi_public_file(const char *path, size_t length)
{
    static const char fx[] = "<eval_with_key>."; /* torch/fx/graph_module.py */
    size_t n = sizeof fx - 1;
    return length == 0 ||
           is_in(files_of_nobody, COUNT_OF(files_of_nobody), path, length) ||
           (dryi_text_begins(path, length, fx) && are_digits(path + n, length - n));
}

/* Return the length of a common file ending; 0 if there is none, or nothing before it. */
static size_t
count_ending(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        size_t n = strlen(endings[i]);
        if (length > n && memcmp(name + length - n, endings[i], n) == 0)
            return n;
    }
    return 0;
}

/*
 * Accept separators, words, '.', '-' and '+', and a common file ending: PyTorch's own
 * files have no other characters.
 */
static bool
is_plain_path(const char *path, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = path[i];
        if (!dryi_is_letter(c) && !dryi_is_digit(c) && !dryi_is_path_separator(c) &&
            (c == '\0' || !strchr("_.-+", c)))
            return false;
        if (c == '.' && i + 1 < length && path[i + 1] == '.')
            return false;
    }
    return count_ending(path, length) > 0;
}

/* Return true if the first component of the path is at the top of PyTorch's package. */
static bool
is_torch_part(const char *path, size_t length)
{
    size_t part = 0;
    while (part < length && !dryi_is_path_separator(path[part]))
        part++;
    if (part == length)
        part -= count_ending(path, length);
    return is_in(torch_parts, COUNT_OF(torch_parts), path, part);
}

/*
 * A folder called torch proves nothing: users name projects and environments so. Accept
 * only torch in site-packages or dist-packages, where pip and distributions install it.
 * Inside it, accept only PyTorch's own top-level names, because projects are put below
 * it, too.
 */
size_t
dryi_public_tail(const char *path, size_t length)
{
    static const char packages[] = "-packages", torch[] = "torch";
    size_t packages_length = sizeof packages - 1, torch_length = sizeof torch - 1;
    size_t tail = packages_length + 5; /* shortest begin: "/site-packages" */
    for (; tail + torch_length + 2 < length; tail++) {
        const char *at = path + tail, *before = at - packages_length - 4;
        if (dryi_is_path_separator(at[0]) &&
            memcmp(at - packages_length, packages, packages_length) == 0 &&
            dryi_is_path_separator(before[-1]) &&
            (memcmp(before, "site", 4) == 0 || memcmp(before, "dist", 4) == 0) &&
            memcmp(at + 1, torch, torch_length) == 0 &&
            dryi_is_path_separator(at[1 + torch_length]))
            break;
    }
    if (tail + torch_length + 2 >= length)
        return length;
    const char *rest = path + tail + 1 + torch_length + 1;
    size_t rest_length = length - tail - torch_length - 2;
    return is_torch_part(rest, rest_length) && is_plain_path(rest, rest_length) ? tail + 1
                                                                                : length;
}

bool
dryi_path_next(const char *path, size_t length, size_t tail, size_t *at,
               struct dryi_path_part *part)
{
    size_t begin = *at;
    while (begin < length && dryi_is_path_separator(path[begin]))
        begin++;
    size_t end = begin;
    while (end < length && !dryi_is_path_separator(path[end]))
        end++;
    *at = end;
    if (begin == end)
        return false;
    *part = (struct dryi_path_part){.begin = begin, .length = end - begin};
    part->stem_length = part->length;
    if (end == length)
        part->stem_length -= count_ending(path + begin, part->length);
    part->is_public = begin >= tail || is_in(public_parts, COUNT_OF(public_parts),
                                             path + begin, part->length);
    return true;
}
