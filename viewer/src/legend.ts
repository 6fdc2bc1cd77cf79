// SPDX-License-Identifier: Apache-2.0
/* What the colours of the timeline and of the map mean. A press on an entry searches for it. */

import type { App } from "./app.ts";
import { el, stroke, swatch } from "./dom.ts";
import { bytes } from "./format.ts";
import { NONE } from "./pack.ts";
import { AGE_COLOURS, categoryColour, ownerColour } from "./palette.ts";
import type { Picture } from "./picture.ts";
import type { Stacks } from "./stacks.ts";
import type { Allocs } from "./tile.ts";

function entry(app: App, text: string, colour: string, q: string | null): HTMLElement {
  if (q === null) return el("span", { class: "key" }, swatch(colour), text);
  const isOn = app.state.q === q;
  return el("a", { class: isOn ? "key on" : "key", href: app.store.link({ q: isOn ? "" : q }),
    title: `${text}: ${isOn ? "show all" : "highlight these alone"}` }, swatch(colour), el("span", {}, text));
}

/* The categories and the lines that a picture has. */
export interface Used { categories: Set<number>; sites: Set<number> }

export function findUsed(allocs: Allocs, rows: Iterable<number>, stacks: Stacks | null, into: Used): Used {
  for (const row of rows) {
    into.categories.add(allocs.category[row]);
    into.sites.add(stacks?.siteOf(allocs.stack[row], allocs.flags[row]) ?? NONE);
  }
  return into;
}

/* List the colours of the state's mode that are used. */
export function colourKeys(app: App, stacks: Stacks | null, ranks: Map<number, number>, used: Used): (HTMLElement | false)[] {
  const { colour } = app.state;
  if (colour === "age")
    return [el("span", { class: "key" }, "short"),
      ...AGE_COLOURS.map((c) => entry(app, "", c, null)), el("span", { class: "key" }, "long")];
  if (colour === "owner" && stacks !== null)
    return [...[...ranks].filter(([site]) => used.sites.has(site)).map(([site, rank]) =>
      entry(app, stacks.title(site), ownerColour(rank), `"${stacks.title(site)}"`)),
    [...used.sites].some((site) => !ranks.has(site)) && entry(app, "all others", ownerColour(-1), null)];
  return app.about.categories.map((name, i) => used.categories.has(i) && entry(app, name, categoryColour(name), name));
}

/* Find what the parts draw, and the categories of their small allocations. */
function usedIn(picture: Picture, stacks: Stacks | null): { used: Used; small: Set<number>; below: number } {
  const below = Math.max(0, ...picture.parts.map(({ tile }) => tile.smallBelow));
  const used: Used = { categories: new Set(), sites: new Set() }, small = new Set<number>();
  for (const { tile, from, to } of picture.parts) {
    const isSeen = (first: number, last: number) => tile.end[last] > from && tile.begin[first] < to;
    const rows = new Set<number>();
    for (let i = 0; i < tile.runs; i++) if (isSeen(tile.runFrom[i], tile.runTo[i] - 1)) rows.add(tile.runAlloc[i]);
    findUsed(tile.allocs, rows, stacks, used);
    for (let i = 0; i < tile.smallBy.length; i++) {
      const column = Math.floor(i / tile.categories);
      if (tile.smallBy[i] > 0 && isSeen(column, column)) small.add(i % tile.categories);
    }
  }
  for (const k of small) used.categories.add(k);
  return { used, small, below };
}

/* Make the timeline's legend: colours, lines, and what is not shown. `muted` are the colours of small allocations. */
export function legend(app: App, stacks: Stacks | null, ranks: Map<number, number>, picture: Picture, muted: string[],
                       milliseconds: number): HTMLElement {
  const { used, small, below } = usedIn(picture, stacks), colours = [...new Set([...small].map((k) => muted[k]))];
  const stops = colours.map((c, i) => `${c} ${(100 * i) / colours.length}% ${(100 * (i + 1)) / colours.length}%`);
  return el("div", {},
    ...colourKeys(app, stacks, ranks, used),
    colours.length > 0 && el("span", { class: "key" }, swatch(`linear-gradient(90deg, ${stops.join(", ")})`),
      `muted: each below ${bytes(below)}, summed up`),
    el("span", { class: "key" }, stroke("var(--reserved)"), "reserved"),
    el("span", { class: "note", title: `Drawn in ${milliseconds.toFixed(1)} ms` },
      picture.isCoarse ? "Finer detail was left out of this report."
        : picture.isComing ? "Finer detail is on its way…" : ""));
}
