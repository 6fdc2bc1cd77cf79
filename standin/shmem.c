/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVSHMEM: this process's part of a symmetric heap, and teams that know their number of members.
 *
 * Each allocation is a range of the device. NVSHMEM itself grows its heap in steps (its documented
 * variable NVSHMEM_CUMEM_GRANULARITY, 512 MiB): these are not modelled. Every peer's address is
 * this process's own, so that a kernel's writes to it would have a valid target.
 *
 * Not all of the library's entry points are documented. The ones that begin with nvshmemid_ are
 * implemented according to their names and their use in the public headers.
 */
#include <string.h>

#include "memory.h"
#include "stream.h"

#define TEAMS_MAX 64
#define STATUS_INITIALIZED 2

/* Members of the public structs, up to the last that is written. */
struct unique_id {
    int version;
    char bytes[124];
};

struct init_attributes {
    int version;
    void *communicator;
    int arguments_version;
    struct {
        int version;
        const struct unique_id *id;
        int rank, count;
    } unique;
};

static int team_sizes[TEAMS_MAX] = {1};
static int team_count = 1; /* team 0 is the world */

/* --- setting up ----------------------------------------------------------------------------- */

EXPORT int
nvshmemx_get_uniqueid(struct unique_id *id)
{
    memset(id->bytes, 0, sizeof id->bytes);
    return 0;
}

EXPORT int
nvshmemx_set_attr_uniqueid_args(int rank, int count, const struct unique_id *id,
                                struct init_attributes *attributes)
{
    attributes->unique.id = id;
    attributes->unique.rank = rank;
    attributes->unique.count = count;
    standin_lock();
    team_sizes[0] = count;
    standin_unlock();
    return 0;
}

EXPORT int
nvshmemid_hostlib_init_attr(int requested, int *provided)
{
    if (provided)
        *provided = requested;
    return 0;
}

EXPORT int
nvshmemid_init_status(void)
{
    return STATUS_INITIALIZED;
}

EXPORT void
nvshmemid_hostlib_finalize(void)
{
}

EXPORT int
nvshmemx_cumodule_init(void *module)
{
    (void)module;
    return 0;
}

/* OpenSHMEM's version, which NVSHMEM documents itself to follow. */
EXPORT void
nvshmem_info_get_version(int *major, int *minor)
{
    *major = 1;
    *minor = 3;
}

EXPORT int
nvshmem_selected_device_transport(void)
{
    return 0;
}

/* --- the heap ------------------------------------------------------------------------------- */

EXPORT void *
nvshmem_malloc(size_t bytes)
{
    uint64_t address = 0;
    standin_lock();
    enum cuda_error result =
        bytes ? standin_alloc(standin_device(), bytes, RANGE_DEVICE, &address)
              : CUDA_INVALID_VALUE;
    standin_unlock();
    return result == CUDA_OK ? (void *)(uintptr_t)address : NULL;
}

EXPORT void
nvshmem_free(void *address)
{
    standin_lock();
    if (address)
        standin_free((uintptr_t)address);
    standin_unlock();
}

EXPORT void *
nvshmem_ptr(const void *address, int peer)
{
    (void)peer;
    return (void *)(uintptr_t)address;
}

/* No multicast: callers fall back to the peers' addresses. */
EXPORT void *
nvshmemx_mc_ptr(int team, const void *address)
{
    (void)team, (void)address;
    return NULL;
}

/* --- teams ---------------------------------------------------------------------------------- */

EXPORT int
nvshmem_team_n_pes(int team)
{
    standin_lock();
    int size = team >= 0 && team < team_count ? team_sizes[team] : -1;
    standin_unlock();
    return size;
}

EXPORT int
nvshmem_team_split_strided(int parent, int start, int stride, int size,
                           const void *config, long mask, int *team)
{
    (void)parent, (void)start, (void)stride, (void)config, (void)mask;
    standin_lock();
    bool fits = team_count < TEAMS_MAX;
    *team = fits ? team_count : -1;
    if (fits)
        team_sizes[team_count++] = size;
    standin_unlock();
    return fits ? 0 : -1;
}

/* --- work ----------------------------------------------------------------------------------- */

EXPORT void
nvshmem_barrier_all(void)
{
    standin_wait(NULL, true);
}

EXPORT int
nvshmemx_alltoallmem_on_stream(int team, void *to, const void *from, size_t count,
                               void *stream)
{
    (void)team, (void)to, (void)from, (void)count;
    standin_work(stream);
    return 0;
}

EXPORT int
nvshmemx_broadcastmem_on_stream(int team, void *to, const void *from, size_t count,
                                int root, void *stream)
{
    (void)team, (void)to, (void)from, (void)count, (void)root;
    standin_work(stream);
    return 0;
}

#define TRANSFER(name)                                                                   \
    EXPORT void name(void *to, const void *from, size_t bytes, int peer, void *stream)   \
    {                                                                                    \
        (void)to, (void)from, (void)bytes, (void)peer;                                   \
        standin_work(stream);                                                            \
    }
TRANSFER(nvshmemx_putmem_on_stream)
TRANSFER(nvshmemx_getmem_on_stream)

EXPORT void
nvshmemx_putmem_signal_on_stream(void *to, const void *from, size_t bytes, uint64_t *flag,
                                 uint64_t value, int operation, int peer, void *stream)
{
    (void)to, (void)from, (void)bytes, (void)flag, (void)value, (void)operation,
        (void)peer;
    standin_work(stream);
}

EXPORT void
nvshmemx_signal_wait_until_on_stream(uint64_t *flag, int compare, uint64_t value,
                                     void *stream)
{
    (void)flag, (void)compare, (void)value;
    standin_work(stream);
}
