// SPDX-License-Identifier: Apache-2.0
/*
 * The search: words that must all hold. "model.py:39" and "forward" are looked for in the frames of a
 * stack, "activations" names a category too, ">64MiB" and "<1GiB" bound the block's bytes, "=512" is
 * the requested size, "0x7f" begins an address, and "stream:7" names a stream.
 */

import type { Lane } from "./about.ts";
import { parseBytes } from "./format.ts";
import type { Stacks } from "./stacks.ts";
import type { Allocs } from "./tile.ts";

export interface Search {
  matches(allocs: Allocs, row: number): boolean;
  /* Say whether a bare event matches. */
  matchesEvent(stack: number, size: number, addr: bigint, lane: number): boolean;
}

interface Term {
  stack?: (stack: number, category: number, flags: number) => boolean;
  size?: (size: number, requested: number) => boolean;
  addr?: string;
  lane?: (lane: number) => boolean;
}

/* Say for each stack whether `text` occurs in one of its frames. Answers are kept. */
function textTerm(text: string, stacks: Stacks | null, categories: string[]): Term {
  const wanted = text.toLowerCase().replace(/ \(freed there\)$/, "");
  const frames = new Map<number, boolean>(), known = new Map<number, boolean>();
  const inFrame = (frame: number): boolean => {
    let found = frames.get(frame);
    if (found === undefined) {
      const s = stacks as Stacks;
      found = s.title(frame).toLowerCase().includes(wanted) ||
              s.title(frame, "function").toLowerCase().includes(wanted) ||
              s.fileOf(frame).toLowerCase().includes(wanted);
      frames.set(frame, found);
    }
    return found;
  };
  return {
    stack: (stack, category, flags) => {
      if (categories[category] === wanted) return true;
      if (wanted.startsWith("(") && stacks !== null) return stacks.siteTitle(stack, flags).toLowerCase() === wanted;
      let found = known.get(stack);
      if (found === undefined) {
        found = stacks !== null && stacks.frames(stack).some(inFrame);
        known.set(stack, found);
      }
      return found;
    },
  };
}

function parseTerm(word: string, stacks: Stacks | null, categories: string[], lanes: Lane[]): Term {
  const size = parseBytes(word.slice(1));
  if (size !== null && word[0] === ">") return { size: (n) => n >= size };
  if (size !== null && word[0] === "<") return { size: (n) => n <= size };
  if (size !== null && word[0] === "=") return { size: (n, r) => n === size || r === size };
  if (/^0x[0-9a-f]+$/i.test(word)) return { addr: word.toLowerCase() };
  const stream = /^stream:(.+)$/.exec(word);
  if (stream !== null) return { lane: (l) => lanes[l]?.stream === stream[1] };
  return textTerm(word, stacks, categories);
}

/* Read a search; null if it is empty. */
export function parseSearch(text: string, stacks: Stacks | null, categories: string[],
                            lanes: Lane[]): Search | null {
  const words = text.match(/"[^"]*"|\S+/g) ?? [];
  const terms = words.map((w) => parseTerm(w.replace(/^"|"$/g, ""), stacks, categories, lanes));
  if (terms.length === 0) return null;
  const holds = (stack: number, category: number, size: number, requested: number, addr: bigint,
                 lane: number, flags: number) =>
    terms.every((t) =>
      (t.stack?.(stack, category, flags) ?? true) && (t.size?.(size, requested) ?? true) &&
      (t.lane?.(lane) ?? true) &&
      (t.addr === undefined || `0x${addr.toString(16)}`.startsWith(t.addr)));
  return {
    matches: (a, row) => holds(a.stack[row], a.category[row], a.size[row], a.req[row], a.addr[row],
                               a.lane[row], a.flags[row]),
    matchesEvent: (stack, size, addr, lane) => holds(stack, -1, size, size, addr, lane, 0),
  };
}
