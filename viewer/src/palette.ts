// SPDX-License-Identifier: Apache-2.0
/*
 * Colours that the colour-blind can tell apart (after Okabe and Ito, and Tol), for a dark and a light
 * page. A category's colour is the same in every view. "owner" gives the lines that hold most a
 * colour each and all others grey, so that a colour never means nothing.
 */

import { NONE } from "./pack.ts";
import type { Stacks } from "./stacks.ts";
import type { Colour } from "./state.ts";
import type { Allocs, Tile } from "./tile.ts";

const CATEGORY: Record<string, string> = {
  unknown: "#8c8f96", weights: "#3b82c4", optimizer: "#c86aa2", gradients: "#dd6b2c",
  activations: "#1f9e7a", temporaries: "#e3b23c", inputs: "#6cc3ee",
  "kv-cache": "#8e6fc7",
};
const OWNERS = ["#3b82c4", "#e3b23c", "#1f9e7a", "#c86aa2", "#dd6b2c", "#6cc3ee", "#8e6fc7",
  "#a3b34a", "#b5523b", "#4fb0a5"];
const OTHERS = "#8c8f96";
/* From short to long lives, in steps of lightness that hold in grey. */
const AGES = ["#f6d746", "#f3a33a", "#e0694a", "#b5417a", "#7b3a9c", "#41409a", "#22356f"];

export const OWNER_COUNT = OWNERS.length;

export function categoryColour(name: string): string { return CATEGORY[name] ?? OTHERS; }
export function ownerColour(rank: number): string { return OWNERS[rank] ?? OTHERS; }

/* Return the colour of a life of `moments` out of `whole`, on a scale of powers. */
export function ageColour(moments: number, whole: number): string {
  return AGES[ageClass(moments, whole)];
}

export function ageClass(moments: number, whole: number): number {
  const share = Math.log(1 + moments) / Math.log(2 + whole);
  return Math.max(0, Math.min(AGES.length - 1, Math.floor(share * AGES.length)));
}

/* The sites that hold most, by bytes and moments, in a picture of the whole record. */
export function rankSites(tile: Tile | null, stacks: Stacks | null): Map<number, number> {
  const weight = new Map<number, number>();
  if (tile === null || stacks === null) return new Map();
  for (let i = 0; i < tile.runs; i++) {
    const row = tile.runAlloc[i];
    const site = stacks.siteOf(tile.allocs.stack[row], tile.allocs.flags[row]);
    if (site === NONE) continue; // what has no name gets no colour
    const area = tile.allocs.size[row] * (tile.runTo[i] - tile.runFrom[i]);
    weight.set(site, (weight.get(site) ?? 0) + area);
  }
  const order = [...weight].sort((x, y) => y[1] - x[1]).slice(0, OWNER_COUNT);
  return new Map(order.map(([site], rank) => [site, rank]));
}

export interface Painter {
  colour(allocs: Allocs, row: number): string;
}

export function makePainter(mode: Colour, categories: string[], stacks: Stacks | null,
                            ranks: Map<number, number>, moments: number, at?: number): Painter {
  const category = categories.map(categoryColour);
  if (mode === "owner")
    return {
      colour: (a, row) => ownerColour(ranks.get(stacks?.siteOf(a.stack[row], a.flags[row]) ?? NONE) ?? -1),
    };
  if (mode === "age")
    return {
      colour: (a, row) => {
        const end = at ?? (a.end[row] === NONE ? moments : a.end[row]);
        return ageColour(end - a.begin[row], moments);
      },
    };
  return { colour: (a, row) => category[a.category[row]] ?? OTHERS };
}

export const AGE_COLOURS = AGES;

/* Read "#rrggbb" as a pixel of an ImageData on a little-endian machine. */
export function pixel(hex: string, shade = 1, alpha = 255): number {
  const n = parseInt(hex.slice(1), 16);
  const r = Math.round((n >> 16) * shade), g = Math.round(((n >> 8) & 255) * shade);
  const b = Math.round((n & 255) * shade);
  return ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/* Mix `hex` with `paper`, keeping `share` of it. */
export function mix(hex: string, paper: string, share: number): string {
  const x = parseInt(hex.slice(1), 16), y = parseInt(paper.slice(1), 16);
  let out = "#";
  for (const shift of [16, 8, 0]) {
    const v = Math.round(((x >> shift) & 255) * share + ((y >> shift) & 255) * (1 - share));
    out += v.toString(16).padStart(2, "0");
  }
  return out;
}

/* Tell whether black text is easier to read on `hex` than white text. */
export function isLight(hex: string): boolean {
  const part = (shift: number) => (((parseInt(hex.slice(1), 16) >> shift) & 255) / 255) ** 2.2;
  return 0.2126 * part(16) + 0.7152 * part(8) + 0.0722 * part(0) > 0.18;
}

let dark: MediaQueryList | null = null, theme = "";
const themeColours = new Map<string, string>();

/*
 * Read a colour of the style sheet, written as #rrggbb. Colours are kept until the page turns dark or light: a picture
 * asks a hundred times, and each look at a computed style may lay out the page.
 */
export function themeColour(name: string): string {
  dark ??= matchMedia("(prefers-color-scheme: dark)");
  const now = `${document.documentElement.dataset.theme ?? ""} ${String(dark.matches)}`;
  if (now !== theme) {
    theme = now;
    themeColours.clear();
  }
  let colour = themeColours.get(name);
  if (colour === undefined) {
    const text = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colour = /^#[0-9a-f]{6}$/i.test(text) ? text : "#808080";
    themeColours.set(name, colour);
  }
  return colour;
}
