/* SPDX-License-Identifier: Apache-2.0 */

/* One pass over the name tracks the depth of brackets; tables of prefixes tell the kind. symbol.h
   has the rules, sources and cost. */
#include "explain/site/symbol.h"

#include <stdbool.h>
#include <string.h>

#include "base/ascii.h"

#define SYMBOL_BYTES_MAX 4096u

/* The bytes begin .. end - 1 of a name. */
struct span {
    const char *name;
    size_t begin, end;
};

static bool
begins_with(struct span s, const char *word)
{
    return dryi_text_begins(s.name + s.begin, s.end - s.begin, word);
}

static bool
ends_with(struct span s, const char *word)
{
    return dryi_text_ends(s.name + s.begin, s.end - s.begin, word);
}

/* Drop the return type and the parameters: "void at::f<int>(long) const" becomes "at::f<int>".
   Parentheses inside <>, in "(anonymous namespace)" and in "operator()" do not begin parameters. */
static struct span
cut_to_name(const char *name, size_t length)
{
    static const char anonymous[] = "(anonymous namespace)";
    struct span s = {name, 0, length};
    unsigned depth = 0;
    for (size_t i = 0; i < length; i++) {
        struct span rest = {name, i, length}, done = {name, s.begin, i};
        if (name[i] == '<') {
            depth++;
        } else if (name[i] == '>' && depth > 0) {
            depth--;
        } else if (name[i] == ' ' && depth == 0) {
            s.begin = i + 1;
        } else if (begins_with(rest, anonymous)) {
            i += sizeof anonymous - 2;
        } else if (name[i] == '(' && depth == 0) {
            if (ends_with(done, "operator") && i + 1 < length && name[i + 1] == ')') {
                i++;
                continue;
            }
            s.end = i;
            break;
        }
    }
    return s;
}

/* Return the component after the last "::". */
static struct span
last_part(struct span s)
{
    unsigned depth = 0;
    for (size_t i = s.end; i > s.begin; i--) {
        char c = s.name[i - 1];
        depth += c == '>';
        depth -= c == '<' && depth > 0;
        if (c == ':' && depth == 0) {
            s.begin = i;
            break;
        }
    }
    return s;
}

static struct span
without_last_part(struct span s)
{
    struct span last = last_part(s);
    s.end = last.begin >= s.begin + 2 ? last.begin - 2 : s.begin;
    return s;
}

/* Drop the overload: "div_Tensor" becomes "div". Overloads begin with a capital letter, or are one
   of a few common words. */
static struct span
without_overload(struct span s)
{
    static const char *const overloads[] = {
        "_device", "_dtype_layout", "_dtype", "_memory_format", "_out",       "_int",
        "_names",  "_dim",          "_start", "_other",         "_generator", "_self",
    };
    for (size_t i = s.begin + 1; i + 1 < s.end; i++) {
        if (s.name[i] == '_' && s.name[i + 1] >= 'A' && s.name[i + 1] <= 'Z') {
            s.end = i;
            break;
        }
    }
    for (size_t i = 0; i < sizeof overloads / sizeof *overloads; i++) {
        if (ends_with(s, overloads[i]) && s.end - s.begin > strlen(overloads[i]) + 1) {
            s.end -= strlen(overloads[i]);
            break;
        }
    }
    return s;
}

static void
set_operation(struct dryi_symbol *symbol, struct span s, enum dryi_operation operation)
{
    symbol->code = DRYI_CODE_OPERATION;
    symbol->operation = operation;
    symbol->op_begin = (uint32_t)s.begin;
    symbol->op_length = (uint32_t)(s.end - s.begin);
}

static bool
read_operation(struct dryi_symbol *symbol, struct span s)
{
    static const char *const workspaces[] = {
        "at::cuda::getCurrentCUDABlasHandle",
        "at::cuda::getCUDABlasLtWorkspace",
    };
    for (size_t i = 0; i < sizeof workspaces / sizeof *workspaces; i++) {
        if (begins_with(s, workspaces[i])) {
            set_operation(symbol, last_part(s), DRYI_OPERATION_WORKSPACE);
            return true;
        }
    }
    bool is_call = ends_with(s, "::call") || ends_with(s, "::redispatch");
    if (is_call && begins_with(s, "at::_ops::")) {
        struct span name = without_last_part(s);
        set_operation(symbol, without_overload(last_part(name)), DRYI_OPERATION_NAMED);
    } else if (begins_with(s, "torch::autograd::") &&
               begins_with(last_part(s), "THPVariable_")) {
        struct span name = last_part(s);
        name.begin += strlen("THPVariable_");
        set_operation(symbol, name, DRYI_OPERATION_BINDING);
    } else if (begins_with(s, "at::native::")) {
        set_operation(symbol, last_part(s), DRYI_OPERATION_INSIDE);
    } else {
        return false;
    }
    return true;
}

static bool
read_autograd(struct dryi_symbol *symbol, struct span s)
{
    if (!begins_with(s, "torch::autograd::") || !ends_with(s, "::apply") ||
        begins_with(s, "torch::autograd::PyNode") ||
        begins_with(s, "torch::autograd::Node::"))
        return false;
    struct span node = last_part(without_last_part(s));
    if (node.begin == node.end)
        return false;
    symbol->code = DRYI_CODE_AUTOGRAD;
    symbol->begin = (uint32_t)node.begin;
    symbol->length = (uint32_t)(node.end - node.begin);
    return true;
}

/* Return whether the name is of PyTorch, CPython, pybind11, or the C and C++ libraries. */
static bool
is_machinery(struct span s)
{
    static const char *const words[] = {
        "torch::",      "at::",
        "c10::",        "c10d::",
        "caffe2::",     "std::",
        "_Py",          "Py",
        "py",           "__",
        "_start",       "clone",
        "start_thread", "execute_native_thread_routine",
        "pthread_",     "cuda",
        "cublas",       "cudnn",
        "nccl",         "THP",
        "??",           "cfunction",
        "slot_tp_",     "method_",
        "run_mod",      "run_eval",
        "libc_",        "object_",
        "type_call",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (begins_with(s, words[i]))
            return true;
    }
    return s.begin == s.end;
}

void
dryi_symbol_read(struct dryi_symbol *symbol, const char *name, size_t length)
{
    if (length > SYMBOL_BYTES_MAX)
        length = SYMBOL_BYTES_MAX;
    struct span s = cut_to_name(name, length);
    if (s.begin >= s.end) /* nothing remains, as of "operator new(unsigned
                             long)": keep the whole name */
        s = (struct span){name, 0, length};
    *symbol = (struct dryi_symbol){.code = DRYI_CODE_NATIVE,
                                   .begin = (uint32_t)s.begin,
                                   .length = (uint32_t)(s.end - s.begin)};
    if (read_operation(symbol, s) || read_autograd(symbol, s))
        return;
    if (is_machinery(s))
        symbol->code = DRYI_CODE_MACHINERY;
}
