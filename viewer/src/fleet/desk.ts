// SPDX-License-Identifier: Apache-2.0
/* The desk, which every part of the page is given, and pieces that several parts have. */

import { button, el, type Child } from "../dom.ts";
import { clean, count } from "../format.ts";
import { mix, AGE_COLOURS, ownerColour } from "../palette.ts";
import { isDark } from "../theme.ts";
import type { Job } from "./job.ts";
import type { State, Store } from "./state.ts";

export interface PartView {
  update(now: State, before: State | null): void;
  /* Paint anew: the colours are others. */
  repaint?(): void;
}

export class Desk {
  status: (text: string) => void = () => {};

  constructor(readonly job: Job, readonly store: Store) {}

  get state(): State { return this.store.state; }

  link(text: Child, change: Partial<State>, title?: string): HTMLAnchorElement {
    return el("a", { href: this.store.link(change), title }, text);
  }

  /* Make a link to a rank. */
  rankLink(file: number): HTMLElement {
    return this.job.fleet.files[file]?.figures ? this.link(this.job.who(file), { part: "ranks", file })
      : el("span", {}, this.job.who(file));
  }

  groupLink(group: number): HTMLAnchorElement {
    return this.link(`group ${group}`, { part: "ranks", q: `group:${group}`, page: 0 });
  }
}

/* Groups have the colours of owners; all from the tenth on share one. */
export function groupColour(group: number | null): string { return ownerColour(group ?? -1); }

const SHADES = 128;

/* Make the scale of colours, by shares: the most is farthest from the ground, light or dark. */
export function heatScale(): (share: number) => string {
  const stops = isDark() ? [...AGE_COLOURS].reverse() : AGE_COLOURS;
  const shades = Array.from({ length: SHADES }, (_, k) => {
    const at = (k / (SHADES - 1)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at));
    return mix(stops[i + 1], stops[i], at - i);
  });
  return (share) => shades[Math.round(Math.max(0, Math.min(1, share)) * (SHADES - 1))];
}

/* Begin a sentence of the text with a capital, and end it. */
export function sentence(text: string): string {
  const t = clean(text);
  return `${t.charAt(0).toUpperCase()}${t.slice(1)}${/[.,:]$|, at$/.test(t) ? "" : "."}`;
}

/* Make a line of source, for the eye and for a search. */
export function sourceLine(line: string | null): Child {
  return line === null || line === "" ? null : el("code", { class: "source" }, clean(line));
}

/* Make buttons that turn the pages of a list; none if there is one page. */
export function pager(what: string, total: number, size: number, page: number, turn: (page: number) => void): Child {
  const pages = Math.ceil(total / size), at = Math.max(0, Math.min(page, pages - 1));
  if (pages <= 1) return null;
  const go = (text: string, title: string, to: number) => {
    const b = button(text, title, () => turn(to));
    b.disabled = to < 0 || to >= pages || to === at;
    return b;
  };
  return el("div", { class: "toolbar pager" },
    go("«", `First ${what}`, 0), go("‹", `${what} before`, at - 1),
    el("span", {}, `${count(at * size + 1)}–${count(Math.min(total, (at + 1) * size))} of ${count(total)} ${what}`),
    go("›", `${what} after`, at + 1), go("»", `Last ${what}`, pages - 1));
}

/* Return the part of a list that a page shows. */
export function onPage<T>(list: T[], size: number, page: number): T[] {
  const at = Math.max(0, Math.min(page, Math.ceil(list.length / size) - 1));
  return list.slice(at * size, (at + 1) * size);
}
