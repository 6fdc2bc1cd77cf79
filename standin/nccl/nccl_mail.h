/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_NCCL_MAIL_H
#define STANDIN_NCCL_MAIL_H

/*
 * Messages between ranks of one run, each a process of this machine.
 *
 * Ranks meet in the folder of the launcher. A message is a file there, which its receiver removes;
 * it is written under another name first, so that nobody reads half of it. A rank that lives
 * holds a lock on a file of its own, which ends with its process.
 *
 *     box       one rank's side of a communicator
 *     message   up to NCCL_MAIL_BYTES_MAX bytes from one rank to another, in order
 *
 * More bytes are weights or gradients, which nobody looks at; sizes, flags and objects are less.
 * A receiver waits on the host, not on its stream. Senders never wait.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_MAIL_BYTES_MAX (UINT64_C(64) << 10)

struct nccl_box;

/* Open the box of a rank of communicator `id`; NULL: there is nowhere to meet. */
struct nccl_box *nccl_box_open(uint64_t id, int rank, int size);
void nccl_box_close(struct nccl_box *box);

/* Give bytes to another rank. A box that is NULL, or too many bytes: nothing happens. */
void nccl_box_send(struct nccl_box *box, int to, uint64_t from_address, uint64_t bytes);
/* Wait for what another rank gives. False: it will not, and nothing was changed. */
bool nccl_box_receive(struct nccl_box *box, int from, uint64_t to_address,
                      uint64_t bytes);

#endif
