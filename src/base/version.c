/* SPDX-License-Identifier: Apache-2.0 */

/* The release of the library: see <drystone/drystone.h>. */

#include <drystone/drystone.h>

const char *
dry_version(void)
{
    return DRY_VERSION;
}
