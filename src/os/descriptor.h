/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_DESCRIPTOR_H
#define DRYI_OS_DESCRIPTOR_H

/* Close a file descriptor, whoever made it. */
void dryi_descriptor_close(int descriptor);

#endif
