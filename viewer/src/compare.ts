// SPDX-License-Identifier: Apache-2.0
/* Compare: the curves of several files and devices on one scale, and what each holds more. */

import type { App, View } from "./app.ts";
import { bar, choice, clear, el, penOf, stroke, table, type Child } from "./dom.ts";
import { bytes, bytesShort, clean, count, difference } from "./format.ts";
import { ownerColour, themeColour } from "./palette.ts";
import { ticks } from "./scale.ts";
import { SeriesCard } from "./series.ts";
import type { Tile } from "./tile.ts";
import type { Explain } from "./verdict.ts";

interface Run { file: number; device: number; name: string; tile: Tile | null; colour: string; dash: number[] }

const RUNS_MAX = 32, HEIGHT = 340, LEFT = 76, BOTTOM = 24;
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

export class Compare implements View {
  private runs: Run[] = [];
  private explains: (Explain | null)[] = [];
  private readonly series: SeriesCard | null;
  private curve: "active" | "reserved" = "active";
  private readonly canvas = el("canvas", { role: "img", aria: { label: "Curves of all files and devices; the table below has their peaks" } });
  private readonly observer = new ResizeObserver(() => this.draw());

  constructor(private readonly app: App, private readonly host: HTMLElement) {
    this.series = app.about.series ? new SeriesCard(app, app.about.series) : null;
    host.append(el("p", { class: "faint" }, "Reading all files…"));
    this.observer.observe(host);
    void this.load();
  }

  finish(): void { this.observer.disconnect(); }

  update(): void {
    if (this.runs.length > 0) this.draw();
  }

  private async load(): Promise<void> {
    const { app } = this, runs: Run[] = [];
    app.about.files.forEach((file, f) => file.devices.forEach((device, d) => {
      if (runs.length >= RUNS_MAX || device.moments === 0) return;
      const several = file.devices.length > 1;
      runs.push({ file: f, device: d, tile: null, colour: ownerColour(runs.length % 10),
        dash: DASHES[Math.floor(runs.length / 10) % DASHES.length],
        name: `${clean(file.name)}${several ? `, device ${device.device}` : ""}` });
    }));
    for (const run of runs) run.tile = await app.wholeTile(`${run.file}/${run.device}`);
    for (let f = 0; f < app.about.files.length; f++)
      this.explains.push(await app.json<Explain>(`${f}/explain`).catch(() => null));
    this.runs = runs;
    this.paint();
  }

  repaint(): void { this.paint(); }

  private paint(): void {
    const { runs, app } = this;
    clear(this.host, el("div", { class: "page" }, this.series?.node,
      el("section", { class: "card" },
        el("h3", {}, runs.length === 1 ? "Only one device was recorded" : `${count(runs.length)} runs on one scale`),
        runs.length === 1 && el("p", { class: "faint" },
          "Name several files to compare them: drystone view rank0.pickle rank1.pickle -o ranks.html"),
        el("div", { class: "toolbar" }, choice("Curve", [["active", "active"], ["reserved", "reserved"]], this.curve,
          (v) => { this.curve = v as "active" | "reserved"; this.draw(); })),
        this.canvas,
        el("p", { class: "faint" }, "Each run is drawn from its first to its last event."),
        this.peakTable()),
      app.about.files.length > 1 ? this.lines() : null));
    this.draw();
  }

  private peakTable(): HTMLElement {
    const most = Math.max(1, ...this.runs.map((r) => this.deviceOf(r).peaks.reserved.bytes));
    const first = this.runs[0];
    return table("Peaks of all runs", [{ head: "" }, { head: "Active at the peak", right: true },
      { head: "Against the first", right: true }, { head: "Reserved", right: true }, { head: "Events", right: true },
      { head: "Verdict" }, { head: "" }],
      this.runs.map((r) => {
        const d = this.deviceOf(r), e = this.explains[r.file];
        const mine = e !== null && e?.device === d.device;
        return [el("span", { class: "swatched" }, stroke(r.colour, r.dash), this.app.link(r.name, { view: "timeline", file: r.file, device: r.device,
          from: null, to: null, a: null, b: null, pick: null })), bytes(d.peaks.active.bytes),
          r === first ? "–" : difference(d.peaks.active.bytes - this.deviceOf(first).peaks.active.bytes),
          bytes(d.peaks.reserved.bytes), count(d.events),
          mine ? this.app.link(e.verdict, { view: "verdict", file: r.file, device: r.device, a: null, b: null,
            from: null, to: null, pick: null }) : d.ooms.length > 0 ? "out of memory" : "",
          bar(d.peaks.active.bytes / most, r.colour)];
      }));
  }

