// SPDX-License-Identifier: Apache-2.0
/* The memory map: every segment and block at one moment, holes hatched, pinners outlined. */

import { oomMoment } from "./about.ts";
import type { App, View } from "./app.ts";
import { allocDetails, allocText } from "./details.ts";
import { absence, button, choice, clear, el, showTip, table, type Child } from "./dom.ts";
import { bytes, bytesShort, clean, count, percent, plural } from "./format.ts";
import { colourKeys, findUsed } from "./legend.ts";
import { chooseRowBytes, groupName, groupSegments, HEAD, layOut, type Group, type Layout,
  type Piece } from "./map_layout.ts";
import { NONE } from "./pack.ts";
import { makePainter, mix, rankSites, themeColour, type Painter } from "./palette.ts";
import { parseSearch, type Search } from "./search.ts";
import type { Stacks } from "./stacks.ts";
import type { Colour, State } from "./state.ts";
import { EXPANDABLE, type MemoryMap } from "./tile.ts";

const PINS = 12, BETWEEN = 4; // pixels between rows

function hatch(pen: CanvasRenderingContext2D, ground: string, line: string): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const p = tile.getContext("2d") as CanvasRenderingContext2D;
  p.fillStyle = ground;
  p.fillRect(0, 0, 6, 6);
  p.strokeStyle = line;
  for (const at of [-6, 0, 6]) {
    p.moveTo(at - 1, 7);
    p.lineTo(at + 7, -1);
  }
  p.stroke();
  return pen.createPattern(tile, "repeat") ?? ground;
}

/* Write `text`, or `short` where that is wider than `width`. */
function fillFitting(pen: CanvasRenderingContext2D, width: number, y: number, text: string, short: string): void {
  pen.fillText(pen.measureText(text).width > width ? short : text, 0, y);
}

export class MapView implements View {
  private readonly bar = el("div", { class: "toolbar" });
  private readonly rowText = el("span", { class: "faint" });
  private readonly canvas = el("canvas", {});
  private readonly spacer = el("div", { class: "spacer" });
  private readonly scroller = el("div", { class: "scroller", tabIndex: 0, role: "group",
    aria: { label: "Memory map. Comma and period step through moments." } }, this.spacer, this.canvas);
  private readonly tip = el("div", { class: "tip", hidden: true });
  private readonly words = el("div", {}); // stand in place of a missing map
  private readonly legendBox = el("div", { class: "legend" });
  private readonly side = el("aside", { class: "side", tabIndex: 0, aria: { label: "Segments and pinners" } });
  private readonly observer = new ResizeObserver(() => {
    if (this.scroller.clientWidth !== this.drawn.width || this.scroller.clientHeight !== this.drawn.height) this.arrange();
  });
  private drawn = { width: 0, height: 0 }; // the size of the picture that stands
  private map: MemoryMap | null = null;
  private groups: Group[] = [];
  private layout: Layout | null = null;
  private stacks: Stacks | null = null;
  private ranks = new Map<number, number>();
  private search: Search | null = null;
  private request: { moment: number; bytes: number } | null = null;
  private zoom = 0; // halvings of a row's bytes
  private blocksOf: Uint32Array[] = [];
  private pinned = new Set<number>();
  private asked = "";
  private timer = 0;

  constructor(private readonly app: App, host: HTMLElement) {
    const stage = el("div", { class: "mapstage" }, this.scroller, this.words, this.tip);
    host.append(el("div", { class: "timeline" },
      el("div", { class: "main" }, this.bar, stage, this.legendBox), this.side));
    this.observer.observe(this.scroller);
    this.scroller.addEventListener("scroll", () => this.paint());
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("click", (e) => this.click(e));
  }

  finish(): void {
    this.observer.disconnect();
    clearInterval(this.timer);
  }

  update(now: State): void {
    const moment = this.moment();
    const key = `${this.app.key}/${moment}/${String(now.colour === "owner")}`;
    this.search = parseSearch(now.q, this.stacks, this.app.about.categories, this.app.device.lanes);
    if (key === this.asked) {
      this.arrange();
      return;
    }
    this.asked = key;
    void this.load(key, moment);
  }

