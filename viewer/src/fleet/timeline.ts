// SPDX-License-Identifier: Apache-2.0
/* The job's timeline: the least, the median and the most of the ranks' active peaks, step by step. */

import { el, penOf, showTip, stroke, table } from "../dom.ts";
import { bytes, bytesShort, count, plural } from "../format.ts";
import { themeColour } from "../palette.ts";
import { ticks } from "../scale.ts";
import type { Desk, PartView } from "./desk.ts";
import type { Step } from "./job.ts";
import type { State } from "./state.ts";

const HEIGHT = 250, LEFT = 74, RIGHT = 12, TOP = 12, BOTTOM = 26, ROWS_MAX = 400;

interface Line { name: string; colour: string; dash: number[]; width: number; at: (i: number) => number | null }

/* Return the room that the first failure proves: what was reserved and what its device had free. */
export function roomOf(desk: Desk): { bytes: number; file: number } | null {
  const f = desk.job.fleet.first_failure;
  if (f === null || f.device_free_bytes === 0) return null;
  return { file: f.file, bytes: desk.job.figures(f.file).reserved + f.device_free_bytes };
}

export class Timeline implements PartView {
  private readonly steps: Step[];
  private readonly canvas = el("canvas", { aria: { hidden: "true" } });
  private readonly over = el("canvas", { class: "over-plot", aria: { hidden: "true" } });
  private readonly tip = el("div", { class: "tip", hidden: true });
  private readonly said = el("p", { class: "unseen", role: "status" });
  private readonly keys = el("p", { class: "legend" });
  private readonly stage = el("div", { class: "stage steps", tabIndex: 0, role: "group",
    aria: { label: "Peaks over the steps. Arrow keys move the cursor, Enter shows the rank that holds most." } });
  private peaks: { file: number; values: number[] } | null = null;
  private width = 0;
  private readonly top: number; // bytes at the upper edge

