// SPDX-License-Identifier: Apache-2.0
/* The runs of a dry run: memory at the peak over the value that varies, and what the card leaves to PyTorch. */

import type { Series, SeriesRun } from "./about.ts";
import type { App } from "./app.ts";
import { el, penOf, stroke, table, type Child } from "./dom.ts";
import { bytes, bytesShort, clean } from "./format.ts";
import { themeColour } from "./palette.ts";
import { ticks } from "./scale.ts";

interface Point { run: SeriesRun; name: string; value: number }

const HEIGHT = 340, LEFT = 76, RIGHT = 20, TOP = 22, BOTTOM = 26, MARGIN = 28;

/* Return the length of "BATCH=" if all labels share it and have no other, else 0. */
function sharedLength(runs: SeriesRun[]): number {
  const length = (/^[^= ]*[= ]/.exec(runs[0].run) ?? [""])[0].length, begin = runs[0].run.slice(0, length);
  return runs.every((r) => r.run.startsWith(begin) && !r.run.slice(length).includes("=")) ? length : 0;
}

/* Place runs at their numbers, in order, or side by side where a value is none. */
export function placeRuns(runs: SeriesRun[]): Point[] {
  const shared = sharedLength(runs), names = runs.map((r) => r.run.slice(shared));
  const areNumbers = shared > 0 && names.every((n) => n.trim() !== "" && Number.isFinite(Number(n)));
  const points = runs.map((run, i) => ({ run, name: clean(names[i], 60), value: areNumbers ? Number(names[i]) : i }));
  return points.sort((x, y) => x.value - y.value);
}

function outcome({ fits, unseen }: SeriesRun): string {
  if (fits === null) return "not known";
  return fits ? (unseen === null ? "fits" : "fits as far as it ran") : "does not fit";
}

/* Return the least that the card leaves to PyTorch in any run; null: no run tells it. */
function roomOf(runs: SeriesRun[]): number | null {
  const rooms = runs.flatMap((r) => (r.room_bytes === null ? [] : [r.room_bytes]));
  return rooms.length > 0 ? Math.min(...rooms) : null;
}

export class SeriesCard {
  readonly node: HTMLElement;
  private readonly points: Point[];
  private readonly canvas = el("canvas", { role: "img", aria: { label: "Memory of each run; the table below has the figures" } });

  constructor(private readonly app: App, private readonly series: Series) {
    const { runs } = series, shared = sharedLength(runs);
    this.points = placeRuns(runs);
    this.node = el("section", { class: "card" },
      el("h3", {}, `Memory over ${shared > 0 ? clean(runs[0].run.slice(0, shared - 1), 60) : "the runs"}: ${
        runs.filter((r) => r.fits).length} of ${runs.length} fit ${clean(series.card ?? "the card", 60)}`),
      this.canvas, this.legend(), this.figures());
  }

  private legend(): HTMLElement {
    const room = roomOf(this.series.runs), card = clean(this.series.card ?? "the card", 60);
    const key = (colour: string, text: string, sample: Node = stroke(`var(--${colour})`)) => el("span", { class: "key wraps" }, sample, text);
    return el("p", {}, key("reserved", "reserved: taken from the card"), key("active", "allocated: in blocks"),
      key("alarm", "does not fit, at what it had then, or failed", el("b", { class: "error" }, "✕\u2009")),
      room !== null && key("alarm", `${card} leaves ${bytes(room)} to PyTorch`, stroke("var(--alarm)", [5, 3])));
  }

  private figures(): HTMLElement {
    const told = (n: number | null) => (n === null ? "–" : bytes(n)), right = true;
    return table("Runs", [{ head: "Run" }, { head: "Result" }, { head: "Allocated", right }, { head: "Reserved", right },
      { head: "To spare", right }], this.points.map(({ run: r }) => {
      const spare = r.fits && r.room_bytes !== null && r.reserved_peak_bytes !== null ? r.room_bytes - r.reserved_peak_bytes : null;
      return [this.link(r), outcome(r), told(r.allocated_peak_bytes), told(r.reserved_peak_bytes), told(spare)];
    }), (i) => (this.points[i].run.run === this.series.best ? "best" : ""));
  }

