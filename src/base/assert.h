/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ASSERT_H
#define DRYI_ASSERT_H

/*
 * Three levels, set by -Dassertions=off|fast|slow (fast is the default, also in a release).
 * DRYI_ASSERT costs O(1). DRYI_ASSERT_SLOW may walk a structure and is for tests and fuzzers.
 * Both catch bugs of this library only: a fault of the input or the system is returned as a
 * dry_status. A failed assertion prints the broken invariant and aborts. Nothing else in the
 * library prints or aborts.
 */

_Noreturn void dryi_assert_failed(const char *file, int line, const char *invariant);

#define DRYI_CHECK_(condition)                                                           \
    ((condition) ? (void)0 : dryi_assert_failed(__FILE__, __LINE__, #condition))

#if DRYI_ASSERT_LEVEL >= 1
#define DRYI_ASSERT(condition) DRYI_CHECK_(condition)
#else
#define DRYI_ASSERT(condition) ((void)sizeof((condition) ? 1 : 0))
#endif

#if DRYI_ASSERT_LEVEL >= 2
#define DRYI_ASSERT_SLOW(condition) DRYI_CHECK_(condition)
#else
#define DRYI_ASSERT_SLOW(condition) ((void)sizeof((condition) ? 1 : 0))
#endif

#endif
