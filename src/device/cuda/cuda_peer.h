/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_CUDA_PEER_H
#define DRYI_CUDA_PEER_H

/* Peers: other devices with access to this device's mapped memory. */

#include "device/cuda/cuda_state.h"

/* Grant the device and its peers access to mapped memory. Returns the driver's result.
   Requires a stay (cuda_context.h). */
int dryi_cuda_set_access(struct dry_cuda *cuda, uint64_t address, uint64_t bytes);
/* add_peer and let_peer of <drystone/device.h>. */
enum dry_status dryi_cuda_add_peer(void *self, int32_t peer);
enum dry_status dryi_cuda_let_peer(void *self, uint64_t address, uint64_t size,
                                   int32_t peer);

#endif