  /* Return the moment that is shown: the cursor, or the place of the report that is nearest. */
  private moment(): number { return this.app.a; }

  /* Ask for the map, and draw it. Only colours of lines need the whole record: its tile takes longest. */
  private async load(key: string, moment: number): Promise<void> {
    const { app } = this;
    let fault = "";
    const [stacks, whole, map] = await Promise.all([app.stacks().catch(() => null),
      app.state.colour === "owner" ? app.wholeTile(app.key).catch(() => null) : null,
      app.map(moment).catch((error: unknown) => {
        fault = String(error);
        return null;
      })]);
    if (key !== this.asked) return;
    this.stacks = stacks;
    this.ranks = rankSites(whole, stacks);
    this.map = map;
    this.search = parseSearch(app.state.q, this.stacks, app.about.categories, app.device.lanes);
    const first = oomMoment(app.device);
    this.request = app.device.ooms.length > 0 && first !== null
      ? { moment: first, bytes: app.device.ooms[0].bytes } : null;
    if (map !== null) this.prepare(map);
    this.showWords(map, moment, fault);
    this.arrange();
  }

  /* Write why there is nothing to draw, if so. */
  private showWords(map: MemoryMap | null, moment: number, fault: string): void {
    this.scroller.hidden = map === null || map.segments === 0;
    clear(this.words, map === null ? this.missing(moment, fault) : map.segments === 0 && absence("Nothing is reserved here",
      `The program had no memory of this device ${this.app.momentName(moment)}.`, ...this.placeLinks()));
    if (map === null) clear(this.side, el("p", { class: "faint" }, "There is no map of this moment."));
  }

  private placeLinks(): HTMLElement[] {
    return this.app.device.places.map((p) =>
      this.app.link(`${clean(p.name)}: ${this.app.momentName(p.moment)}`, { a: p.moment }, "button"));
  }

  private missing(moment: number, fault: string): HTMLElement {
    const { app } = this;
    if (fault !== "") return absence("This map cannot be read", fault);
    return absence("This map was left out", app.source.isReport
      ? `A report holds the map of a few moments, and ${app.momentName(moment)} is none of them. `
        + "drystone view without -o shows every moment." : "There is no map of this moment.", ...this.placeLinks());
  }

  private prepare(map: MemoryMap): void {
    this.groups = groupSegments(map);
    const lists: number[][] = Array.from({ length: map.segments }, () => []);
    for (let b = 0; b < map.blocks; b++) lists[map.seg[b]].push(b);
    this.blocksOf = lists.map((l) => Uint32Array.from(l));
    this.pinned = new Set();
    for (let i = 0; i < Math.min(PINS, map.pinSeg.length); i++)
      if (map.pinBytes[i] > map.pinUsed[i]) this.pinned.add(map.pinSeg[i]);
  }

  private arrange(): void {
    this.paintBar();
    this.paintLegend(this.map);
    const { map } = this, width = this.scroller.clientWidth - 24, height = this.scroller.clientHeight;
    if (map === null || width < 50 || height < 50) {
      this.layout = null;
      this.rowText.textContent = "";
      this.spacer.style.height = "0";
      this.paint();
      return;
    }
    const isFailure = this.request !== null && this.request.moment === this.moment();
    const request = isFailure ? (this.request?.bytes ?? 0) : 0;
    const rowBytes = chooseRowBytes(this.groups, map, width, height - (isFailure ? 110 : 20));
    this.layout = layOut(this.groups, map, width, Math.max(2 ** 16, rowBytes / 2 ** this.zoom),
      height - 12, request);
    this.rowText.textContent = `a row is ${bytesShort(this.layout.rowBytes)}`;
    this.spacer.style.height = `${Math.min(8e6, this.layout.height)}px`;
    this.paint();
    this.paintSide();
  }

  repaint(): void { this.paint(); }

  private painter(): Painter {
    const { app } = this;
    return makePainter(app.state.colour, app.about.categories, this.stacks, this.ranks,
      app.device.moments, this.moment());
  }

