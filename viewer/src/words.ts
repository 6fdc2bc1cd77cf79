// SPDX-License-Identifier: Apache-2.0
/* The words for causes and changes, as `drystone explain` prints them. */

import { bytes } from "./format.ts";

const CAUSES: Record<string, string> = {
  "none": "nothing is wrong",
  "capacity": "capacity: it does not fit, however it is laid out",
  "fragmentation": "fragmentation: the bytes are free, but in pieces",
  "stranded": "stranded memory: the bytes are free where this request may not go",
  "pending": "pending frees: the bytes waited for other streams",
  "limit": "a limit: the device had room, but PyTorch was not allowed it",
  "other-memory": "other memory: the device is full of what PyTorch did not allocate",
  "leak": "a leak: every step leaves memory behind",
  "spike": "a spike: this step asks for far more than any before it",
  "imbalance": "imbalance: this device holds far more than the others",
  "overflow": "an overflow: the record has lost who holds the memory",
  "near-limit": "near the limit: it ran, but only because requests were tried again",
  "unknown": "unknown: the record does not carry a verdict",
};

const CHANGES: Record<string, (size: string) => string> = {
  "owners": (n) => `The lines below and the request must shrink by at least ${n} together, for this request: a smaller batch or sequence, lower precision, sharding.`,
  "checkpoint": (n) => `Recompute activations (torch.utils.checkpoint): ${n} of them are alive here.`,
  "leak": (n) => `Let go of what earlier steps left behind: ${n} here. The steps name the lines.`,
  "balance": (n) => `Split the work evenly: about ${n} for each device.`,
  "limit": (n) => `Raise the memory fraction: the device has ${n} more.`,
  "other": (n) => `Free ${n} of what is not PyTorch's: other processes, NCCL, CUDA contexts, libraries that allocate by themselves.`,
  "streams": (n) => `Free ${n} earlier: wait for the other stream before the tensors go, or use them on one stream. record_stream keeps them until it is done.`,
  "pool": (n) => `${n} lie free where this request may not go: allocate on the same stream, share one graph pool, or empty the other before.`,
  "record": (n) => `${n} are of unknown lines: record again from the program's start, with a larger max_entries.`,
};

/** `short`: the bytes that were missing at an OOM, whatever the layout; undefined: not known. */
export function causeWords(cause: string, short?: number): string {
  if (cause === "capacity" && short === 0)
    return "capacity: little more would fit, however it is laid out";
  return CAUSES[cause] ?? cause;
}

export function changeWords(kind: string, size: number): string {
  if (kind === "no-setting")
    return size > 0 ? `No allocator setting can help: packed without a gap, ${bytes(size)} would still be missing.`
      : "No allocator setting helps; the replays are under What-if.";
  if (kind === "owners" && size === 0)
    return "The lines below must shrink, by how much was not recorded: a smaller batch or sequence, lower precision, sharding.";
  return CHANGES[kind]?.(bytes(size)) ?? `${kind}: ${bytes(size)}`;
}