  private link(run: SeriesRun): Child {
    const { app } = this, file = app.about.files.findIndex((f) => f.name === run.snapshot), name = clean(run.run, 160);
    return file < 0 ? name : app.link(name, { view: "verdict", file, device: app.about.files[file].main ?? 0, a: null, b: null,
      from: null, to: null, pick: null });
  }

  /* Draw at `width` pixels. A card far above all runs is in words alone: its line would press them down. */
  draw(width: number): void {
    const { canvas, points } = this, room = roomOf(this.series.runs) ?? 0;
    const pen = penOf(canvas, width, HEIGHT);
    pen.textBaseline = "middle";
    const most = Math.max(1, ...points.map((p) => p.run.reserved_peak_bytes ?? 0));
    const top = 1.07 * (room / 2 < most && room > most ? room : most);
    const first = points[0].value, span = points[points.length - 1].value - first;
    const x = (v: number) => LEFT + MARGIN + (span > 0 ? (v - first) / span : 0.5) * (width - LEFT - RIGHT - 2 * MARGIN);
    const y = (v: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - v / top);
    this.axes(pen, width, top, x, y);
    this.curve(pen, "active", (r) => r.allocated_peak_bytes, x, y);
    this.curve(pen, "reserved", (r) => r.reserved_peak_bytes, x, y);
    pen.strokeStyle = themeColour("alarm");
    pen.lineWidth = 2.5;
    pen.beginPath();
    for (const { run, value } of points.filter((p) => p.run.fits !== true)) {
      const cx = x(value), cy = y(run.fits === null ? 0 : run.reserved_peak_bytes ?? 0);
      for (const side of [-6, 6]) { pen.moveTo(cx - 6, cy - side); pen.lineTo(cx + 6, cy + side); }
    }
    pen.stroke();
    if (room === 0 || room > top) return;
    pen.lineWidth = 1.5;
    pen.setLineDash([5, 3]);
    pen.beginPath();
    pen.moveTo(LEFT, y(room));
    pen.lineTo(width - RIGHT, y(room));
    pen.stroke();
    pen.setLineDash([]);
  }

  private axes(pen: CanvasRenderingContext2D, width: number, top: number, x: (v: number) => number, y: (v: number) => number): void {
    pen.textAlign = "right";
    for (const v of ticks(0, top, 6, true)) {
      pen.fillStyle = themeColour("faint");
      pen.fillText(bytesShort(v), LEFT - 8, y(v));
      pen.fillStyle = themeColour("grid");
      pen.fillRect(LEFT, Math.round(y(v)), width - LEFT - RIGHT, 1);
    }
    pen.textAlign = "center";
    pen.fillStyle = themeColour("faint");
    let busy = LEFT - 20;
    for (const p of this.points) {
      const half = pen.measureText(p.name).width / 2;
      if (x(p.value) - half < busy || x(p.value) + half > width) continue;
      pen.fillText(p.name, x(p.value), HEIGHT - 11);
      busy = x(p.value) + half + 8;
    }
  }

  /* Draw a line through the runs that fit, and a mark at each: the others would need more. */
  private curve(pen: CanvasRenderingContext2D, colour: string, get: (run: SeriesRun) => number | null,
                x: (v: number) => number, y: (v: number) => number): void {
    pen.strokeStyle = pen.fillStyle = themeColour(colour);
    pen.lineWidth = 2;
    pen.beginPath();
    for (const p of this.points.filter((q) => q.run.fits)) {
      const cx = x(p.value), cy = y(get(p.run) ?? 0);
      pen.lineTo(cx, cy);
      pen.fillRect(cx - 4, cy - 4, 8, 8);
    }
    pen.stroke();
  }

  copy(): string {
    return this.points.map(({ run: r }) =>
      `${clean(r.run, 160)}: ${outcome(r)}${r.reserved_peak_bytes === null ? "" : `, ${bytes(r.reserved_peak_bytes)} reserved`}`).join("\n");
  }
}
