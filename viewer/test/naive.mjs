// SPDX-License-Identifier: Apache-2.0
/*
 * The picture of the timeline, drawn anew in the most simple way: for a pixel, the allocations alive at its moment lie
 * one on the other. A pixel of the page may show any of the moments that it covers, and a rounded height.
 */
import { load } from "./unit/load.mjs";

const { categoryColour } = await load("palette.ts");

function rgb(hex, shade = 1) {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255].map((v) => Math.round(v * shade));
}

const near = (x, y) => x.every((v, i) => Math.abs(v - y[i]) <= 3);

/* Return the colour at `bytes` above the ground at a moment: paper above all. */
function colourAt(lives, moment, bytes, names, paper) {
  let bottom = 0;
  for (const l of lives) {
    if (l.begin > moment || moment >= l.end) continue;
    if (bytes < bottom + l.size) return categoryColour(names[l.category]);
    bottom += l.size;
  }
  return paper;
}

/*
 * Return the share of `pixels` ([x, y, red, green, blue, alpha] within the plot of `width` by `height`) that have a colour of
 * the model, in which lives are `shift` moments late.
 */
export function shareOfModel(pixels, { lives, moments, width, height, top, names, paper, shift = 0 }) {
  let good = 0;
  for (const [x, y, r, g, b, alpha] of pixels) {
    const colour = alpha === 0 ? rgb(paper) : [r, g, b];
    const from = Math.floor((x * moments) / width) - 2, to = Math.ceil(((x + 1) * moments) / width) + 2;
    const wanted = new Set();
    for (let m = from; m <= to; m++)
      for (const dy of [-1, 0.5, 2])
        wanted.add(colourAt(lives, Math.max(0, Math.min(moments - 1, m)) - shift, ((height - y - dy) * top) / height, names, paper));
    good += [...wanted].some((hex) => near(colour, rgb(hex)) || (hex !== paper && near(colour, rgb(hex, 0.72)))) ? 1 : 0;
  }
  return good / pixels.length;
}
