// SPDX-License-Identifier: Apache-2.0
/* All ranks as cells of colour: what each reserves, which group it is of, and a mark on those that differ. */

import { choice, clear, el, penOf, showTip, swatch } from "../dom.ts";
import { bytes, clean, count } from "../format.ts";
import { isLight, themeColour } from "../palette.ts";
import { groupColour, heatScale, type Desk, type PartView } from "./desk.ts";
import { measure, MEASURE_WORDS } from "./filter.ts";
import { cellAt, layOut, listCells, NUMBERED, type Cell, type Grid } from "./grid.ts";
import { MEASURES, type Measure } from "./state.ts";

const GROUPS_MAX = 10, MARK = 3, LINE = 12; // pixels between numbers of rows

export class Strip implements PartView {
  private readonly canvas = el("canvas", { aria: { hidden: "true" } });
  private readonly tip = el("div", { class: "tip", hidden: true });
  private readonly said = el("p", { class: "unseen", role: "status" });
  private readonly stage = el("div", { class: "stage strip", tabIndex: 0, role: "group",
    aria: { label: "All ranks, coloured by memory. Arrow keys choose a rank; the table lists them." } });
  private readonly legend = el("div", { class: "legend" });
  private readonly bar = el("div", { class: "toolbar" });
  private readonly cells: Cell[];
  private readonly at = new Map<number, number>(); // the cell of a file
  private grid: Grid = layOut(1, 100);
  private width = 0;
  private shows: Set<number> | null = null; // files that a search found

