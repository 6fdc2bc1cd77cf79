// SPDX-License-Identifier: Apache-2.0
/*
 * What the page shows, all of it, as one value that the URL's hash holds. A view reads the state and
 * asks for another one; nothing else tells a view what to do. So each state has a link, and Back works.
 */

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

function readNumber(text: string | null): number | null {
  if (text === null || !/^\d{1,10}(\.\d{1,4})?$/.test(text)) return null;
  return Number(text);
}

function readWord<T extends string>(text: string | null, words: readonly T[], other: T): T {
  return words.find((w) => w === text) ?? other;
}

/* Read a state out of a hash. What is no state of ours becomes the default. */
export function readHash(hash: string): State {
  const p = new URLSearchParams(hash.replace(/^#/, ""));
  const whole = (key: string) => {
    const n = readNumber(p.get(key));
    return n === null ? null : Math.floor(n);
  };
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

/* The state of the page, and who wants to know of its changes. */
export class Store {
  state: State;
  private readonly listeners: ((now: State, before: State) => void)[] = [];
  private timer: number | undefined;

  constructor() {
    this.state = readHash(location.hash);
    addEventListener("hashchange", () => this.replace(readHash(location.hash)));
    addEventListener("click", (event) => this.follow(event));
  }

  listen(call: (now: State, before: State) => void): void { this.listeners.push(call); }

  private replace(next: State): void {
    const before = this.state;
    this.state = next;
    for (const call of this.listeners) call(next, before);
  }

  /* Change the state. Another view, file or device is a new entry of the history. */
  set(change: Partial<State>): void {
    const next = { ...this.state, ...change };
    const isPlace = next.view !== this.state.view || next.file !== this.state.file ||
                    next.device !== this.state.device;
    this.replace(next);
    if (isPlace) this.write(true);
    else this.timer ??= setTimeout(() => this.write(false), 200);
  }

  /* Follow a link to another state. The browser would not do: inside a notebook's frame the address
     that a link completes is the notebook's, so the frame would show the notebook once more. */
  private follow(event: MouseEvent): void {
    const hash = event.target instanceof Element ? event.target.closest("a")?.getAttribute("href") : null;
    if (!hash?.startsWith("#") || event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    this.replace(readHash(hash));
    this.write(true);
  }

  /* Write the hash, after the address of this document and not of the base: they differ inside a
     notebook's frame. A browser may forbid the write there, and the page goes on without. */
  private write(isPlace: boolean): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const hash = writeHash(this.state);
    if (hash === location.hash) return;
    const address = location.href.split("#")[0] + hash;
    try {
      if (isPlace) history.pushState(null, "", address); else history.replaceState(null, "", address);
    } catch {
      return;
    }
  }

  link(change: Partial<State>): string { return writeHash({ ...this.state, ...change }); }
}
