// SPDX-License-Identifier: Apache-2.0
/* The state of a job's page, as the URL's hash. */

import { HashStore, readWhole, readWord } from "../hash.ts";

export const PARTS = ["verdict", "timeline", "ranks", "findings", "settings", "files"] as const;
export type Part = (typeof PARTS)[number];
export const MEASURES = ["reserved", "allocated", "cached", "stranded", "retries"] as const;
export type Measure = (typeof MEASURES)[number];
export const SORTS = ["rank", "group", ...MEASURES] as const;
export type Sort = (typeof SORTS)[number];

export interface State {
  part: Part; // which part was asked for last
  file: number | null; // the rank that is looked at, by its file
  step: number | null; // the cursor on the timeline: its row
  by: Measure; // what colours the ranks
  q: string; // which ranks are listed
  sort: Sort;
  page: number; // of the list of ranks
  found: number; // the page of findings
  lost: number; // the page of files that do not count
}

export const START: State = {
  part: "verdict", file: null, step: null, by: "reserved", q: "", sort: "rank", page: 0, found: 0, lost: 0,
};

/* Read a state out of a hash. A value that is none of ours becomes the default. */
export function readHash(hash: string): State {
  const p = new URLSearchParams(hash.replace(/^#/, ""));
  const whole = (key: string) => readWhole(p.get(key));
  return {
    part: readWord(p.get("part"), PARTS, START.part),
    file: whole("file"), step: whole("step"),
    by: readWord(p.get("by"), MEASURES, START.by),
    q: (p.get("q") ?? "").slice(0, 200),
    sort: readWord(p.get("sort"), SORTS, START.sort),
    page: whole("page") ?? 0, found: whole("found") ?? 0, lost: whole("lost") ?? 0,
  };
}

/* Write a state as a hash, without its defaults. */
export function writeHash(state: State): string {
  const p = new URLSearchParams();
  for (const [key, value] of Object.entries(state))
    if (value !== START[key as keyof State] || key === "part") p.set(key, String(value));
  return `#${p.toString()}`;
}

export class Store extends HashStore<State> {
  constructor() {
    super({ read: readHash, write: writeHash, isPlace: (now, before) => now.part !== before.part || now.file !== before.file });
  }
}
