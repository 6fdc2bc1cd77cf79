// SPDX-License-Identifier: Apache-2.0
/*
 * What lies at the cursor, beside the timeline: the curves there, the picked allocation, who holds
 * the memory, and, with a second cursor, the difference between the two.
 */

import type { App } from "./app.ts";
import { allocDetails, allocText, type Times } from "./details.ts";
import { bar, clear, el, table, type Child } from "./dom.ts";
import { bytes, count, difference, duration, percent, plural } from "./format.ts";
import { aliveAt, finestAt, findAlloc, partAt, sumBySite, type Holder, type Part } from "./picture.ts";
import type { Search } from "./search.ts";
import type { Stacks } from "./stacks.ts";

const ROWS = 10;

interface Heights {
  moment: number; reserved: number; active: number; allocated: number; requested: number;
  small: number; smallCount: number; at: number; first: number; last: number; holders: Holder[];
}

/* What the panel is made of. `arrived` is called when a finer tile has come. */
export interface Side { app: App; parts: Part[]; stacks: Stacks | null; timeOf: Times; arrived: () => void }

/* Return what lies at `moment` itself; what the picture draws there may be a column of many moments. */
function heightsAt({ app, parts, stacks, arrived }: Side, moment: number): Heights | null {
  const drawn = partAt(parts, moment), part = drawn && (finestAt(app, moment, arrived) ?? drawn);
  if (part === null) return null;
  const { tile } = part, c = tile.columnOf(moment);
  return {
    moment, reserved: tile.reserved[c], active: tile.active[c], allocated: tile.allocated[c],
    requested: tile.requested[c], small: tile.small[c], smallCount: tile.smallCount[c],
    at: tile.at[c], last: tile.end[c] - 1, first: tile.begin[c],
    holders: stacks === null ? []
      : sumBySite(tile.allocs, aliveAt(part, moment), stacks),
  };
}

function cursorFacts(app: App, h: Heights, timeOf: Times): HTMLElement {
  const time = timeOf(h.moment);
  const row = (name: string, value: Child) =>
    el("div", { class: "fact" }, el("dt", {}, name), el("dd", {}, value));
  return el("section", {},
    el("h3", {}, `A: ${app.momentName(h.moment)}${time === null ? "" : `, +${duration(time)}`}`),
    h.last > h.first && el("p", { class: "faint" },
      `These are the highest figures of ${plural(h.last - h.first + 1, "moment")}, and the lines hold it ${
        app.momentName(h.at)}: finer tiles are on their way, or were left out. The tab Owners has A itself.`),
    el("dl", {}, row("Reserved", bytes(h.reserved)), row("Active", bytes(h.active)),
      row("Allocated", bytes(h.allocated)), row("Asked for", bytes(h.requested)),
      row("Unused", `${bytes(h.reserved - h.active)}, ${percent(h.reserved - h.active, h.reserved)}`)),
    el("p", { class: "actions" },
      app.link("Map", { view: "map" }, "button"), app.link("Owners", { view: "owners" }, "button"),
      app.link("Events", { view: "events" }, "button")));
}

function holderTable(app: App, stacks: Stacks, h: Heights): HTMLElement {
  const rows: Child[][] = h.holders.slice(0, ROWS).map((o) => [
    bytes(o.bytes), count(o.count),
    el("span", { class: "line" },
      app.link(stacks.title(o.site), { q: `"${stacks.title(o.site)}"` }, "plain"),
      bar(o.bytes / Math.max(1, h.active)))]);
  const rest = h.holders.slice(ROWS);
  if (rest.length > 0)
    rows.push([bytes(rest.reduce((n, o) => n + o.bytes, 0)), count(rest.reduce((n, o) => n + o.count, 0)),
      `${rest.length} more lines`]);
  if (h.small > 0) rows.push([bytes(h.small), count(h.smallCount), "too small to be drawn"]);
  return el("section", {}, el("h3", {}, "Who holds it at A"),
    table("Lines of code and the bytes they hold at the cursor",
      [{ head: "Bytes", right: true }, { head: "Blocks", right: true }, { head: "Line" }], rows));
}

function differenceTable(app: App, a: Heights, b: Heights, stacks: Stacks | null,
                         timeOf: Times): HTMLElement {
  const curves: [string, number, number][] = [["reserved", a.reserved, b.reserved],
    ["active", a.active, b.active], ["allocated", a.allocated, b.allocated],
    ["asked for", a.requested, b.requested]];
  const t0 = timeOf(a.moment), t1 = timeOf(b.moment), changed = changes(a, b);
  return el("section", { class: "ruler" },
    el("h3", {}, `From A to B: ${plural(Math.abs(b.moment - a.moment), "event")}${
      t0 !== null && t1 !== null ? `, ${duration(Math.abs(t1 - t0))}` : ""}`),
    el("p", { class: "faint" }, `B is ${app.momentName(b.moment)}.`),
    table("Curves at A and B", [{ head: "" }, { head: "A", right: true }, { head: "B", right: true },
      { head: "B − A", right: true }],
      curves.map(([name, x, y]) => [name, bytes(x), bytes(y), difference(y - x)])),
    stacks !== null && changed.length > 0 && table("What grew and what shrank between A and B",
      [{ head: "B − A", right: true }, { head: "Line" }],
      changed.slice(0, ROWS).map(([site, by]) => [difference(by),
        app.link(stacks.title(site), { q: `"${stacks.title(site)}"` }, "plain")])),
    stacks !== null && changed.length === 0 && el("p", { class: "faint" },
      "No line that is large enough to be drawn holds more or less at B."));
}

