/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ASIDE_H
#define DRYI_ASIDE_H

/*
 * Hot paths and what stands aside of them. A FLAT function takes in all that it calls, so that its
 * values stay in registers. An ASIDE function is never made a part of its callers, a WITHIN one
 * always.
 */
#if defined(__GNUC__)
#define DRYI_FLAT __attribute__((flatten))
#define DRYI_ASIDE __attribute__((noinline))
#define DRYI_WITHIN __attribute__((always_inline))
#else
#define DRYI_FLAT
#define DRYI_ASIDE
#define DRYI_WITHIN
#endif

#endif
