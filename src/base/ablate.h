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

#ifndef DRYI_ABLATE_held_back /* the host waits while too many bytes wait for a stream */
#define DRYI_ABLATE_held_back 0
#endif
/* search for the placement with the fewest new pages on a nearly full device */
#ifndef DRYI_ABLATE_tight
#define DRYI_ABLATE_tight 0
#endif
#ifndef DRYI_ABLATE_gather /* gather the free blocks of all streams from time to time */
#define DRYI_ABLATE_gather 0
#endif
/* merge a free block with a neighbour of another stream */
#ifndef DRYI_ABLATE_foreign_merge
#define DRYI_ABLATE_foreign_merge 0
#endif
#ifndef DRYI_ABLATE_rent /* buy pages that moved between streams too often */
#define DRYI_ABLATE_rent 0
#endif
/* keep a freed block whole for the next request of its size */
#ifndef DRYI_ABLATE_parking
#define DRYI_ABLATE_parking 0
#endif
#ifndef DRYI_ABLATE_address_index /* index large blocks by address */
#define DRYI_ABLATE_address_index 0
#endif
#ifndef DRYI_ABLATE_caches /* keep small blocks whole, in a cache for each size */
#define DRYI_ABLATE_caches 0
#endif

#endif