  constructor(private readonly desk: Desk, host: HTMLElement) {
    this.cells = listCells(desk.job);
    this.cells.forEach((c, i) => { if (c.file !== null) this.at.set(c.file, i); });
    this.stage.append(this.canvas, this.tip);
    host.append(this.bar, this.stage, this.legend, this.said);
    this.stage.addEventListener("pointermove", (e) => this.hover(e));
    this.stage.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.stage.addEventListener("click", (e) => {
      const cell = this.cellOf(e);
      if (cell !== null && cell.file !== null) desk.store.set({ file: cell.file });
    });
    this.stage.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => { if (this.stage.clientWidth !== this.width) this.repaint(); }).observe(this.stage);
  }

  /* Pale all ranks but these. */
  show(files: number[] | null): void { this.shows = files === null ? null : new Set(files); }

  update(): void { this.repaint(); }

  repaint(): void {
    this.width = this.stage.clientWidth;
    if (this.width < 20) return;
    this.grid = layOut(this.cells.length, this.width);
    this.stage.style.height = `${this.grid.height + 8}px`;
    this.paintBar();
    this.paint();
  }

  /* Return the ends of the scale. Ranks that differ little shall not look as if they differed much. */
  private range(by: Measure): [number, number] {
    let low = Infinity, high = 0;
    for (const file of this.desk.job.used) {
      const v = measure(this.desk.job.figures(file), by);
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
    return [Math.min(low, high / 2), high];
  }

  private text(v: number): string { return this.desk.state.by === "retries" ? count(v) : bytes(v); }

  private paintBar(): void {
    const { desk } = this;
    clear(this.bar, choice("Colour", MEASURES.map((m): [string, string] => [m, MEASURE_WORDS[m]]), desk.state.by,
      (v) => desk.store.set({ by: v as Measure })));
  }

  private paint(): void {
    const { grid, desk } = this, { job, state } = desk, pen = penOf(this.canvas, this.width, grid.height + 8);
    const [low, high] = this.range(state.by), gap = grid.size >= 6 ? 1 : 0, band = grid.pitch - grid.size, heat = heatScale();
    pen.translate(grid.left, 4);
    this.cells.forEach((cell, i) => {
      const x = (i % grid.columns) * grid.size, y = Math.floor(i / grid.columns) * grid.pitch, side = grid.size - gap;
      if (cell.file === null) {
        pen.strokeStyle = themeColour("grid");
        pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
        this.number(pen, cell, x, y, themeColour("faint"));
        return;
      }
      const v = measure(job.figures(cell.file), state.by);
      pen.globalAlpha = this.shows === null || this.shows.has(cell.file) ? 1 : 0.2;
      const colour = heat(high > low ? (v - low) / (high - low) : 0.3);
      pen.fillStyle = colour;
      pen.fillRect(x, y, side, side);
      this.number(pen, cell, x, y, isLight(colour) ? "#000000" : "#ffffff");
      pen.fillStyle = groupColour(job.fleet.files[cell.file].group);
      pen.fillRect(x, y + side, grid.size, Math.max(1, band - 1));
    });
    pen.globalAlpha = 1;
    this.numberRows(pen);
    for (const [i, cell] of this.cells.entries())
      if (cell.file !== null && job.fleet.files[cell.file].differs) this.mark(pen, i, job.figures(cell.file).oom);
    if (state.file !== null) this.frame(pen, this.at.get(state.file));
    this.paintLegend(low, high);
  }

  /* Write a rank into its cell, if it fits. */
  private number(pen: CanvasRenderingContext2D, cell: Cell, x: number, y: number, colour: string): void {
    const { size } = this.grid;
    pen.font = "11px system-ui, sans-serif";
    if (cell.rank === null || size < NUMBERED || pen.measureText(String(cell.rank)).width > size - 4) return;
    pen.fillStyle = colour;
    pen.fillText(String(cell.rank), x + 2, y + 11);
  }

  /* Write the first rank of rows whose cells have no numbers. */
  private numberRows(pen: CanvasRenderingContext2D): void {
    const { left, columns, pitch, size } = this.grid;
    pen.fillStyle = themeColour("faint");
    pen.textAlign = "right";
    let busy = -LINE;
    for (let i = 0; left > 0 && i < this.cells.length; i += columns) {
      const y = (i / columns) * pitch;
      if (y < busy + LINE) continue;
      pen.fillText(String(this.cells[i].rank ?? ""), -6, y + size / 2 + 4);
      busy = y;
    }
    pen.textAlign = "left";
  }

  /* Mark a rank that differs by a ring, one that ran out of memory by a cross. */
  private mark(pen: CanvasRenderingContext2D, i: number, isOom: boolean): void {
    const { size, columns, pitch } = this.grid, r = Math.max(MARK, size * (size < NUMBERED ? 0.26 : 0.2));
    const middle = size < NUMBERED ? size / 2 : size - r - 4; // clear of the number
    const x = (i % columns) * size + middle - 0.5, y = Math.floor(i / columns) * pitch + middle - 0.5;
    for (const [colour, width] of [[themeColour("paper"), 5], [themeColour("alarm"), 2.4]] as const) {
      pen.strokeStyle = colour;
      pen.lineWidth = size < 8 ? width * 0.7 : width;
      pen.beginPath();
      if (isOom) {
        pen.moveTo(x - r, y - r);
        pen.lineTo(x + r, y + r);
        pen.moveTo(x + r, y - r);
        pen.lineTo(x - r, y + r);
      } else pen.arc(x, y, r, 0, 2 * Math.PI);
      pen.stroke();
    }
  }

  private frame(pen: CanvasRenderingContext2D, i: number | undefined): void {
    if (i === undefined) return;
    const { size, columns, pitch } = this.grid, x = (i % columns) * size, y = Math.floor(i / columns) * pitch;
    for (const [colour, out] of [[themeColour("paper"), 2.5], [themeColour("ink"), 1]] as const) {
      pen.strokeStyle = colour;
      pen.lineWidth = 2;
      pen.strokeRect(x - out, y - out, size - 1 + 2 * out, size - 1 + 2 * out);
    }
  }

  private paintLegend(low: number, high: number): void {
    const { desk } = this, { fleet } = desk.job, heat = heatScale();
    const scale = high > low && el("span", { class: "key" }, this.text(low), ...[0, 1, 2, 3, 4, 5, 6].map((i) => swatch(heat(i / 6))), this.text(high));
    const groups = fleet.groups.slice(0, GROUPS_MAX).map((g, i) => el("a", { class: "key", href: desk.store.link({ q: `group:${i}`, page: 0, part: "ranks" }),
      title: `List the ranks of group ${i}` }, swatch(groupColour(i)), `group ${i}: ${clean(desk.job.about.group_ranks[i] ?? "")}`,
      el("span", { class: "faint" }, ` (${count(g.files.length)})`)));
    const marks = desk.job.used.some((i) => fleet.files[i].differs);
    clear(this.legend, scale,
      marks && el("span", { class: "key" }, el("b", { class: "ring" }, "○"), " differs"),
      desk.job.used.some((i) => desk.job.figures(i).oom) && el("span", { class: "key" }, el("b", { class: "ring" }, "✕"), " ran out of memory"),
      this.cells.some((c) => c.file === null) && el("span", { class: "key" }, el("span", { class: "swatch hollow" }), "no file"),
      el("br"), ...groups,
      fleet.groups.length > GROUPS_MAX && el("span", { class: "key" }, swatch(groupColour(null)), `${count(fleet.groups.length - GROUPS_MAX)} more groups`));
  }

  private cellOf(e: MouseEvent): Cell | null {
    const box = this.stage.getBoundingClientRect();
    const i = cellAt(this.grid, this.cells.length, e.clientX - box.left, e.clientY - box.top - 4);
    return i === null ? null : this.cells[i];
  }

  private words(cell: Cell): string[] {
    const { job, state } = this.desk;
    if (cell.file === null) return [`rank ${cell.rank ?? "?"}`, "no file"];
    const { group } = job.fleet.files[cell.file], found = job.findingsOf.get(cell.file) ?? [];
    return [job.who(cell.file), `${this.text(measure(job.figures(cell.file), state.by))} ${MEASURE_WORDS[state.by].split(":")[0]}`,
      ...(group === null ? [] : [`group ${group}`]), ...found.slice(0, 3).map((i) => clean(job.about.findings[i] ?? ""))];
  }

  private hover(e: PointerEvent): void {
    const cell = this.cellOf(e), box = this.stage.getBoundingClientRect();
    if (cell === null) this.tip.hidden = true;
    else showTip(this.tip, e.clientX - box.left, e.clientY - box.top, this.words(cell), false);
  }

  private key(e: KeyboardEvent): void {
    const last = this.cells.length - 1, { file } = this.desk.state;
    const by: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.grid.columns, ArrowDown: this.grid.columns };
    const here = file === null ? undefined : this.at.get(file);
    let to = e.key === "Home" ? 0 : e.key === "End" ? last : by[e.key] === undefined ? NaN : here === undefined ? 0 : here + by[e.key];
    if (Number.isNaN(to)) return;
    e.preventDefault();
    e.stopPropagation();
    const way = by[e.key] ?? (e.key === "End" ? -1 : 1);
    while (to >= 0 && to <= last && this.cells[to].file === null) to += Math.sign(way);
    if (to < 0 || to > last) return;
    this.desk.store.set({ file: this.cells[to].file });
    this.said.textContent = this.words(this.cells[to]).join(", ");
  }
}

