// SPDX-License-Identifier: Apache-2.0
/*
 * Which ranks are listed, and in which order. A search is words that must all hold. "17" or "8-15" are
 * ranks, "group:2" is a group. "oom", "differs" and "alike" are states, all else is part of a path or a verdict.
 */

import type { Figures, Job } from "./job.ts";
import type { Measure, Sort } from "./state.ts";

export const MEASURE_WORDS: Record<Measure, string> = {
  reserved: "reserved at the peak", allocated: "allocated at the peak", cached: "cached: free, could go back",
  stranded: "stranded: free, cannot go back", retries: "retries",
};

export function measure(f: Figures, by: Measure): number {
  if (by === "reserved") return f.reserved_peak;
  if (by === "allocated") return f.allocated_peak;
  return by === "cached" ? f.releasable : by === "stranded" ? f.stranded : f.retries;
}

type Test = (file: number) => boolean;

function parseWord(job: Job, word: string): Test {
  const { files } = job.fleet, range = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(word), group = /^group:(\d{1,7})$/.exec(word);
  if (range !== null) {
    const from = Number(range[1]), to = Number(range[2] ?? range[1]);
    return (i) => files[i].rank !== null && (files[i].rank as number) >= from && (files[i].rank as number) <= to;
  }
  if (group !== null) return (i) => files[i].group === Number(group[1]);
  if (word === "oom") return (i) => job.figures(i).oom;
  if (word === "differs") return (i) => files[i].differs;
  if (word === "alike") return (i) => !files[i].differs;
  return (i) => files[i].path.toLowerCase().includes(word) || job.figures(i).verdict.includes(word);
}

/* Return the ranks that `q` finds, in the order of `sort`: numbers from the largest down. */
export function chooseRanks(job: Job, q: string, sort: Sort): number[] {
  const tests = q.toLowerCase().split(/[\s,]+/).filter((w) => w !== "").map((w) => parseWord(job, w));
  const list = job.used.filter((i) => tests.every((t) => t(i)));
  if (sort === "rank") return list;
  const key = (i: number) => (sort === "group" ? -(job.fleet.files[i].group ?? -1) : measure(job.figures(i), sort));
  const keys = new Map(list.map((i) => [i, key(i)]));
  return list.sort((x, y) => (keys.get(y) as number) - (keys.get(x) as number) || x - y);
}
