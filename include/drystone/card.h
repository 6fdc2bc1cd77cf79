/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_CARD_H
#define DRY_CARD_H

/*
 * NVIDIA's cards by name: how much memory each has, and what its driver says of it.
 *
 *     const struct dry_card *card = dry_card_find("h100-80");
 *     if (card)
 *         printf("%s: %llu bytes\n", card->title, (unsigned long long)card->usable_bytes);
 *
 *     nominal_gb       |<------------------- as it is sold -------------------->|
 *     usable_bytes     |<------ what the driver reports as the total ------>|
 *     context_bytes    |<- a CUDA context ->|<- tensors, and what is free ->|
 *
 * A driver keeps a part of the memory for itself, and newer ones keep more: totals of one
 * card differ by about 1 %. Each total here was printed by some driver, of an undivided
 * card (no MIG), and none by Windows, which reports all of the memory. Cards stand in the
 * order of usable_bytes: all that are large enough for something are the last ones.
 *
 * Threads    Any; the cards are constants.
 * Units      Bytes; nominal_gb is the number on the box, 10^9 or 2^30 bytes each.
 * Sources    Totals: what PyTorch and llama.cpp print, in public issues and repositories.
 *            Limits of a capability: CUDA C++ Programming Guide, "Technical
 *            Specifications per Compute Capability". SMs and caches: NVIDIA's data sheets
 *            and deviceQuery. Contexts: see context_bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A card that one can buy, or rent. */
struct dry_card {
    const char *name;      /* "h100-80": ours, and fixed for ever */
    const char *title;     /* "NVIDIA H100 80GB HBM3": the driver's */
    uint64_t nominal_gb;   /* as its name says when it is sold */
    uint64_t usable_bytes; /* about the total that its driver reports */
    int sm_count;          /* multiprocessors that are switched on */
    uint64_t l2_bytes;     /* as the driver reports it */

    /* The rest follows from the capability, which is major.minor: 9.0. */
    int capability_major, capability_minor;
    int threads_per_sm;           /* the most that one multiprocessor holds at a time */
    uint64_t shared_per_sm_bytes; /* shared memory of a multiprocessor */
    /* The most shared memory of a block whose kernel asks for more than 48 KiB. */
    uint64_t shared_per_block_max_bytes;
    /*
     * An assumption, and no fact of the card: bytes that CUDA holds beside the tensors of a
     * PyTorch program in training, for the context and its kernels, rounded. Drivers,
     * releases of CUDA and loaded kernels move this by a hundred MiB and more. Capability
     * 9.0 was measured, with driver 580 and CUDA 13.0: 619 MiB before the first kernel, and
     * 767 for GPT-2, ResNet-50 and a LoRA. The others are experience alone.
     */
    uint64_t context_bytes;
    /*
     * Does the driver hand out falling addresses? By most recordings from Linux it does,
     * on every card; by those from Windows and WSL it does not. This is Linux's answer.
     */
    bool descends;
};

/* Return the card of this name; NULL: no card has it. */
DRY_API const struct dry_card *dry_card_find(const char *name);
/* Return the card `index`, from 0, the smallest first; NULL beyond the last. */
DRY_API const struct dry_card *dry_card_get(size_t index);

#ifdef __cplusplus
}
#endif

#endif