  private paint(): void {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const w = this.scroller.clientWidth, h = this.scroller.clientHeight;
    this.drawn = { width: w, height: h };
    this.canvas.width = w * ratio;
    this.canvas.height = h * ratio;
    this.canvas.style.width = `${w}px`;
    this.canvas.style.height = `${h}px`;
    const pen = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    pen.scale(ratio, ratio);
    pen.translate(12, 4 - this.scroller.scrollTop);
    pen.textBaseline = "middle";
    pen.font = "13px system-ui, sans-serif";
    const { layout, map } = this, top = this.scroller.scrollTop;
    document.body.dataset.painted = map === null ? "none" : "map";
    if (layout === null || map === null) return;
    const free = hatch(pen, themeColour("sunk"), themeColour("hatch"));
    const painter = this.painter();
    for (const g of layout.groups) {
      if (g.y > top + h || g.y + g.height < top) continue;
      pen.fillStyle = themeColour("ink");
      const sum = `${bytes(g.reserved)} in ${count(g.segments.length)}`;
      fillFitting(pen, layout.width, g.y + HEAD / 2, `${groupName(g, this.app.device.lanes)} — ${sum}`,
        `${g.isLarge ? "large" : "small"} segments: ${sum}`);
      for (const piece of g.pieces) {
        const y = g.y + HEAD + piece.row * layout.rowHeight;
        if (y > top + h || y + layout.rowHeight < top) continue;
        this.paintPiece(pen, map, piece, y, layout, free, painter);
      }
      this.paintRequest(pen, g, layout);
    }
  }

  private paintPiece(pen: CanvasRenderingContext2D, map: MemoryMap, piece: Piece, y: number,
                     layout: Layout, free: CanvasPattern | string, painter: Painter): void {
    const unit = layout.width / layout.rowBytes, h = layout.rowHeight - BETWEEN;
    const end = piece.x + piece.width;
    let pinFrom = -1, pinTo = -1;
    const outlinePin = () => {
      if (pinFrom >= 0) this.outline(pen, pinFrom, y, pinTo - pinFrom, h, false);
      pinFrom = -1;
    };
    pen.fillStyle = free;
    pen.fillRect(piece.x, y, piece.width, h);
    for (const b of this.blocksOf[piece.segment]) {
      const from = Math.max(piece.from, map.offset[b]);
      const to = Math.min(piece.to, map.offset[b] + map.blockSize[b]);
      if (to <= from || map.state[b] === 0) continue;
      const x = piece.x + (from - piece.from) * unit;
      const w = Math.min(Math.max(1, (to - from) * unit), Math.max(1, end - x));
      this.paintBlock(pen, map, b, x, y, w, h, painter);
      if (!this.pinned.has(piece.segment)) continue;
      if (pinFrom >= 0 && x - pinTo > 2) outlinePin();
      if (pinFrom < 0) pinFrom = x;
      pinTo = x + w;
    }
    outlinePin();
    pen.strokeStyle = themeColour("edge");
    pen.strokeRect(piece.x + 0.5, y + 0.5, Math.max(1, piece.width - 1), h - 1);
    this.paintPicked(pen, map, piece, y, unit, h);
  }

  private paintBlock(pen: CanvasRenderingContext2D, map: MemoryMap, b: number, x: number, y: number,
                     w: number, h: number, painter: Painter): void {
    pen.fillStyle = this.blockColour(map, b, painter);
    pen.fillRect(x, y, w, h);
    if (map.state[b] === 2) {
      pen.fillStyle = themeColour("ink");
      pen.fillRect(x, y + h - 4, w, 4);
    }
    if (w < 4) return;
    pen.fillStyle = themeColour("paper");
    pen.fillRect(x + w - 1, y, 1, h);
  }

  private paintPicked(pen: CanvasRenderingContext2D, map: MemoryMap, piece: Piece, y: number,
                      unit: number, h: number): void {
    for (const b of this.app.state.pick === null ? [] : this.blocksOf[piece.segment]) {
      const from = Math.max(piece.from, map.offset[b]);
      const to = Math.min(piece.to, map.offset[b] + map.blockSize[b]);
      if (to > from && this.isPicked(map, b))
        this.outline(pen, piece.x + (from - piece.from) * unit, y, (to - from) * unit, h, true);
    }
  }

