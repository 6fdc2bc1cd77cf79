/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_CARD_H
#define DRY_CARD_H

/*
 * Cards by name, NVIDIA's and two of AMD's: the memory of each, and the values its driver reports.
 *
 *     const struct dry_card *card = dry_card_find("h100-80");
 *     if (card)
 *         printf("%s: %llu bytes\n", card->title, (unsigned long long)card->usable_bytes);
 *
 *     nominal_gb       |<------------------- as advertised -------------------->|
 *     usable_bytes     |<------ what the driver reports as the total ------>|
 *     context_bytes    |<- a CUDA context ->|<- tensors, and what is free ->|
 *
 * A driver reserves some memory, and newer drivers reserve more: the totals of one card
 * vary by about 1 %. Each total here was reported by some Linux driver for a whole card
 * (no MIG). Windows is left out, for it reports all of the memory. Cards are sorted by
 * usable_bytes, so the cards with at least a given size are at the end. Where host and
 * device share their memory (Jetson, GB10), the total is both's.
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

/* A card's constants; the table is part of the library. */
struct dry_card {
    const char *name;      /* "h100-80": this library's name, which never changes */
    const char *title;     /* "NVIDIA H100 80GB HBM3": the driver's name */
    uint64_t nominal_gb;   /* the size in its product name */
    uint64_t usable_bytes; /* about the total that its driver reports */
    int sm_count;          /* enabled multiprocessors */
    uint64_t l2_bytes;     /* the size that the driver reports */

    /* The other fields follow from the capability, which is major.minor: 9.0. */
    int capability_major, capability_minor;
    int threads_per_sm;           /* resident threads per multiprocessor, at most */
    uint64_t shared_per_sm_bytes; /* shared memory of a multiprocessor */
    /* The most shared memory per block, for kernels that opt in to more than 48 KiB. */
    uint64_t shared_per_block_max_bytes;
    /*
     * An assumption: bytes that CUDA uses beyond the tensors of a PyTorch training
     * program, for the context and its kernels, rounded. Drivers, CUDA releases and
     * loaded kernels change this by 100 MiB and more. Capability 9.0 was measured with
     * driver 580 and CUDA 13.0: 619 MiB before the first kernel, and 767 MiB for GPT-2,
     * ResNet-50 and a LoRA. The other values are estimates from experience.
     */
    uint64_t context_bytes;
    /*
     * The driver returns descending addresses. In most recordings from Linux it does,
     * on every card; in those from Windows and WSL it does not. This is the value for
     * Linux.
     */
    bool descends;
    /* What a replay on this card does not know, in words; NULL: nothing beside the above. */
    const char *caveat;
};

/* Return the card of this name; NULL: no card has it. */
DRY_API const struct dry_card *dry_card_find(const char *name);
/* Return the card `index`, from 0, the smallest first; NULL beyond the last. */
DRY_API const struct dry_card *dry_card_get(size_t index);

#ifdef __cplusplus
}
#endif

#endif