  constructor(private readonly desk: Desk, host: HTMLElement) {
    const { timeline } = desk.job.fleet;
    this.steps = timeline.steps;
    const most = this.steps.reduce((n, s) => Math.max(n, s.max), 1), room = roomOf(desk);
    this.top = 1.06 * (room !== null && room.bytes < 2 * most ? Math.max(most, room.bytes) : most);
    host.className = "card";
    host.append(el("h3", {}, "Active peaks of the steps, over ranks"));
    if (this.steps.length === 0) {
      host.append(el("p", { class: "faint" }, "No two ranks have steps that could be put together."));
      return;
    }
    this.stage.append(this.canvas, this.over, this.tip);
    host.append(el("p", { class: "faint" }, `Aligned at the ${timeline.aligned === "last" ? "last step, which is 0" : "first step"}; ${plural(this.steps.length, "step")}.`),
      this.stage, this.keys, this.said, this.asTable());
    this.stage.addEventListener("pointermove", (e) => this.hover(e));
    this.stage.addEventListener("pointerleave", () => { this.tip.hidden = true; this.paintOver(); });
    this.stage.addEventListener("click", (e) => this.press(e));
    this.stage.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => { if (this.stage.clientWidth !== this.width) this.repaint(); }).observe(this.stage);
  }

  update(now: State, before: State | null): void {
    if (this.steps.length === 0) return;
    if (now.file !== before?.file || before === null) void this.load(now.file);
    if (before !== null && now.step !== before.step) this.paintOver();
  }

  private async load(file: number | null): Promise<void> {
    const values = file === null ? null : await this.desk.job.peaks(file).catch(() => null);
    if (file !== this.desk.state.file) return;
    this.peaks = file === null || values === null || values.length < 2 ? null : { file, values };
    this.repaint();
  }

  repaint(): void {
    this.width = this.stage.clientWidth;
    if (this.steps.length === 0 || this.width < 60) return;
    this.paint();
    this.paintOver();
  }

  private ownPeak(step: number): number | null {
    if (this.peaks === null) return null;
    const i = step - this.peaks.values[0] + 1;
    return i >= 1 && i < this.peaks.values.length ? this.peaks.values[i] : null;
  }

  private lines(): Line[] {
    const lines: Line[] = [
      { name: "most", colour: themeColour("reserved"), dash: [], width: 1.8, at: (i) => this.steps[i].max },
      { name: "median", colour: themeColour("accent"), dash: [], width: 2.4, at: (i) => this.steps[i].median },
      { name: "least", colour: themeColour("edge"), dash: [], width: 1.2, at: (i) => this.steps[i].min }];
    if (this.peaks !== null)
      lines.push({ name: this.desk.job.who(this.peaks.file), colour: themeColour("warn"), dash: [7, 3], width: 2.2,
        at: (i) => this.ownPeak(this.steps[i].step) });
    return lines;
  }

  private x(i: number): number {
    const last = Math.max(1, this.steps.length - 1);
    return this.steps.length === 1 ? (LEFT + this.width - RIGHT) / 2 : LEFT + 6 + (i / last) * (this.width - LEFT - RIGHT - 12);
  }

  private y(v: number): number { return TOP + (HEIGHT - TOP - BOTTOM) * (1 - v / this.top); }

  private paint(): void {
    const { steps, width, top } = this, pen = penOf(this.canvas, width, HEIGHT), y = (v: number) => this.y(v);
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const v of ticks(0, top, 5, true)) {
      pen.fillStyle = themeColour("faint");
      pen.fillText(bytesShort(v), LEFT - 8, y(v));
      pen.fillStyle = themeColour("grid");
      pen.fillRect(LEFT, Math.round(y(v)), width - LEFT - RIGHT, 1);
    }
    pen.textAlign = "center";
    pen.fillStyle = themeColour("faint");
    for (const i of ticks(0, steps.length - 1, Math.max(1, Math.floor(width / 90))))
      if (Number.isInteger(i)) pen.fillText(String(steps[i].step), this.x(i), HEIGHT - 11);
    pen.fillStyle = themeColour("shade");
    pen.beginPath();
    steps.forEach((s, i) => pen.lineTo(this.x(i), y(s.max)));
    for (let i = steps.length - 1; i >= 0; i--) pen.lineTo(this.x(i), y(steps[i].min));
    pen.fill();
    const lines = this.lines();
    for (const line of lines) this.draw(pen, line, y);
    this.drawRoom(pen, y, top);
    this.legend(lines);
  }

  private draw(pen: CanvasRenderingContext2D, line: Line, y: (v: number) => number): void {
    pen.strokeStyle = pen.fillStyle = line.colour;
    pen.lineWidth = line.width;
    pen.setLineDash(line.dash);
    pen.beginPath();
    let isOn = false;
    for (let i = 0; i < this.steps.length; i++) {
      const v = line.at(i);
      if (v === null) isOn = false;
      else if (isOn) pen.lineTo(this.x(i), y(v));
      else { pen.moveTo(this.x(i), y(v)); isOn = true; }
      if (v !== null && this.steps.length <= 60) pen.fillRect(this.x(i) - 2, y(v) - 2, 4, 4);
    }
    pen.stroke();
    pen.setLineDash([]);
  }

  private drawRoom(pen: CanvasRenderingContext2D, y: (v: number) => number, top: number): void {
    const room = roomOf(this.desk);
    if (room === null || room.bytes > top) return;
    pen.strokeStyle = themeColour("alarm");
    pen.lineWidth = 1.5;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    pen.moveTo(LEFT, y(room.bytes));
    pen.lineTo(this.width - RIGHT, y(room.bytes));
    pen.stroke();
    pen.setLineDash([]);
  }

  private legend(lines: Line[]): void {
    const room = roomOf(this.desk), { job } = this.desk;
    this.keys.replaceChildren(...lines.map((l) => el("span", { class: "key" },
      stroke(l.colour, l.dash), l.name)));
    if (room !== null)
      this.keys.append(el("span", { class: "key wraps" }, stroke(themeColour("alarm"), [3, 3]),
        `room of ${job.who(room.file)} when it failed: ${bytes(room.bytes)} reserved and free`));
  }

  private indexAt(x: number): number {
    const n = this.steps.length, part = (x - LEFT - 6) / Math.max(1, this.width - LEFT - RIGHT - 12);
    return Math.max(0, Math.min(n - 1, Math.round(part * (n - 1))));
  }

  private words(i: number): string[] {
    const s = this.steps[i], { job } = this.desk, own = this.ownPeak(s.step);
    return [`step ${s.step}, ${plural(s.ranks, "rank")}`, `most ${bytes(s.max)}: ${job.who(s.max_file)}`, `median ${bytes(s.median)}`,
      `least ${bytes(s.min)}`, ...(own !== null && this.peaks !== null ? [`${job.who(this.peaks.file)} ${bytes(own)}`] : [])];
  }

  private hover(e: PointerEvent): void {
    const box = this.stage.getBoundingClientRect(), x = e.clientX - box.left, i = this.indexAt(x);
    showTip(this.tip, x, e.clientY - box.top, this.words(i));
    this.paintOver(i);
  }

  private press(e: MouseEvent): void {
    const i = this.indexAt(e.clientX - this.stage.getBoundingClientRect().left);
    this.desk.store.set({ step: i, file: this.steps[i].max_file });
  }

  private key(e: KeyboardEvent): void {
    const last = this.steps.length - 1, at = Math.min(this.desk.state.step ?? 0, last);
    const to: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
    if (e.key === "Enter") this.desk.store.set({ file: this.steps[at].max_file });
    else if (to[e.key] === undefined) return;
    else {
      const i = Math.max(0, Math.min(last, to[e.key]));
      this.desk.store.set({ step: i });
      this.said.textContent = this.words(i).join(", ");
    }
    e.preventDefault();
    e.stopPropagation();
  }

  private paintOver(hover: number | null = null): void {
    const pen = penOf(this.over, this.width, HEIGHT), { step } = this.desk.state;
    for (const [i, name] of [[step, "accent"], [hover, "mark"]] as const) {
      if (i === null || i >= this.steps.length) continue;
      pen.fillStyle = themeColour(name);
      pen.fillRect(Math.round(this.x(i)), TOP, 1, HEIGHT - TOP - BOTTOM);
      pen.beginPath();
      pen.arc(this.x(i), this.y(this.steps[i].max), 4, 0, 2 * Math.PI);
      pen.fill();
    }
  }

  private asTable(): HTMLElement {
    const shown = this.steps.slice(0, ROWS_MAX), { job } = this.desk;
    const fold = el("details", { class: "fold" }, el("summary", {}, "These steps as a table"));
    fold.addEventListener("toggle", () => {
      if (fold.open && fold.childElementCount === 1)
        fold.append(table("Peaks of the steps over ranks", [{ head: "Step", right: true }, { head: "Ranks", right: true },
          { head: "Least", right: true }, { head: "Median", right: true }, { head: "Most", right: true }, { head: "Held by" }],
          shown.map((s) => [String(s.step), count(s.ranks), bytes(s.min), bytes(s.median), bytes(s.max), job.who(s.max_file)])),
          this.steps.length > ROWS_MAX ? el("p", { class: "faint" }, `${count(this.steps.length - ROWS_MAX)} more steps are not listed.`) : "");
    });
    return fold;
  }
}