  private outline(pen: CanvasRenderingContext2D, x: number, y: number, w: number, h: number,
                  isPick: boolean): void {
    const wide = Math.max(w, 4), size = isPick ? 3 : 2;
    pen.fillStyle = themeColour(isPick ? "ink" : "alarm");
    pen.fillRect(x, y, wide, size);
    pen.fillRect(x, y + h - size, wide, size);
    pen.fillRect(x, y, size, h);
    pen.fillRect(x + wide - size, y, size, h);
  }

  private isPicked(map: MemoryMap, block: number): boolean {
    const row = map.alloc[block];
    return row !== NONE && map.allocs.id[row] === this.app.state.pick;
  }

  private blockColour(map: MemoryMap, block: number, painter: Painter): string {
    const row = map.alloc[block];
    if (row === NONE) return themeColour("small");
    const hex = painter.colour(map.allocs, row);
    const isDim = this.search !== null && !this.search.matches(map.allocs, row);
    return isDim ? mix(hex, themeColour("paper"), 0.18) : hex;
  }

  /* Draw the request that failed under a group of large segments, to the same scale. */
  private paintRequest(pen: CanvasRenderingContext2D, g: Group, layout: Layout): void {
    if (this.request === null || this.request.moment !== this.moment() || !g.isLarge) return;
    const top = g.y + HEAD + g.rows * layout.rowHeight, h = layout.rowHeight - BETWEEN;
    const rows = this.request.bytes / layout.rowBytes;
    pen.fillStyle = themeColour("alarm");
    const asked = bytes(this.request.bytes), hole = bytes(this.largestHole(g));
    fillFitting(pen, layout.width, top + HEAD / 2, `The request that failed: ${asked}${
      rows > layout.requestRows ? `, ${rows.toFixed(1)} rows long` : ""}. The largest hole here has ${hole}.`,
      `Asked for ${asked}; largest hole ${hole}.`);
    pen.strokeStyle = themeColour("alarm");
    for (let row = 0; row < layout.requestRows; row++) {
      const w = layout.width * Math.min(1, rows - row), y = top + HEAD + row * layout.rowHeight;
      pen.globalAlpha = 0.3;
      pen.fillRect(0, y, w, h);
      pen.globalAlpha = 1;
      pen.strokeRect(0.5, y + 0.5, Math.max(1, w - 1), h - 1);
    }
  }

  private largestHole(g: Group): number {
    let most = 0;
    const map = this.map as MemoryMap;
    for (const s of g.segments)
      for (const b of this.blocksOf[s]) if (map.state[b] === 0) most = Math.max(most, map.blockSize[b]);
    return most;
  }

  /* Find the block under the pointer. */
  private find(e: MouseEvent): { piece: Piece; block: number } | null {
    const { layout, map } = this, box = this.canvas.getBoundingClientRect();
    if (layout === null || map === null) return null;
    const x = e.clientX - box.left - 12, y = e.clientY - box.top - 4 + this.scroller.scrollTop;
    const g = layout.groups.find((o) => y >= o.y + HEAD && y < o.y + HEAD + o.rows * layout.rowHeight);
    if (g === undefined) return null;
    const row = Math.floor((y - g.y - HEAD) / layout.rowHeight);
    const piece = g.pieces.find((p) => p.row === row && x >= p.x && x < p.x + p.width);
    if (piece === undefined) return null;
    const at = piece.from + ((x - piece.x) * layout.rowBytes) / layout.width;
    for (const b of this.blocksOf[piece.segment])
      if (at >= map.offset[b] && at < map.offset[b] + map.blockSize[b]) return { piece, block: b };
    return null;
  }

