// SPDX-License-Identifier: Apache-2.0
/* What the colours of the timeline and of the map mean. A press on an entry searches for it. */

import type { App } from "./app.ts";
import { el, swatch } from "./dom.ts";
import { bytes } from "./format.ts";
import { AGE_COLOURS, categoryColour, ownerColour } from "./palette.ts";
import type { Picture } from "./picture.ts";
import type { Stacks } from "./stacks.ts";

function entry(app: App, text: string, colour: string, q: string | null): HTMLElement {
  if (q === null) return el("span", { class: "key" }, swatch(colour), text);
  const isOn = app.state.q === q;
  return el("a", { class: isOn ? "key on" : "key", href: app.store.link({ q: isOn ? "" : q }),
    title: isOn ? "Show all" : "Highlight these alone" }, swatch(colour), text);
}

/* List the colours of the state's mode. */
export function colourKeys(app: App, stacks: Stacks | null, ranks: Map<number, number>,
                           used: Set<number> | null): HTMLElement[] {
  const { colour } = app.state;
  if (colour === "age")
    return [el("span", { class: "key" }, "short"),
      ...AGE_COLOURS.map((c) => entry(app, "", c, null)), el("span", { class: "key" }, "long")];
  if (colour === "owner" && stacks !== null)
    return [...[...ranks].map(([site, rank]) =>
      entry(app, stacks.title(site), ownerColour(rank), `"${stacks.title(site)}"`)),
    entry(app, "all others", ownerColour(-1), null)];
  return app.about.categories
    .map((name, i) => ({ name, i }))
    .filter(({ i }) => used === null || used.has(i))
    .map(({ name }) => entry(app, name, categoryColour(name), name));
}

/* Make the timeline's legend: colours, lines, and what is not shown. */
export function legend(app: App, stacks: Stacks | null, ranks: Map<number, number>,
                       picture: Picture, milliseconds: number): HTMLElement {
  const used = new Set<number>();
  for (const { tile } of picture.parts) for (const c of tile.allocs.category) used.add(c);
  const { min_bytes } = app.device;
  return el("div", {},
    ...colourKeys(app, stacks, ranks, used),
    el("span", { class: "key" }, el("span", { class: "swatch small" }), `paler: below ${bytes(min_bytes)}, summed up`),
    el("span", { class: "key" }, el("span", { class: "stroke reserved" }), "reserved"),
    el("span", { class: "note", title: `Drawn in ${milliseconds.toFixed(1)} ms` },
      picture.isCoarse ? "Finer detail was left out of this report."
        : picture.isComing ? "Finer detail is on its way…" : ""));
}
