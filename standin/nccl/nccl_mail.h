/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_NCCL_MAIL_H
#define STANDIN_NCCL_MAIL_H

/*
 * Messages between ranks of one run, each a process on this machine.
 *
 * Ranks meet in the folder of the launcher. A message is a file there, which its receiver removes.
 * It is renamed when complete, so that no receiver reads a part of it. A live rank locks a file of
 * its own; the lock ends with its process.
 *
 *     box       one rank's side of a communicator
 *     message   up to NCCL_MAIL_BYTES_MAX bytes from one rank to another, in order
 *
 * Larger data is weights or gradients, whose values programs do not inspect. Sizes, flags and
 * objects are smaller. A receiver waits on the host, not on its stream. Senders never wait.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_MAIL_BYTES_MAX (UINT64_C(64) << 10)

struct nccl_box;

/* Open the box of a rank of communicator `id`; NULL: there is no folder, or memory ran out. */
struct nccl_box *nccl_box_open(uint64_t id, int rank, int size);
void nccl_box_close(struct nccl_box *box);

/* Send bytes to another rank. A NULL box or too many bytes are ignored. */
void nccl_box_send(struct nccl_box *box, int to, uint64_t from_address, uint64_t bytes);
/* Wait for another rank's message. Returns false if none comes; then nothing was changed. */
bool nccl_box_receive(struct nccl_box *box, int from, uint64_t to_address,
                      uint64_t bytes);

#endif
