/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table, searched linearly; see card.h.
 *
 * The comment above a row is the driver's total as a program printed it. Totals in GiB
 * are from PyTorch's out-of-memory message ("has a total capacity of 15.61 GiB"), rounded
 * down to MiB here. Totals in MiB are from torch.cuda.get_device_properties(), llama.cpp,
 * deviceQuery or a tool of TensorRT, those in bytes from rocm-smi or sysinfo. Some rows are more
 * precise than their GiB: they are older than these comments, and PyTorch would print the GiB for
 * them. The context of AMD's cards is assumed.
 */
#include <drystone/card.h>

#include <string.h>

#define KIB(count) ((uint64_t)(count) << 10)
#define MIB(count) ((uint64_t)(count) << 20)

#define SHARED "the memory is shared with the host"
#define OTHER_REQUESTS "requests under ROCm may differ"

/* Capabilities: major, minor, threads and shared memory per SM, shared memory per block,
   context (assumed), falling addresses, caveat. */
#define SM_70 7, 0, 2048, KIB(96), KIB(96), MIB(250), true, NULL
#define SM_75 7, 5, 1024, KIB(64), KIB(64), MIB(250), true, NULL
#define SM_80 8, 0, 2048, KIB(164), KIB(163), MIB(400), true, NULL
#define SM_86 8, 6, 1536, KIB(100), KIB(99), MIB(400), true, NULL
#define SM_87 8, 7, 1536, KIB(164), KIB(163), MIB(400), true, SHARED
#define SM_89 8, 9, 1536, KIB(100), KIB(99), MIB(400), true, NULL
#define SM_90 9, 0, 2048, KIB(228), KIB(227), MIB(767), true, NULL
#define SM_100 10, 0, 2048, KIB(228), KIB(227), MIB(600), true, NULL
#define SM_103 10, 3, 2048, KIB(228), KIB(227), MIB(600), true, NULL
#define SM_120 12, 0, 1536, KIB(100), KIB(99), MIB(600), true, NULL
#define SM_121 12, 1, 1536, KIB(100), KIB(99), MIB(600), true, SHARED
/* AMD's architectures, as PyTorch numbers them; a compute unit counts as a multiprocessor */
#define GFX_942 9, 4, 2048, KIB(64), KIB(64), MIB(600), true, OTHER_REQUESTS
#define GFX_950 9, 5, 2048, KIB(160), KIB(160), MIB(600), true, OTHER_REQUESTS