  private deviceOf(r: Run) { return this.app.about.files[r.file].devices[r.device]; }

  /* Compare the lines that hold the memory of the files, each at its own failure or peak. */
  private lines(): Child {
    const byLine = new Map<string, number[]>();
    this.explains.forEach((e, f) => {
      for (const o of e?.owners ?? []) {
        const row = byLine.get(clean(o.line)) ?? new Array<number>(this.explains.length).fill(0);
        row[f] += o.bytes;
        byLine.set(clean(o.line), row);
      }
    });
    const spread = (v: number[]) => Math.max(...v) - Math.min(...v);
    const rows = [...byLine].filter(([, v]) => spread(v) > 0).sort((x, y) => spread(y[1]) - spread(x[1])).slice(0, 30);
    const most = Math.max(1, ...rows.map(([, v]) => spread(v)));
    const files = this.explains.length;
    return el("section", { class: "card" }, el("h3", {}, "Lines that differ most"),
      rows.length === 0 ? el("p", { class: "faint" }, "The same lines hold the same bytes in all files.")
        : table("Bytes of each line in each file", [{ head: "Spread", right: true }, { head: "Line" },
          ...this.app.about.files.slice(0, 8).map((f) => ({ head: clean(f.name, 24), right: true }))],
          rows.map(([line, v]) => [el("span", {}, bytes(spread(v))),
            el("span", { class: "line" }, line, files === 2 ? divergingBar(v[1] - v[0], most) : bar(spread(v) / most)),
            ...v.slice(0, 8).map((n) => bytes(n))])));
  }

  private draw(): void {
    const width = this.canvas.parentElement?.clientWidth ?? 0;
    if (width < 100 || this.runs.length === 0) return;
    const w = width - 32;
    this.series?.draw(w);
    const pen = penOf(this.canvas, w, HEIGHT);
    pen.textBaseline = "middle";
    const top = Math.max(1, ...this.runs.map((r) => this.deviceOf(r).peaks.reserved.bytes)) * 1.05;
    const y = (v: number) => 10 + (HEIGHT - BOTTOM - 10) * (1 - v / top);
    pen.textAlign = "right";
    for (const v of ticks(0, top, 6, true)) {
      pen.fillStyle = themeColour("faint");
      pen.fillText(bytesShort(v), LEFT - 8, y(v));
      pen.fillStyle = themeColour("grid");
      pen.fillRect(LEFT, Math.round(y(v)), w - LEFT, 1);
    }
    pen.fillStyle = themeColour("faint");
    pen.textAlign = "left";
    pen.fillText("first event", LEFT, HEIGHT - 8);
    pen.textAlign = "right";
    pen.fillText("last event", w - 2, HEIGHT - 8);
    for (const run of this.runs) this.drawRun(pen, run, w, y);
    document.body.dataset.painted = "compare";
  }

  private drawRun(pen: CanvasRenderingContext2D, run: Run, w: number, y: (v: number) => number): void {
    const { tile } = run, whole = Math.max(1, this.deviceOf(run).moments);
    if (tile === null) return;
    const values = this.curve === "active" ? tile.active : tile.reserved;
    pen.strokeStyle = run.colour;
    pen.lineWidth = 1.8;
    pen.setLineDash(run.dash);
    pen.lineJoin = "round";
    pen.beginPath();
    for (let c = 0; c < tile.columns; c++) {
      const x = LEFT + (tile.begin[c] / whole) * (w - LEFT), x1 = LEFT + (tile.end[c] / whole) * (w - LEFT);
      if (c === 0) pen.moveTo(x, y(values[c])); else pen.lineTo(x, y(values[c]));
      pen.lineTo(x1, y(values[c]));
    }
    pen.stroke();
    pen.setLineDash([]);
  }

  copy(): string {
    return (this.series === null ? "" : `${this.series.copy()}\n`) + this.runs.map((r) => {
      const { peaks } = this.deviceOf(r);
      return `${bytes(peaks.active.bytes).padStart(12)} active, ${bytes(peaks.reserved.bytes)} reserved at the peak: ${r.name}`;
    }).join("\n");
  }
}

/* Draw a bar to the left of the middle for less, to the right for more. */
function divergingBar(by: number, most: number): HTMLElement {
  const fill = el("span", { class: "fill" }), half = (50 * Math.abs(by)) / most;
  fill.style.left = `${by < 0 ? 50 - half : 50}%`;
  fill.style.width = `${half}%`;
  return el("span", { class: "bar life", aria: { hidden: "true" } }, fill);
}
