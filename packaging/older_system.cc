// SPDX-License-Identifier: Apache-2.0
// Functions that a shim of a wheel has of its own, so that it loads on systems of 2018. Compiled
// by scripts/make_shims.py.
//
// A newer compiler calls functions that glibc 2.28 or the libstdc++ of GCC 8 lacks. PyTorch brings
// no libstdc++, so a shim must go without them: their definitions stand here, compiled in.
#include <new>
#include <sstream>

// glibc has the variable since 2.32. Zero is always right: threads may be there.
extern "C" __attribute__((visibility("hidden"))) char __libc_single_threaded;
char __libc_single_threaded;

// Templates of streams that libstdc++ has compiled since GCC 9 and 11 only.
template std::ostringstream::basic_ostringstream();
template std::string std::stringbuf::str() const &;
template std::string std::stringbuf::str() &&;

// Since GCC 11, what operator new[] and std::allocator call for a count that is too large.
extern "C" [[noreturn]] __attribute__((visibility("hidden"))) void
array_too_long() __asm__("_ZSt28__throw_bad_array_new_lengthv");

void
array_too_long()
{
    throw std::bad_array_new_length();
}
