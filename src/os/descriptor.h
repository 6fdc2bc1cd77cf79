/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_DESCRIPTOR_H
#define DRYI_OS_DESCRIPTOR_H

/* Close a file descriptor, including one that a driver created. Errors are ignored. */
void dryi_descriptor_close(int descriptor);

#endif