  private point(e: MouseEvent): void {
    const found = this.find(e), map = this.map;
    this.tip.hidden = found === null || map === null;
    if (found === null || map === null) return;
    const { block, piece } = found, row = map.alloc[block];
    const isAtOnce = row !== NONE && !map.allocs.waits(row, this.app.device.moments);
    const state = ["free", "in use", isAtOnce ? "freed by this event" : "freed, waits for a stream"
      ][map.state[block]] ?? "unknown";
    const lines = [`${bytes(map.blockSize[block])}, ${state}`];
    if (row !== NONE) lines.unshift(this.stacks?.siteTitle(map.allocs.stack[row], map.allocs.flags[row]) ?? "");
    lines.push(`in a segment of ${bytes(map.size[piece.segment])}${
      map.flags[piece.segment] & EXPANDABLE ? ", expandable" : ""}`);
    const box = this.scroller.getBoundingClientRect();
    showTip(this.tip, e.clientX - box.left, e.clientY - box.top, lines);
  }

  private click(e: MouseEvent): void {
    const found = this.find(e), map = this.map;
    if (found === null || map === null) return;
    const row = map.alloc[found.block];
    this.app.store.set({ pick: row === NONE ? null : map.allocs.id[row] });
  }

  /* Go to the next moment that the source has: any, or the next place of a report. */
  private step(by: number): void {
    const { app } = this;
    if (!app.source.isReport) {
      app.store.set({ a: Math.max(0, Math.min(app.last, app.a + by)) });
      return;
    }
    const places = app.device.places.map((p) => p.moment).sort((x, y) => x - y);
    const next = by > 0 ? places.find((m) => m > app.a)
      : places.reverse().find((m) => m < app.a);
    if (next !== undefined) app.store.set({ a: next });
  }

  private play(): void {
    if (this.timer !== 0) {
      clearInterval(this.timer);
      this.timer = 0;
    } else
      this.timer = setInterval(() => {
        if (this.app.a >= this.app.last) this.play(); else this.step(1);
      }, 120);
    this.bar.dataset.key = "";
    this.paintBar();
  }

  key(e: KeyboardEvent): boolean {
    const acts: Record<string, () => void> = {
      ",": () => this.step(-1), ".": () => this.step(1), ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      "+": () => this.widen(1), "=": () => this.widen(1), "-": () => this.widen(-1),
    };
    acts[e.key]?.();
    return acts[e.key] !== undefined;
  }

  private widen(by: number): void {
    this.zoom = Math.max(-3, Math.min(12, this.zoom + by));
    this.arrange();
  }

  private paintBar(): void {
    const { app } = this;
    const key = JSON.stringify([app.key, app.a, app.state.colour, this.timer !== 0, this.stacks === null, app.state.q]);
    if (this.bar.dataset.key === key) return;
    this.bar.dataset.key = key;
    clear(this.bar,
      choice("Colour", [["category", "category"], ["owner", "line of code"], ["age", "age"]], app.state.colour,
        (v) => app.store.set({ colour: v as Colour })),
      el("span", { class: "where" }, `The map ${app.momentName(app.a)}`),
      el("span", { class: "gap" }),
      ...app.device.places.map((p) => button(p.name === "oom" ? "Failure" : p.name === "peak" ? "Peak"
        : p.name === "end" ? "End" : clean(p.name), app.momentName(p.moment),
        () => app.store.set({ a: p.moment }), p.moment === app.a ? "on" : "")),
      button("◂", "The moment before (key ,)", () => this.step(-1)),
      button("▸", "The next moment (key .)", () => this.step(1)),
      app.source.isReport ? null
        : button(this.timer !== 0 ? "Stop" : "Play", "Step on by itself", () => this.play()),
      button("−", "Rows of more bytes (key -)", () => this.widen(-1)),
      button("+", "Rows of fewer bytes (key +)", () => this.widen(1)),
      this.rowText);
  }

  private paintLegend(map: MemoryMap | null): void {
    if (map === null) {
      clear(this.legendBox);
      return;
    }
    const used = findUsed(map.allocs, map.allocs.id.keys(), this.stacks, { categories: new Set(), sites: new Set() });
    const has = (state: number) => map.state.includes(state);
    const key = (isThere: boolean, kind: string, text: string) =>
      isThere && el("span", { class: "key" }, el("span", { class: `swatch ${kind}` }), text);
    clear(this.legendBox, el("div", {}, ...colourKeys(this.app, this.stacks, this.ranks, used),
      key(map.alloc.some((row, b) => row === NONE && map.state[b] !== 0), "small", "not recorded"),
      key(has(0), "hatched", "free"), key(this.pinned.size > 0, "pinner", "pins its segment"),
      key(has(2), "waits", "waits for a stream")));
  }

