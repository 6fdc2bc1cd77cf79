/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ABLATE_H
#define DRYI_ABLATE_H

/*
 * Switches that take one mechanism out of a build, to see what gets worse without the mechanism:
 *
 *     meson setup build-without -Dablate=tight        and bench/ablate.py for all of them
 *
 *     if (DRYI_ABLATED(tight))
 *         return false;
 *
 * Each mechanism named here has a row in doc/benchmarks.md. A mechanism without a row that gets
 * worse has no place in the sources. In a build without the option each switch is the constant 0.
 */

#define DRYI_ABLATED(name) (DRYI_ABLATE_##name)

#ifndef DRYI_ABLATE_held_back /* the host waits while too much is pending */
#define DRYI_ABLATE_held_back 0
#endif
#ifndef DRYI_ABLATE_tight /* a nearly full device is searched for the fewest pages */
#define DRYI_ABLATE_tight 0
#endif
#ifndef DRYI_ABLATE_gather /* now and then all that streams hold is gathered */
#define DRYI_ABLATE_gather 0
#endif
#ifndef DRYI_ABLATE_foreign_merge /* a free block takes in a neighbour of another stream */
#define DRYI_ABLATE_foreign_merge 0
#endif
#ifndef DRYI_ABLATE_rent /* pages that move again and again are bought */
#define DRYI_ABLATE_rent 0
#endif
#ifndef DRYI_ABLATE_parking /* a freed block stays whole for its successor */
#define DRYI_ABLATE_parking 0
#endif
#ifndef DRYI_ABLATE_address_index /* large blocks are found by their address */
#define DRYI_ABLATE_address_index 0
#endif
#ifndef DRYI_ABLATE_caches /* small blocks are kept whole, by size */
#define DRYI_ABLATE_caches 0
#endif

#endif