static const struct dry_card cards[] = {
    /* driver total: 3.81 GiB (ultralytics/yolov5 #285) */
    {"gtx1650-4", "NVIDIA GeForce GTX 1650", 4, MIB(3901), 14, MIB(1), SM_75},
    /* driver total: 3.81 GiB (NVlabs/RVT #7) */
    {"rtx3050laptop-4", "NVIDIA GeForce RTX 3050 Laptop GPU", 4, MIB(3901), 16, MIB(2),
     SM_86},
    /* driver total: 5.80 GiB (JiehongLin/SAM-6D #13) */
    {"rtx3060laptop-6", "NVIDIA GeForce RTX 3060 Laptop GPU", 6, MIB(5939), 30, MIB(3),
     SM_86},
    /* driver total: 5.81 GiB (zhou13/lcnn #23) */
    {"gtx1660ti-6", "NVIDIA GeForce GTX 1660 Ti", 6, MIB(5949), 24, KIB(1536), SM_75},
    /* driver total: 7815 MiB */
    {"rtx4060laptop-8", "NVIDIA GeForce RTX 4060 Laptop GPU", 8, MIB(7815), 24, MIB(32),
     SM_89},
    /* driver total: 7817 MiB */
    {"rtx3070-8", "NVIDIA GeForce RTX 3070", 8, MIB(7817), 46, MIB(4), SM_86},
    /* driver total: 9.65 GiB */
    {"rtx3080-10", "NVIDIA GeForce RTX 3080", 10, MIB(9881), 68, MIB(5), SM_86},
    /* driver total: 10.57 GiB */
    {"rtx2080ti-11", "NVIDIA GeForce RTX 2080 Ti", 11, MIB(10823), 68, KIB(5632), SM_75},
    /* driver total: 11866 MiB */
    {"rtx4070-12", "NVIDIA GeForce RTX 4070", 12, MIB(11866), 46, MIB(36), SM_89},
    /* driver total: 11906 MiB */
    {"rtx3060-12", "NVIDIA GeForce RTX 3060", 12, MIB(11906), 28, KIB(2304), SM_86},
    /* driver total: 14.56 GiB */
    {"t4-16", "Tesla T4", 16, MIB(14912), 40, MIB(4), SM_75},
    /* driver total: 15842 MiB */
    {"rtx5070ti-16", "NVIDIA GeForce RTX 5070 Ti", 16, MIB(15842), 70, MIB(48), SM_120},
    /* driver total: 15880 MiB */
    {"rtx5080-16", "NVIDIA GeForce RTX 5080", 16, MIB(15880), 84, MIB(64), SM_120},
    /* driver total: 15934 MiB */
    {"rtx4070tis-16", "NVIDIA GeForce RTX 4070 Ti SUPER", 16, MIB(15934), 66, MIB(48),
     SM_89},
    /* driver total: 15944 MiB */
    {"rtx4060ti-16", "NVIDIA GeForce RTX 4060 Ti", 16, MIB(15944), 34, MIB(32), SM_89},
    /* driver total: 15.61 GiB */
    {"a4000-16", "NVIDIA RTX A4000", 16, MIB(15984), 48, MIB(4), SM_86},
    /* driver total: 16049 MiB */
    {"rtx4080-16", "NVIDIA GeForce RTX 4080", 16, MIB(16049), 76, MIB(64), SM_89},
    /* driver total: 15.77 GiB */
    {"v100-16", "Tesla V100-SXM2-16GB", 16, MIB(16144), 80, MIB(6), SM_70},
    /* driver total: 21.95 GiB */
    {"l4-24", "NVIDIA L4", 24, MIB(22478), 58, MIB(48), SM_89},
    /* driver total: 21.97 GiB */
    {"a10-24", "NVIDIA A10", 24, MIB(22502), 72, MIB(6), SM_86},
    /* driver total: 22587 MiB */
    {"a10g-24", "NVIDIA A10G", 24, MIB(22587), 80, MIB(6), SM_86},
    /* driver total: 23.50 GiB */
    {"a30-24", "NVIDIA A30", 24, MIB(24064), 56, MIB(24), SM_80},
    /* driver total: 23.52 GiB */
    {"rtx4090-24", "NVIDIA GeForce RTX 4090", 24, MIB(24080), 128, MIB(72), SM_89},
    /* driver total: 24114 MiB */
    {"rtx3090ti-24", "NVIDIA GeForce RTX 3090 Ti", 24, MIB(24114), 84, MIB(6), SM_86},
    /* driver total: 24114 MiB */
    {"a5000-24", "NVIDIA RTX A5000", 24, MIB(24114), 64, MIB(6), SM_86},
    /* driver total: 23.55 GiB */
    {"rtx3090-24", "NVIDIA GeForce RTX 3090", 24, MIB(24117), 82, MIB(6), SM_86},
    /* driver total: 31.35 GiB */
    {"rtx5090-32", "NVIDIA GeForce RTX 5090", 32, MIB(32102), 170, MIB(96), SM_120},
    /* driver total: 31.73 GiB */
    {"v100-32", "Tesla V100-SXM2-32GB", 32, MIB(32494), 80, MIB(6), SM_70},
    /* driver total: 39.38 GiB */
    {"a100-40", "NVIDIA A100-SXM4-40GB", 40, MIB(40326), 108, MIB(40), SM_80},
    /* driver total: 45416 MiB */
    {"a40-48", "NVIDIA A40", 48, MIB(45416), 84, MIB(6), SM_86},
    /* driver total: 44.39 GiB */
    {"l40s-48", "NVIDIA L40S", 48, MIB(45457), 142, MIB(96), SM_89},
    /* driver total: 44.40 GiB */
    {"l40-48", "NVIDIA L40", 48, MIB(45465), 142, MIB(96), SM_89},
    /* driver total: 47.40 GiB */
    {"a6000-48", "NVIDIA RTX A6000", 48, MIB(48541), 84, MIB(6), SM_86},
    /* driver total: 48622 MiB */
    {"rtx6000ada-48", "NVIDIA RTX 6000 Ada Generation", 48, MIB(48622), 142, MIB(96),
     SM_89},
    /* total of tegrastats: 62841 MiB, shared with the host */
    {"agxorin-64", "Orin", 64, MIB(62841), 16, MIB(4), SM_87},
    /* driver total: 79.09 GiB; others print 79.18 and 79.19 */
    {"h100-80", "NVIDIA H100 80GB HBM3", 80, MIB(80988), 132, MIB(50), SM_90},
    /* driver total: 81008 MiB */
    {"h100pcie-80", "NVIDIA H100 PCIe", 80, MIB(81008), 114, MIB(50), SM_90},
    /* driver total: 79.14 GiB */
    {"a100-80", "NVIDIA A100-SXM4-80GB", 80, MIB(81038), 108, MIB(40), SM_80},
    /* driver total: 93.09 GiB */
    {"h100nvl-94", "NVIDIA H100 NVL", 94, MIB(95324), 132, MIB(60), SM_90},
    /* driver total: 94.50 GiB */
    {"gh200-96", "NVIDIA GH200 480GB", 96, MIB(96768), 132, MIB(60), SM_90},
    /* driver total: 94.97 GiB */
    {"rtxpro6000-96", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 96, MIB(97249),
     188, MIB(128), SM_120},
    /* total of sysinfo: 128501256192 bytes, shared with the host (leptonai/gpud #1170) */
    {"gb10-128", "NVIDIA GB10", 128, MIB(122548), 48, MIB(24), SM_121},
    /* driver total: 139.80 GiB */
    {"h200-141", "NVIDIA H200", 141, MIB(143156), 132, MIB(60), SM_90},
    /* driver total: 178.35 GiB */
    {"b200-180", "NVIDIA B200", 180, MIB(182630), 148, KIB(129536), SM_100},
    /* driver total: 206141652992 bytes, 191.98 GiB */
    {"mi300x-192", "AMD Instinct MI300X", 192, MIB(196592), 304, MIB(4), GFX_942},
    /* driver total: 274113 MiB */
    {"b300-288", "NVIDIA B300 SXM6 AC", 288, MIB(274113), 148, KIB(129536), SM_103},
    /* driver total: 287.98 GiB */
    {"mi355x-288", "AMD Instinct MI355X", 288, MIB(294891), 256, MIB(4), GFX_950},
};
#define CARD_COUNT (sizeof cards / sizeof *cards)

const struct dry_card *
dry_card_find(const char *name)
{
    for (size_t i = 0; i < CARD_COUNT; i++) {
        if (strcmp(cards[i].name, name) == 0)
            return &cards[i];
    }
    return NULL;
}

const struct dry_card *
dry_card_get(size_t index)
{
    return index < CARD_COUNT ? &cards[index] : NULL;
}