  private pinTable(map: MemoryMap): HTMLElement {
    const rows: Child[][] = [];
    for (let i = 0; i < Math.min(PINS, map.pinSeg.length); i++) {
      const used = this.blocksOf[map.pinSeg[i]].filter((b) => map.state[b] !== 0);
      const row = used.length > 0 ? map.alloc[used[0]] : NONE;
      const who = row === NONE || this.stacks === null ? "not recorded" : this.stacks.siteTitle(map.allocs.stack[row], map.allocs.flags[row]);
      rows.push([bytes(map.pinBytes[i]), bytes(map.pinUsed[i]),
        el("span", {}, row === NONE ? who : this.app.link(who, { pick: map.allocs.id[row] }),
          used.length > 1 ? el("span", { class: "faint" }, ` and ${count(used.length - 1)} more`) : "")]);
    }
    return el("section", {}, el("h3", {}, "What pins free memory"),
      rows.length === 0 ? el("p", { class: "faint" }, "Nothing: no segment is held by a block while most of it is free.")
        : table("Segments whose free bytes cannot go back, and the blocks in use there",
          [{ head: "Free", right: true }, { head: "Held by", right: true }, { head: "Line" }], rows),
      map.pinSeg.length > PINS && el("p", { class: "faint" }, `and ${plural(map.pinSeg.length - PINS, "more segment")}`));
  }

  private paintSide(): void {
    const map = this.map as MemoryMap, { app } = this;
    const picked = app.state.pick === null ? -1 : map.allocs.id.indexOf(app.state.pick);
    let reserved = 0, active = 0, hole = 0;
    for (const s of map.size) reserved += s;
    for (let b = 0; b < map.blocks; b++) {
      if (map.state[b] !== 0) active += map.blockSize[b];
      else hole = Math.max(hole, map.blockSize[b]);
    }
    const fact = (name: string, value: string) =>
      el("div", { class: "fact" }, el("dt", {}, name), el("dd", {}, value));
    clear(this.side,
      picked >= 0 && allocDetails(app, this.stacks, map.allocs, picked, () => null),
      el("section", {}, el("h3", {}, `The map ${app.momentName(app.a)}`), el("dl", {},
        fact("Segments", `${count(map.segments)}, ${bytes(reserved)}`),
        fact("In use", `${bytes(active)}, ${percent(active, reserved)}`),
        fact("Free", bytes(reserved - active)), fact("Largest hole", bytes(hole))),
      el("p", { class: "actions" }, app.link("Timeline", { view: "timeline" }, "button"),
        app.link("Owners", { view: "owners" }, "button"))),
      this.pinTable(map), this.groupTable());
  }

  private groupTable(): HTMLElement {
    return el("section", {}, el("h3", {}, "Pools and streams"),
      table("Groups of segments", [{ head: "Segments" }, { head: "Reserved", right: true },
        { head: "Largest hole", right: true }],
        this.groups.map((g) => [`${count(g.segments.length)} of ${groupName(g, this.app.device.lanes)}`,
          bytes(g.reserved), bytes(this.largestHole(g))])));
  }

  copy(): string {
    const { map, app } = this;
    if (map === null) return "";
    const picked = app.state.pick === null ? -1 : map.allocs.id.indexOf(app.state.pick);
    return [app.subject, `The map ${app.momentName(app.a)}`,
      ...this.groups.map((g) => `${bytes(g.reserved).padStart(12)} in ${count(g.segments.length)}, largest hole ${
        bytes(this.largestHole(g))}: ${groupName(g, app.device.lanes)}`),
      ...(picked < 0 ? [] : ["", allocText(app, this.stacks, map.allocs, picked)])].join("\n");
  }
}
