// SPDX-License-Identifier: Apache-2.0
/* The timeline: what was allocated, when, over what was reserved. The wheel, the pointer, the keys. */

import type { App, View } from "./app.ts";
import { absence, button, choice, clear, el, showTip } from "./dom.ts";
import { bytes, clean, duration, plural } from "./format.ts";
import { Minimap } from "./minimap.ts";
import { NONE } from "./pack.ts";
import { categoryColour, makePainter, mix, rankSites, themeColour, type Painter } from "./palette.ts";
import { choosePicture, partAt, type Picture } from "./picture.ts";
import { LEFT, Plot, type Limit, type Pointer, type Scene } from "./plot.ts";
import { joinKnots, type Knots } from "./scale.ts";
import { parseSearch, type Search } from "./search.ts";
import { sidePanel, sideText, type Side } from "./side.ts";
import type { Stacks } from "./stacks.ts";
import { COLOURS, type Colour, type State } from "./state.ts";
import type { Tile } from "./tile.ts";
import { legend } from "./legend.ts";

const SPAN_MIN = 6; // moments: one event is then wide enough to see

export class Timeline implements View {
  private readonly plot = new Plot();
  private readonly mini = new Minimap((from, to) => this.show(from, to));
  private readonly stage = el("div", { class: "stage", tabIndex: 0, role: "group",
    aria: { label: "Timeline. Arrow keys move the cursor, plus and minus zoom." } });
  private readonly side = el("aside", { class: "side", tabIndex: 0,
    aria: { label: "What lies at the cursor" } });
  private readonly bar = el("div", { class: "toolbar" });
  private readonly tip = el("div", { class: "tip", hidden: true });
  private readonly words = el("div", {}); // stand in place of a missing picture
  private readonly legendBox = el("div", { class: "legend" });
  private readonly observer = new ResizeObserver(() => this.resize());
  private stacks: Stacks | null = null;
  private whole: Tile | null = null;
  private ranks = new Map<number, number>();
  private limit: Limit | null = null;
  private search: Search | null = null;
  private scene: Scene | null = null;
  private pointer: Pointer | null = null;
  private drag: { x: number; from: number; to: number; isMoved: boolean } | null = null;
  private frame = 0;
  private overFrame = 0;
  private hasRoom = false;

  constructor(private readonly app: App, host: HTMLElement) {
    this.stage.append(this.plot.under, this.plot.over, this.words, this.tip);
    host.append(el("div", { class: "timeline" },
      el("div", { class: "main" }, this.bar, this.mini.canvas, this.stage, this.legendBox),
      this.side));
    this.observer.observe(this.stage);
    this.listen();
  }

