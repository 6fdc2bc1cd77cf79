// SPDX-License-Identifier: Apache-2.0
// Errors as texts, for Python.
#pragma once

#include <string>
#include <utility>

namespace shim
{

// Keep the text until the thread's next failure, and return it.
inline const char *
fail(std::string text)
{
    static thread_local std::string last;
    last = std::move(text);
    return last.c_str();
}

} // namespace shim
