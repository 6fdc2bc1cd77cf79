// SPDX-License-Identifier: Apache-2.0
/*
 * What the page shows, all of it, as one value that the URL's hash holds. A view reads the state and
 * asks for another one; nothing else tells a view what to do. So each state has a link, and Back works.
 */

import { HashStore, readNumber, readWhole, readWord } from "./hash.ts";

export const VIEWS = ["verdict", "timeline", "map", "owners", "steps", "whatif", "compare", "events",
  "trust"] as const;
export type ViewName = (typeof VIEWS)[number];
export const COLOURS = ["category", "owner", "age"] as const;
export type Colour = (typeof COLOURS)[number];

export const GROUPS = ["line", "function", "file", "category"] as const;
export type Group = (typeof GROUPS)[number];

export interface State {
  view: ViewName;
  file: number;
  device: number;
  from: number | null; // moments; null: from the beginning
  to: number | null;
  a: number | null; // the cursor; null: the failure, else the peak
  b: number | null; // the second cursor
  pick: number | null; // the number of an allocation
  axis: "event" | "time";
  colour: Colour;
  fit: boolean; // the height fits what is visible, not the whole record
  q: string; // the search
  sort: string;
  group: Group; // owners: what allocations are put together by
  flip: boolean; // owners: callees above their callers
  act: string; // events: the one action shown
}

export const START: State = {
  view: "verdict", file: 0, device: 0, from: null, to: null, a: null, b: null, pick: null,
  axis: "event", colour: "category", fit: false, q: "", sort: "bytes", group: "line", flip: false, act: "",
};

/* Read a state out of a hash. A value that is none of ours becomes the default. */
export function readHash(hash: string): State {
  const p = new URLSearchParams(hash.replace(/^#/, ""));
  const whole = (key: string) => readWhole(p.get(key));
  return {
    view: readWord(p.get("view"), VIEWS, START.view),
    file: whole("file") ?? 0,
    device: whole("device") ?? 0,
    from: readNumber(p.get("from")),
    to: readNumber(p.get("to")),
    a: whole("a"), b: whole("b"), pick: whole("pick"),
    axis: readWord(p.get("axis"), ["event", "time"] as const, "event"),
    colour: readWord(p.get("colour"), COLOURS, START.colour),
    fit: p.get("fit") === "1",
    q: (p.get("q") ?? "").slice(0, 200),
    sort: (p.get("sort") ?? START.sort).slice(0, 20),
    group: readWord(p.get("group"), GROUPS, START.group),
    flip: p.get("flip") === "1",
    act: (p.get("act") ?? "").slice(0, 40),
  };
}

/* Write a state as a hash. Defaults are left out, so that links stay short. */
export function writeHash(state: State): string {
  const p = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value === START[key as keyof State] && key !== "view") continue;
    if (typeof value === "boolean") p.set(key, value ? "1" : "0");
    else if (key === "from" || key === "to") p.set(key, String(Number((value as number).toFixed(2))));
    else p.set(key, String(value));
  }
  return `#${p.toString()}`;
}

/* The state of the page. Another view, file or device is a new entry of the history. */
export class Store extends HashStore<State> {
  constructor() {
    super({ read: readHash, write: writeHash,
      isPlace: (now, before) => now.view !== before.view || now.file !== before.file || now.device !== before.device });
  }
}