  finish(): void {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.overFrame);
  }

  update(now: State, before: State | null): void {
    if (before === null || before.file !== now.file || before.device !== now.device)
      void this.load();
    this.search = parseSearch(now.q, this.stacks, this.app.about.categories, this.app.device.lanes);
    this.paintBar();
    this.schedule();
  }

  private async load(): Promise<void> {
    const { app } = this, key = app.key;
    this.whole = this.limit = this.stacks = null;
    void limitOf(app).then((limit) => {
      if (key !== app.key) return;
      this.limit = limit;
      this.schedule();
    });
    void app.wholeTile(app.key).then((tile) => {
      if (key !== app.key) return;
      this.whole = tile;
      this.schedule();
    });
    const [stacks, whole] = await Promise.all([app.stacks().catch(() => null), app.wholeTile(app.key)]);
    if (key !== app.key) return;
    this.stacks = stacks;
    this.whole = whole;
    this.ranks = rankSites(this.whole, this.stacks);
    this.search = parseSearch(app.state.q, this.stacks, app.about.categories, app.device.lanes);
    this.schedule();
  }

  private resize(): void {
    if (matchMedia("print").matches) return; // the sheet shrinks the canvas, and no frame follows to paint a new one
    this.hasRoom = this.plot.resize(this.stage.clientWidth, this.stage.clientHeight);
    this.schedule();
  }

  private schedule(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  private painter(): Painter {
    const { app } = this;
    return makePainter(app.state.colour, app.about.categories, this.stacks, this.ranks,
      app.device.moments);
  }

  /* Return the bytes at the upper edge: over all that is drawn, or over what is visible. */
  private height(picture: Picture): number {
    const { peaks } = this.app.device;
    let top = Math.max(peaks.reserved.bytes, peaks.active.bytes, 1);
    if (this.app.state.fit) {
      top = 1;
      for (const { tile, from, to } of picture.parts)
        for (let c = 0; c < tile.columns; c++)
          if (tile.end[c] > from && tile.begin[c] < to)
            top = Math.max(top, tile.active[c], tile.reserved[c]);
    } else if (this.limit !== null && this.limit.bytes < 1.5 * top) top = Math.max(top, this.limit.bytes);
    return top * 1.04;
  }

  private knots(picture: Picture): Knots | null {
    if (this.app.state.axis !== "time" || this.app.device.first_time_us === null) return null;
    return joinKnots(this.whole, picture.parts.map((p) => p.tile));
  }

  private paint(): void {
    const { app, search } = this, [from, to] = app.range;
    if (!this.hasRoom) return;
    const picture = choosePicture(app, app.key, from, to,
      (this.stage.clientWidth - LEFT) * Math.min(2, devicePixelRatio || 1), () => this.schedule());
    const painter = this.painter(), top = this.height(picture), knots = this.knots(picture);
    this.scene = {
      device: app.device, picture, from, to, knots, top, limit: this.limit,
      a: app.a, b: app.b, pick: app.state.pick, isEventAxis: knots === null,
      small: app.about.categories.map((name) => mix(app.state.colour !== "category" ? themeColour("small")
        : categoryColour(name), themeColour("paper"), search === null ? 0.62 : 0.16)),
      look: {
        colour: (tile, row) => painter.colour(tile.allocs, row),
        isDim: (tile, row) => search !== null && !search.matches(tile.allocs, row),
      },
    };
    if (this.paintAbsence(picture)) return;
    this.plot.paint(this.scene);
    this.mini.paint(this.whole, app.device.moments, this.height({ ...picture, parts: [] }),
      this.knots({ ...picture, parts: [] }), from, to, this.stage.clientWidth);
    this.paintOver();
    this.paintSide();
    clear(this.legendBox, legend(app, this.stacks, this.ranks, picture, this.scene.small,
      this.plot.lastPaint));
    document.body.dataset.painted = picture.isComing ? "coming" : this.plot.lastPaint.toFixed(1);
  }

  /* Write why there is no picture. Returns whether there is none. */
  private paintAbsence(picture: Picture): boolean {
    const { app } = this, isSilent = app.device.events === 0;
    const isAbsent = isSilent || (picture.parts.length === 0 && !picture.isComing);
    for (const node of [this.plot.under, this.plot.over, this.mini.canvas, this.bar, this.legendBox]) node.hidden = isAbsent;
    clear(this.words, isAbsent && absence(isSilent ? "No events were recorded" : "The timeline was left out of this report",
      isSilent ? "This file holds the device's memory at one moment, without what led to it. Trust tells how to record events."
        : "drystone view without -o shows the whole file.",
      app.link("Memory map", { view: "map" }, "button"), app.link("Owners", { view: "owners" }, "button"),
      app.link("Trust", { view: "trust" }, "button")));
    if (!isAbsent) return false;
    this.paintSide();
    document.body.dataset.painted = "none";
    return true;
  }

  private sideOf(scene: Scene): Side {
    return { app: this.app, parts: scene.picture.parts, stacks: this.stacks, timeOf: (m) => this.timeOf(m),
      arrived: () => this.schedule() };
  }

  private paintSide(): void {
    if (this.scene === null) return;
    const active = document.activeElement, top = this.side.scrollTop;
    if (active !== this.side && this.side.contains(active)) (active as HTMLElement).blur();
    sidePanel(this.sideOf(this.scene), this.side, this.search);
    this.side.scrollTop = top;
  }

  private paintOver(): void {
    if (this.scene === null || this.plot.over.hidden) return;
    const hit = this.pointer === null || this.drag?.isMoved ? null : this.plot.hit(this.pointer);
    const hover = hit === null || hit.run < 0 ? null
      : { tile: hit.part.tile, row: hit.part.tile.runAlloc[hit.run] };
    this.plot.paintOver(this.scene, hover, this.pointer);
    this.paintTip(hit);
  }

  private paintTip(hit: ReturnType<Plot["hit"]>): void {
    const p = this.pointer;
    this.tip.hidden = p === null || !this.plot.isInside(p);
    if (p === null || this.tip.hidden) return;
    const moment = Math.floor(this.plot.momentAt(p.x));
    const lines: string[] = [];
    if (hit !== null && hit.run >= 0) {
      const { allocs } = hit.part.tile, row = hit.part.tile.runAlloc[hit.run];
      const end = allocs.end[row], life = (end === NONE ? this.app.device.moments : end) - allocs.begin[row];
      lines.push(this.stacks?.siteTitle(allocs.stack[row], allocs.flags[row]) ?? "",
        `${bytes(allocs.size[row])}, ${this.app.about.categories[allocs.category[row]] ?? ""}`,
        end === NONE ? "never freed in the recording" : `lives for ${plural(life, "event")}`);
    } else if (hit !== null) {
      const { tile } = hit.part, c = tile.columnOf(moment);
      lines.push(`${plural(tile.smallCount[c], "small allocation")}, ${bytes(tile.small[c])} in sum`);
      this.app.about.categories.forEach((name, k) => {
        const n = k < tile.categories ? tile.smallBy[c * tile.categories + k] : 0;
        if (n > 0) lines.push(`${name} ${bytes(n)}`);
      });
    }
    const time = this.timeOf(moment);
    lines.push(`${this.app.momentName(moment)}${time === null ? "" : `, +${duration(time)}`}`);
    showTip(this.tip, p.x, p.y, lines.map((text) => clean(text)));
  }

  /* Return the microseconds from the first event to `moment`, as well as the tiles tell. */
  private timeOf(moment: number): number | null {
    if (this.app.device.first_time_us === null) return null;
    const part = partAt(this.scene?.picture.parts ?? [], moment);
    const tile = part?.tile ?? this.whole;
    return tile === null || tile.columns === 0 ? null : tile.time[tile.columnOf(moment)];
  }

  // --- what a person does ---

  private show(from: number, to: number): void {
    const whole = this.app.device.moments, span = Math.min(whole, Math.max(SPAN_MIN, to - from));
    let begin = from;
    if (to - from < SPAN_MIN) begin = (from + to - span) / 2;
    begin = Math.max(0, Math.min(whole - span, begin));
    const isWhole = span >= whole;
    this.app.store.set({ from: isWhole ? null : begin, to: isWhole ? null : begin + span });
  }

  /* Zoom by `factor` about the pixel `x` of the plot. */
  private zoom(factor: number, x: number): void {
    const { scale } = this.plot, w = scale.span.width;
    this.show(scale.moment(x - x * factor), scale.moment(x + (w - x) * factor));
  }

  private pan(pixels: number): void {
    const { scale } = this.plot, { from, to, width } = scale.span;
    if (this.app.state.axis === "event") {
      const by = (pixels / width) * (to - from);
      const fit = Math.max(-from, Math.min(this.app.device.moments - to, by));
      this.show(from + fit, to + fit);
    } else this.show(scale.moment(pixels), scale.moment(width + pixels));
  }

  private listen(): void {
    const { stage } = this;
    stage.addEventListener("wheel", (e) => {
      e.preventDefault();
      const unit = e.deltaMode === 1 ? 30 : 1;
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
        this.pan((Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : e.deltaY) * unit);
      else this.zoom(Math.exp(Math.max(-400, Math.min(400, e.deltaY * unit)) * 0.0022),
                     this.inPlot(e).x - LEFT);
    }, { passive: false });
    stage.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      const [from, to] = this.app.range;
      this.drag = { x: e.clientX, from, to, isMoved: false };
      stage.setPointerCapture(e.pointerId);
    });
    stage.addEventListener("pointermove", (e) => this.moved(e));
    stage.addEventListener("pointerup", (e) => {
      if (this.drag !== null && !this.drag.isMoved) this.click(this.inPlot(e), e.shiftKey);
      this.drag = null;
    });
    stage.addEventListener("pointercancel", () => { this.drag = null; }); // the page scrolls instead
    stage.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.paintOver();
    });
    stage.addEventListener("dblclick", () => this.zoomToPick());
  }

  private inPlot(e: MouseEvent): Pointer {
    const box = this.stage.getBoundingClientRect();
    return { x: e.clientX - box.left, y: e.clientY - box.top };
  }

  private moved(e: PointerEvent): void {
    this.pointer = this.inPlot(e);
    const d = this.drag;
    if (d !== null && (d.isMoved || Math.abs(e.clientX - d.x) > 4)) {
      const by = d.x - e.clientX;
      d.isMoved = true;
      d.x = e.clientX;
      this.pan(by);
    }
    if (this.overFrame !== 0) return;
    this.overFrame = requestAnimationFrame(() => {
      this.overFrame = 0;
      this.paintOver();
    });
  }

  private click(p: Pointer, isSecond: boolean): void {
    if (!this.plot.isInside(p)) return;
    const moment = Math.max(0, Math.min(this.app.last, Math.floor(this.plot.momentAt(p.x))));
    if (isSecond) {
      this.app.store.set({ b: moment });
      return;
    }
    const hit = this.plot.hit(p);
    const pick = hit === null || hit.run < 0 ? null
      : hit.part.tile.allocs.id[hit.part.tile.runAlloc[hit.run]];
    this.app.store.set({ a: moment, pick });
  }

  private zoomToPick(): void {
    const { pick } = this.app.state;
    for (const { tile } of pick === null ? [] : this.scene?.picture.parts ?? []) {
      const row = tile.allocs.id.indexOf(pick as number);
      if (row < 0) continue;
      const begin = tile.allocs.begin[row];
      const end = tile.allocs.end[row] === NONE ? this.app.device.moments : tile.allocs.end[row];
      const margin = Math.max(2, (end - begin) * 0.15);
      this.show(begin - margin, end + margin);
      return;
    }
  }

  /* Move the cursor by `by` moments, and the picture with it if it would leave. */
  private step(by: number): void {
    const a = Math.max(0, Math.min(this.app.last, this.app.a + by)), [from, to] = this.app.range;
    this.app.store.set({ a, ...this.around(a, from, to) });
  }

  private around(a: number, from: number, to: number): Partial<State> {
    if (a >= from && a < to) return {};
    const span = to - from, begin = Math.max(0, Math.min(this.app.device.moments - span, a - span / 2));
    return { from: begin, to: begin + span };
  }

  /* Pick the neighbour of the picked allocation at the cursor, above or below. */
  private stepPick(up: boolean): void {
    const part = partAt(this.scene?.picture.parts ?? [], this.app.a);
    if (part === null) return;
    const { tile } = part, column = tile.columnOf(this.app.a);
    const runs: number[] = [];
    for (let i = 0; i < tile.runs; i++)
      if (tile.runFrom[i] <= column && column < tile.runTo[i]) runs.push(i);
    runs.sort((x, y) => tile.runBottom[x] - tile.runBottom[y]);
    const ids = runs.map((i) => tile.allocs.id[tile.runAlloc[i]]);
    const at = ids.indexOf(this.app.state.pick ?? -1);
    const next = at < 0 ? (up ? 0 : ids.length - 1) : at + (up ? 1 : -1);
    if (next >= 0 && next < ids.length) this.app.store.set({ pick: ids[next] });
  }

  key(e: KeyboardEvent): boolean {
    const x = this.plot.scale.x(this.app.a), w = this.plot.plotWidth;
    const about = x >= 0 && x <= w ? x : w / 2;
    const [from, to] = this.app.range, big = Math.max(1, Math.round((to - from) / 20));
    const size = e.shiftKey ? big : 1;
    const acts: Record<string, () => void> = {
      ArrowLeft: () => this.step(-size), ArrowRight: () => this.step(size),
      ArrowUp: () => this.stepPick(true), ArrowDown: () => this.stepPick(false),
      "+": () => this.zoom(0.5, about), "=": () => this.zoom(0.5, about),
      "-": () => this.zoom(2, about), "_": () => this.zoom(2, about),
      "0": () => this.show(0, this.app.device.moments),
      "[": () => this.pan(-w * 0.8), "]": () => this.pan(w * 0.8),
      PageUp: () => this.pan(-w * 0.8), PageDown: () => this.pan(w * 0.8),
      Home: () => this.step(-this.app.last), End: () => this.step(this.app.last),
      Enter: () => this.zoomToPick(),
      e: () => this.app.store.set({ axis: this.app.state.axis === "event" ? "time" : "event" }),
      y: () => this.app.store.set({ fit: !this.app.state.fit }),
      k: () => this.app.store.set({
        colour: COLOURS[(COLOURS.indexOf(this.app.state.colour) + 1) % COLOURS.length] }),
    };
    const act = acts[e.key];
    act?.();
    return act !== undefined;
  }

  copy(): string {
    return this.scene === null ? "" : sideText(this.sideOf(this.scene));
  }

  private paintBar(): void {
    const { app } = this, s = app.state;
    const key = JSON.stringify([s.axis, s.colour, s.fit, s.b === null, app.key]);
    if (this.bar.dataset.key === key) return;
    this.bar.dataset.key = key;
    const set = (change: Partial<State>) => app.store.set(change);
    const places = app.device.places.filter((p) => p.name !== "end");
    clear(this.bar,
      choice("Axis", [["event", "events"], ["time", "time"]], s.axis,
        (v) => set({ axis: v as State["axis"] })),
      choice("Colour", [["category", "category"], ["owner", "line of code"], ["age", "length of life"]],
        s.colour, (v) => set({ colour: v as Colour })),
      choice("Height", [["all", "whole record"], ["fit", "what is visible"]], s.fit ? "fit" : "all",
        (v) => set({ fit: v === "fit" })),
      el("span", { class: "gap" }),
      ...places.map((p) => button(p.name === "oom" ? "Failure" : p.name === "peak" ? "Peak" : clean(p.name),
        `Go there: ${this.app.momentName(p.moment)}`, () => set({ a: p.moment, pick: null, ...this.around(p.moment, ...app.range) }))),
      button("−", "Zoom out (key -)", () => this.zoom(2, this.plot.plotWidth / 2)),
      button("+", "Zoom in (key +)", () => this.zoom(0.5, this.plot.plotWidth / 2)),
      button("All", "Show the whole record (key 0)", () => this.show(0, app.device.moments)),
      s.b === null ? button("Set B", "Put the second cursor where A is (key b)", () => set({ b: app.a }))
        : button("Drop B", "Take the second cursor away (key x)", () => set({ b: null })));
  }
}

/*
 * Return what PyTorch could have had of the device: what the verdict says of its failure, else what this device's own
 * record proves.
 */
async function limitOf(app: App): Promise<Limit | null> {
  type Explain = { device: number; oom: { budget_bytes: number | null } | null };
  const { device } = app, known = device.limit ?? null;
  const explain = await app.json<Explain>(`${app.fileIndex}/explain`).catch(() => null);
  const budget = explain !== null && explain.device === device.device ? explain.oom?.budget_bytes ?? null : null;
  if (budget !== null) return { bytes: budget, text: `PyTorch could have had ${bytes(budget)}` };
  if (known === null) return null;
  return { bytes: known.low, text: known.high <= known.low + 1 ? `PyTorch could have had ${bytes(known.low)}`
    : `PyTorch had room for ${bytes(known.low)}, not for ${bytes(known.high)}` };
}
