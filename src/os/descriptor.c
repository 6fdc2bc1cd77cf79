/* SPDX-License-Identifier: Apache-2.0 */

/* A descriptor that a driver made is closed by the system all the same. */

#include "os/descriptor.h"

#include <unistd.h>

void
dryi_descriptor_close(int descriptor)
{
    (void)close(descriptor);
}
