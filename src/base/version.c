/* SPDX-License-Identifier: Apache-2.0 */

#include <drystone/drystone.h>

const char *
dry_version(void)
{
    return DRY_VERSION;
}