/* List by how much each site's bytes differ, the largest first. */
function changes(a: Heights, b: Heights): [number, number][] {
  const by = new Map<number, number>();
  for (const h of a.holders) by.set(h.site, -h.bytes);
  for (const h of b.holders) by.set(h.site, (by.get(h.site) ?? 0) + h.bytes);
  return [...by].filter(([, n]) => n !== 0).sort((x, y) => Math.abs(y[1]) - Math.abs(x[1]));
}

function hitList(app: App, parts: Part[], stacks: Stacks, search: Search): HTMLElement {
  const sites = new Map<number, Holder>(), seen = new Set<number>();
  for (const { tile } of parts)
    for (let row = 0; row < tile.allocs.length; row++) {
      if (seen.has(tile.allocs.id[row]) || !search.matches(tile.allocs, row)) continue;
      seen.add(tile.allocs.id[row]);
      const site = stacks.siteOf(tile.allocs.stack[row], tile.allocs.flags[row]);
      const h = sites.get(site) ?? { site, bytes: 0, count: 0, largest: 0 };
      h.bytes += tile.allocs.size[row];
      h.count++;
      h.largest = Math.max(h.largest, tile.allocs.size[row]);
      sites.set(site, h);
    }
  const all = [...sites.values()].sort((x, y) => y.bytes - x.bytes);
  return el("section", { class: "hits" },
    el("h3", {}, `${plural(seen.size, "allocation")} found for "${app.state.q}"`),
    seen.size === 0 ? el("p", { class: "faint" },
      "Nothing in this picture matches. Small allocations are found among the events.")
      : table("Lines whose allocations match the search",
        [{ head: "Largest", right: true }, { head: "Count", right: true }, { head: "Line" }],
        all.slice(0, ROWS).map((h) => [bytes(h.largest), count(h.count),
          app.link(stacks.title(h.site), { q: `"${stacks.title(h.site)}"` }, "plain")])),
    el("p", { class: "actions" }, app.link("Clear the search", { q: "" }, "button"),
      app.link("Find among the events", { view: "events" }, "button")));
}

/* Fill the panel. */
export function sidePanel(side: Side, host: HTMLElement, search: Search | null): void {
  const { app, parts, stacks, timeOf } = side, a = heightsAt(side, app.a);
  const b = app.b === null ? null : heightsAt(side, app.b);
  const picked = app.state.pick === null ? null : findAlloc(parts, app.state.pick);
  clear(host,
    search !== null && stacks !== null && hitList(app, parts, stacks, search),
    picked !== null && allocDetails(app, stacks, picked.allocs, picked.row, timeOf),
    app.state.pick !== null && picked === null && el("p", { class: "faint" },
      "The picked allocation does not live in this picture, or is too small to be drawn."),
    a !== null && b !== null && differenceTable(app, a, b, stacks, timeOf),
    app.b !== null && b === null && el("p", { class: "faint" }, "B is outside of what is shown."),
    a !== null ? cursorFacts(app, a, timeOf)
      : el("p", { class: "faint" }, "The cursor A is outside of what is shown."),
    a !== null && stacks !== null && holderTable(app, stacks, a),
    stacks === null && el("p", { class: "faint" }, app.source.isReport ? "The stacks were left out of this report."
      : "The stacks are on their way."));
}

/* Write the panel as text for an issue. */
export function sideText(side: Side): string {
  const { app, parts, stacks, timeOf } = side, out = [app.subject], a = heightsAt(side, app.a);
  const picked = app.state.pick === null ? null : findAlloc(parts, app.state.pick);
  if (a !== null) {
    const time = timeOf(a.moment);
    out.push(`${app.momentName(a.moment)}${time === null ? "" : `, +${duration(time)}`}: reserved ${
      bytes(a.reserved)}, active ${bytes(a.active)}`);
    for (const h of a.holders.slice(0, ROWS))
      out.push(`${bytes(h.bytes).padStart(11)}  ${count(h.count).padStart(6)}  ${stacks?.title(h.site) ?? ""}`);
  }
  if (picked !== null) out.push("", allocText(app, stacks, picked.allocs, picked.row));
  return out.join("\n");
}
