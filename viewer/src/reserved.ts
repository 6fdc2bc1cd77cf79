// SPDX-License-Identifier: Apache-2.0
/* Curves of what would have been reserved under other settings, over what was. */

import type { App } from "./app.ts";
import { clear, el, penOf, stroke, swatch } from "./dom.ts";
import { bytes, bytesShort } from "./format.ts";
import { ownerColour, themeColour } from "./palette.ts";
import { sameLength } from "./pack.ts";
import { ticks } from "./scale.ts";
import type { Tile } from "./tile.ts";

interface Curve { name: string; colour: string; begin: Uint32Array; bytes: Float64Array }

const CURVES_MAX = 5, HEIGHT = 300, LEFT = 76, TOP = 10, BOTTOM = 22;
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [14, 4]];

/* Ask for the curves of `settings`, in their order, until there are enough. */
async function askCurves(app: App, device: string, settings: { conf: string; label: string }[]): Promise<Curve[]> {
  const curves: Curve[] = [];
  for (const { conf, label } of settings) {
    if (curves.length === CURVES_MAX) break;
    const pack = await app.pack(`${device}/reserved/${conf}`).catch(() => null);
    if (pack === null) continue;
    const begin = pack.u32("col_begin"), reserved = pack.f64("reserved_max");
    sameLength("the curve", begin, reserved);
    curves.push({ name: label, colour: ownerColour(curves.length), begin, bytes: reserved });
  }
  return curves;
}

/* Make the picture for a device "F/D"; it stays empty if the source has no such curves. */
export function reservedCurves(app: App, device: string, moments: number,
                               settings: { conf: string; label: string }[]): HTMLElement {
  const canvas = el("canvas", { role: "img", aria: { label: "Reserved bytes under each setting; the table has the peaks" } });
  const box = el("section", { class: "card", hidden: true }), keys = el("p", {});
  box.append(el("h3", {}, "Reserved bytes over the record, replayed on a device of the same size"), canvas, keys);
  void (async () => {
    const curves = await askCurves(app, device, settings), tile = await app.wholeTile(device);
    if (curves.length === 0 || tile === null) return;
    box.hidden = false;
    clear(keys, el("span", { class: "key" }, stroke("var(--reserved)"), "as recorded"),
      ...curves.map((c, i) =>
        el("span", { class: "key" }, stroke(c.colour, DASHES[i]), `${c.name}: ${bytes(Math.max(0, ...c.bytes))}`)),
      el("span", { class: "key" }, swatch("var(--shade)"), "in use"));
    const draw = () => paint(canvas, tile, curves, moments);
    new ResizeObserver(draw).observe(box);
  })();
  return box;
}

function paint(canvas: HTMLCanvasElement, tile: Tile, curves: Curve[], moments: number): void {
  const width = (canvas.parentElement?.clientWidth ?? 0) - 32;
  if (width < 100) return;
  const pen = penOf(canvas, width, HEIGHT);
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  const top = 1.05 * Math.max(1, ...tile.reserved, ...curves.flatMap((c) => Math.max(0, ...c.bytes)));
  const y = (v: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - v / top);
  const x = (m: number) => LEFT + (m / Math.max(1, moments)) * (width - LEFT);
  for (const v of ticks(0, top, 6, true)) {
    pen.fillStyle = themeColour("faint");
    pen.fillText(bytesShort(v), LEFT - 8, y(v));
    pen.fillStyle = themeColour("grid");
    pen.fillRect(LEFT, Math.round(y(v)), width - LEFT, 1);
  }
  pen.fillStyle = themeColour("shade");
  for (let c = 0; c < tile.columns; c++)
    pen.fillRect(x(tile.begin[c]), y(tile.active[c]), Math.max(1, x(tile.end[c]) - x(tile.begin[c]) + 0.5), y(0) - y(tile.active[c]));
  line(pen, tile.begin, tile.reserved, x, y, x(moments), themeColour("reserved"), []);
  curves.forEach((c, i) => line(pen, c.begin, c.bytes, x, y, x(moments), c.colour, DASHES[i]));
  pen.fillStyle = themeColour("faint");
  pen.textAlign = "left";
  pen.fillText("first event", LEFT, HEIGHT - 8);
  pen.textAlign = "right";
  pen.fillText("last event", width - 2, HEIGHT - 8);
}

function line(pen: CanvasRenderingContext2D, begin: Uint32Array, values: Float64Array, x: (m: number) => number,
              y: (v: number) => number, end: number, colour: string, dash: number[]): void {
  pen.strokeStyle = colour;
  pen.lineWidth = 1.8;
  pen.setLineDash(dash);
  pen.beginPath();
  for (let i = 0; i < begin.length; i++) {
    if (i === 0) pen.moveTo(x(begin[i]), y(values[i])); else pen.lineTo(x(begin[i]), y(values[i]));
    pen.lineTo(i + 1 < begin.length ? x(begin[i + 1]) : end, y(values[i]));
  }
  pen.stroke();
  pen.setLineDash([]);
}
