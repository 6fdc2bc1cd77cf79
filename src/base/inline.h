/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_INLINE_H
#define DRYI_INLINE_H

/*
 * Attributes that say what the compiler inlines on hot paths. A FLATTEN function takes in all that
 * it calls, so that its values stay in registers. A NOINLINE function is never made a part of its
 * callers, an ALWAYS_INLINE function always.
 */
#if defined(__GNUC__)
#define DRYI_FLATTEN __attribute__((flatten))
#define DRYI_NOINLINE __attribute__((noinline))
#define DRYI_ALWAYS_INLINE __attribute__((always_inline))
#else
#define DRYI_FLATTEN
#define DRYI_NOINLINE
#define DRYI_ALWAYS_INLINE
#endif

#endif
