/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's devices: their number and properties, peers, errors, versions.
 *
 * All that a program learns of the card comes from the setup. The struct of properties
 * changed its layout once: CUDA 13 dropped the clock rates.
 */
#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "setup.h"
#include "stream.h"

static enum cuda_error
check_device(int device)
{
    return device < 0 || device >= standin_setup()->device_count ? CUDA_INVALID_DEVICE
                                                                 : CUDA_OK;
}

EXPORT enum cuda_error
cudaGetDeviceCount(int *count)
{
    *count = standin_setup()->device_count;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaGetDevice(int *device)
{
    *device = standin_device();
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaSetDevice(int device)
{
    return standin_note(standin_set_device(device));
}

EXPORT enum cuda_error
cudaDriverGetVersion(int *version)
{
    *version = standin_setup()->cuda_version;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaRuntimeGetVersion(int *version)
{
    *version = standin_setup()->cuda_version;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (check_device(device) != CUDA_OK || check_device(peer) != CUDA_OK)
        return standin_note(CUDA_INVALID_DEVICE);
    *can = device != peer;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    static bool is_enabled[STANDIN_DEVICES_MAX][STANDIN_DEVICES_MAX];
    (void)flags;
    if (check_device(peer) != CUDA_OK || peer == standin_device())
        return standin_note(CUDA_INVALID_DEVICE);
    standin_lock();
    bool before = is_enabled[standin_device()][peer];
    is_enabled[standin_device()][peer] = true;
    standin_unlock();
    return standin_note(before ? CUDA_PEER_ALREADY : CUDA_OK);
}

/* --- errors --------------------------------------------------------------------------------- */

EXPORT enum cuda_error
cudaGetLastError(void)
{
    return standin_last(true);
}

EXPORT enum cuda_error
cudaPeekAtLastError(void)
{
    return standin_last(false);
}

EXPORT const char *
cudaGetErrorString(int error)
{
    return standin_error_text(error);
}

EXPORT const char *
cudaGetErrorName(int error)
{
    return standin_error_name(error);
}

/* --- properties and attributes -------------------------------------------------------------- */

/*
 * The first members are the same in all releases. For later members that programs read,
 * offsets follow.
 */
struct properties_head {
    char name[256];
    unsigned char uuid[16];
    char luid[8];
    unsigned luid_mask;
    size_t total_bytes, shared_per_block;
    int regs_per_block, warp_size;
    size_t pitch;
    int threads_per_block, threads_dim[3], grid_size[3];
};

struct properties_places {
    size_t bytes, constant, major, processors, can_map, concurrent, bus, engines, unified,
        bus_width, l2, threads_per_sm, priorities, shared_per_sm, regs_per_sm, managed,
        cooperative, shared_optin, blocks_per_sm, registers_host, pools;
};

/* Offsets in bytes, from the documented order of the members. */
static const struct properties_places places_12 = {
    .bytes = 1032,
    .constant = 352,
    .major = 360,
    .processors = 388,
    .can_map = 400,
    .concurrent = 576,
    .bus = 584,
    .engines = 600,
    .unified = 604,
    .bus_width = 612,
    .l2 = 616,
    .threads_per_sm = 624,
    .priorities = 628,
    .shared_per_sm = 640,
    .regs_per_sm = 648,
    .managed = 652,
    .cooperative = 688,
    .shared_optin = 696,
    .blocks_per_sm = 712,
    .registers_host = 728,
    .pools = 744,
};
static const struct properties_places places_13 = {
    .bytes = 1008,
    .constant = 352,
    .major = 360,
    .processors = 384,
    .can_map = 392,
    .concurrent = 560,
    .bus = 568,
    .engines = 584,
    .unified = 588,
    .bus_width = 592,
    .l2 = 596,
    .threads_per_sm = 604,
    .priorities = 608,
    .shared_per_sm = 624,
    .regs_per_sm = 632,
    .managed = 636,
    .cooperative = 668,
    .shared_optin = 672,
    .blocks_per_sm = 688,
    .registers_host = 704,
    .pools = 720,
};

static void
put_int(void *properties, size_t place, int value)
{
    memcpy((char *)properties + place, &value, sizeof value);
}

static void
put_size(void *properties, size_t place, size_t value)
{
    memcpy((char *)properties + place, &value, sizeof value);
}

static void
fill(void *properties, int device, const struct properties_places *at)
{
    const struct standin_setup *setup = standin_setup();
    struct properties_head head = {
        .uuid = {'d', 'r', 'y', 's', 't', 'o', 'n', 'e', [15] = (unsigned char)device},
        .total_bytes = setup->total_bytes,
        .shared_per_block = setup->shared_per_block,
        .regs_per_block = 65536,
        .warp_size = 32,
        .pitch = 2147483647,
        .threads_per_block = 1024,
        .threads_dim = {1024, 1024, 64},
        .grid_size = {2147483647, 65535, 65535},
    };
    memset(properties, 0, at->bytes);
    snprintf(head.name, sizeof head.name, "%s", setup->name);
    memcpy(properties, &head, sizeof head);
    put_size(properties, at->constant, 65536);
    put_int(properties, at->major, setup->major);
    put_int(properties, at->major + sizeof(int), setup->minor);
    put_int(properties, at->processors, setup->sm_count);
    put_int(properties, at->can_map, 1);
    put_int(properties, at->concurrent, 1);
    put_int(properties, at->bus, device + 1);
    put_int(properties, at->engines, 3);
    put_int(properties, at->unified, 1);
    put_int(properties, at->bus_width, 5120);
    put_int(properties, at->l2, (int)setup->l2_bytes);
    put_int(properties, at->threads_per_sm, setup->threads_per_sm);
    put_int(properties, at->priorities, 1);
    put_size(properties, at->shared_per_sm, setup->shared_per_sm);
    put_int(properties, at->regs_per_sm, 65536);
    put_int(properties, at->managed, 1);
    put_int(properties, at->cooperative, 1);
    put_size(properties, at->shared_optin, setup->shared_per_block_max);
    put_int(properties, at->blocks_per_sm, 32);
    put_int(properties, at->registers_host, 1);
    put_int(properties, at->pools, 1);
}

EXPORT enum cuda_error
cudaGetDeviceProperties(void *properties, int device)
{
    if (check_device(device) != CUDA_OK)
        return standin_note(CUDA_INVALID_DEVICE);
    fill(properties, device,
         standin_setup()->cuda_version >= 13000 ? &places_13 : &places_12);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaGetDeviceProperties_v2(void *properties, int device)
{
    return cudaGetDeviceProperties(properties, device);
}

/*
 * Attributes by their documented numbers, which the driver shares. These are the same on
 * all cards.
 */
static const struct attribute {
    int number, value;
} common[] = {
    {1, 1024},   {2, 1024},   {3, 1024}, {4, 64},         {5, INT32_MAX}, {6, 65535},
    {7, 65535},  {9, 65536},  {10, 32},  {11, INT32_MAX}, {12, 65536},    {13, 1410000},
    {14, 512},   {15, 1},     {19, 1},   {31, 1},         {32, 1},        {36, 1215000},
    {37, 5120},  {40, 3},     {41, 1},   {78, 1},         {79, 1},        {80, 1},
    {82, 65536}, {83, 1},     {95, 1},   {99, 1},         {102, 1},       {103, 1},
    {106, 32},   {111, 1024}, {115, 1},  {124, 1},
};

static int
find_attribute(const struct attribute *table, size_t count, int number)
{
    for (size_t i = 0; i < count; i++) {
        if (table[i].number == number)
            return table[i].value;
    }
    return 0; /* unlisted attributes are 0: the card lacks the feature */
}

enum cuda_error
standin_attribute(int *value, int attribute, int device)
{
    const struct standin_setup *s = standin_setup();
    const struct attribute own[] = {
        {8, (int)s->shared_per_block},
        {16, s->sm_count},
        {33, device + 1},
        {38, (int)s->l2_bytes},
        {39, s->threads_per_sm},
        {75, s->major},
        {76, s->minor},
        {81, (int)s->shared_per_sm},
        {97, (int)s->shared_per_block_max},
        {120, s->major >= 9},
    };
    if (check_device(device) != CUDA_OK)
        return CUDA_INVALID_DEVICE;
    *value = find_attribute(own, sizeof own / sizeof *own, attribute);
    if (*value == 0)
        *value = find_attribute(common, sizeof common / sizeof *common, attribute);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    return standin_note(standin_attribute(value, attribute, device));
}

EXPORT enum cuda_error
cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    if (check_device(device) != CUDA_OK)
        return standin_note(CUDA_INVALID_DEVICE);
    snprintf(text, (size_t)length, "0000:%02X:00.0", device + 1);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    unsigned domain, bus;
    if (sscanf(text, "%x:%x", &domain, &bus) != 2 ||
        check_device((int)bus - 1) != CUDA_OK)
        return standin_note(CUDA_INVALID_VALUE);
    *device = (int)bus - 1;
    return CUDA_OK;
}
