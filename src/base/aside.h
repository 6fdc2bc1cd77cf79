/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ASIDE_H
#define DRYI_ASIDE_H

/*
 * What is called often, and what is not. A FLAT function takes in all that it calls, so that what
 * it works on stays in registers; ASIDE ones are never made a part of their callers, WITHIN ones
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
