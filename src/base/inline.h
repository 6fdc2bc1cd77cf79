/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_INLINE_H
#define DRYI_INLINE_H

/* Control what is inlined on hot paths. FLATTEN inlines all calls in a function, so that values
   stay in registers. NOINLINE and ALWAYS_INLINE override the compiler's own choice. */
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
