/* SPDX-License-Identifier: Apache-2.0 */

/* Access to mapped memory: one driver call grants it to the device and all its peers.
   Source: cuMemSetAccess, cuDeviceCanAccessPeer in NVIDIA's CUDA Driver API reference. */

#include "device/cuda/cuda_peer.h"

#define PEERS_MAX 64

static struct dryi_cuda_access
get_access(int device)
{
    return (struct dryi_cuda_access){
        .location = {.type = DRYI_CUDA_MEM_ON_DEVICE, .id = device},
        .flags = DRYI_CUDA_MEM_READ_WRITE};
}

int
dryi_cuda_set_access(struct dry_cuda *cuda, uint64_t address, uint64_t bytes)
{
    struct dryi_cuda_access access[1 + PEERS_MAX] = {get_access(cuda->context.device)};
    uint64_t peers = atomic_load_explicit(&cuda->peers, memory_order_relaxed);
    size_t count = 1;
    for (; peers != 0; peers &= peers - 1)
        access[count++] = get_access(__builtin_ctzll(peers));
    return note(cuda, cuda->context.driver.mem_set_access(address, bytes, access, count));
}

/* Check that `peer` is another device of the driver, which can access this device's
   memory. */
static enum dry_status
check_peer(const struct dry_cuda *cuda, int32_t peer)
{
    const struct dryi_cuda_driver *d = &cuda->context.driver;
    int device, can = 1;
    if (peer < 0 || peer >= PEERS_MAX ||
        d->device_get(&device, peer) != DRYI_CUDA_SUCCESS ||
        device == cuda->context.device)
        return DRY_ERR_ARGUMENT;
    if (d->device_can_access_peer &&
        d->device_can_access_peer(&can, device, cuda->context.device) !=
            DRYI_CUDA_SUCCESS)
        can = 0;
    return can ? DRY_OK : DRY_ERR_SYSTEM;
}

enum dry_status
dryi_cuda_add_peer(void *self, int32_t peer)
{
    struct dry_cuda *cuda = self;
    enum dry_status status = is_gone(cuda) ? DRY_ERR_SYSTEM : check_peer(cuda, peer);
    if (status == DRY_OK)
        atomic_fetch_or_explicit(&cuda->peers, UINT64_C(1) << peer, memory_order_relaxed);
    return status;
}

enum dry_status
dryi_cuda_let_peer(void *self, uint64_t address, uint64_t size, int32_t peer)
{
    struct dry_cuda *cuda = self;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(stay.result);
    enum dry_status status = check_peer(cuda, peer);
    if (status == DRY_OK) {
        const struct dryi_cuda_access access = get_access(peer);
        status = dryi_cuda_status(
            note(cuda, cuda->context.driver.mem_set_access(address, size, &access, 1)));
    }
    leave(cuda, &stay);
    return status;
}
