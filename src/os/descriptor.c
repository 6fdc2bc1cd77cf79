/* SPDX-License-Identifier: Apache-2.0 */

#include "os/descriptor.h"

#include <unistd.h>

void
dryi_descriptor_close(int descriptor)
{
    (void)close(descriptor);
}
