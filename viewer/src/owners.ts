// SPDX-License-Identifier: Apache-2.0
/*
 * Who holds the memory at the cursor, or grew between two cursors: a table that sorts, and an icicle of
 * frames. The table asks for the answer "owners"; if that was left out, the timeline's picture tells what is
 * large enough to be drawn, and the view says so.
 */

import type { App, View } from "./app.ts";
import { bar, button, clear, el, table, type Child } from "./dom.ts";
import { bytes, clean, count, difference, percent } from "./format.ts";
import { buildTree, icicle, type Tree } from "./icicle.ts";
import { NONE } from "./pack.ts";
import { aliveAt, sumBySite, type Part } from "./picture.ts";
import type { Stacks } from "./stacks.ts";
import type { State } from "./state.ts";

export interface OwnerRow { line: string; operation: string; bytes: number; count: number; largest: number }
interface Owners {
  total_bytes: number; others: number; others_bytes: number;
  owners: { line: string; operation: string | null; bytes: number; count: number; largest_bytes: number }[];
}
interface Holding { moment: number; rows: OwnerRow[]; total: number; isPicture: boolean; rest: number }

const SORTS: Record<string, (x: OwnerRow, y: OwnerRow) => number> = {
  bytes: (x, y) => y.bytes - x.bytes, count: (x, y) => y.count - x.count,
  largest: (x, y) => y.largest - x.largest, line: (x, y) => (x.line < y.line ? -1 : 1),
};

export class OwnersView implements View {
  private readonly bar = el("div", { class: "toolbar" });
  private readonly body = el("div", { class: "page" });
  private a: Holding | null = null;
  private b: Holding | null = null;
  private tree: Tree | null = null;
  private asked = "";
  private isInverted = false;

  constructor(private readonly app: App, host: HTMLElement) {
    host.append(this.bar, this.body);
    this.body.append(el("p", { class: "faint" }, "Reading who holds the memory…"));
  }

  update(now: State): void {
    const key = `${this.app.key}/${this.app.a}/${this.app.b}`;
    if (key !== this.asked) {
      this.asked = key;
      void this.load(key);
    } else this.paint(now);
  }

  private async load(key: string): Promise<void> {
    const { app } = this;
    try {
      const stacks = await app.stacks().catch(() => null);
      const a = await this.holding(app.a, stacks);
      const b = app.b === null ? null : await this.holding(app.b, stacks);
      const tree = await this.frames(stacks);
      if (key !== this.asked) return;
      this.a = a;
      this.b = b;
      this.tree = tree;
      this.paint(app.state);
    } catch (error) {
      clear(this.body, el("p", { class: "error" }, `The owners cannot be read: ${String(error)}`));
    }
  }

  private async holding(moment: number, stacks: Stacks | null): Promise<Holding | null> {
    const answer = await this.app.json<Owners>(`${this.app.key}/owners/${moment}`);
    if (answer !== null)
      return {
        moment, total: answer.total_bytes, isPicture: false, rest: answer.others_bytes,
        rows: answer.owners.map((o) => ({ line: clean(o.line), operation: clean(o.operation ?? ""),
          bytes: o.bytes, count: o.count, largest: o.largest_bytes })),
      };
    const part = await this.picture(moment);
    if (part === null || stacks === null) return null;
    const { tile } = part, column = tile.columnOf(moment);
    const rows = sumBySite(tile.allocs, aliveAt(part, moment), stacks).map((h) => ({
      line: stacks.title(h.site), operation: "", bytes: h.bytes, count: h.count, largest: h.largest }));
    return { moment, rows, total: tile.active[column], isPicture: true, rest: tile.small[column] };
  }

  /* Return the finest tile that the source has for `moment`. */
  private async picture(moment: number): Promise<Part | null> {
    const { app } = this, { moments, levels } = app.device;
    for (let level = levels - 1; level >= 0; level--) {
      const index = Math.floor(((moment + 1) * 2 ** level - 1) / moments);
      const tile = await new Promise<Part["tile"] | null>((resolve) => {
        const look = () => {
          const t = app.tile(app.key, level, index, look);
          if (t !== undefined) resolve(t);
        };
        look();
      });
      if (tile !== null && tile.first <= moment && moment < tile.last)
        return { tile, from: tile.first, to: tile.last };
    }
    return null;
  }

  private async frames(stacks: Stacks | null): Promise<Tree | null> {
    if (stacks === null) return null;
    const map = await this.app.map(this.app.a).catch(() => null);
    if (map !== null) {
      const used: number[] = [];
      for (let b = 0; b < map.blocks; b++)
        if (map.state[b] !== 0 && map.alloc[b] !== NONE) used.push(map.alloc[b]);
      return buildTree(map.allocs, used, stacks, this.isInverted);
    }
    const part = await this.picture(this.app.a);
    return part === null ? null
      : buildTree(part.tile.allocs, aliveAt(part, this.app.a), stacks, this.isInverted);
  }

  private paint(now: State): void {
    const { app, a, b } = this;
    clear(this.bar,
      el("span", { class: "where" }, app.b === null ? `Who holds the memory ${app.momentName(app.a)}`
        : `What changed from A (${app.momentName(app.a)}) to B (${app.momentName(app.b)})`),
      el("span", { class: "gap" }),
      ...app.device.places.map((p) => button(p.name === "oom" ? "Failure" : p.name === "peak" ? "Peak"
        : p.name === "end" ? "End" : clean(p.name), app.momentName(p.moment),
        () => app.store.set({ a: p.moment }), p.moment === app.a ? "on" : "")),
      button(this.isInverted ? "Callers first" : "Callees first", "Turn the icicle over", () => {
        this.isInverted = !this.isInverted;
        this.asked = "";
        this.update(app.state);
      }));
    if (a === null) {
      clear(this.body, el("p", { class: "error" }, "Neither the owners nor a picture of this moment is in this report."));
      return;
    }
    clear(this.body,
      a.isPicture && el("p", { class: "notice" },
        `The list of this moment was left out. These figures are out of the timeline's picture; ${
          bytes(a.rest)} in small allocations are not divided.`),
      this.tree !== null && icicle(app, this.tree),
      b === null ? this.ownerTable(a, now) : this.changeTable(a, b));
  }

  private matching(rows: OwnerRow[], q: string): OwnerRow[] {
    const words = q.toLowerCase().replace(/"/g, "");
    return words === "" || /^[<>=]/.test(words) ? rows
      : rows.filter((r) => `${r.line} ${r.operation}`.toLowerCase().includes(words));
  }

  private ownerTable(h: Holding, now: State): HTMLElement {
    const all = this.matching(h.rows, now.q), sort = SORTS[now.sort] ?? SORTS.bytes;
    const head = (text: string, key: string, right: boolean) => ({ head: text, right, title: `Sort by ${key}` });
    const t = table("Lines of code that hold the memory",
      [head("Bytes", "bytes", true), { head: "Share", right: true }, head("Blocks", "count", true),
        head("Largest", "largest", true), head("Line", "line", false)],
      [...all].sort(sort).slice(0, 500).map((o) => [bytes(o.bytes), percent(o.bytes, h.total), count(o.count),
        bytes(o.largest), this.line(o, o.bytes / Math.max(1, h.total))]));
    this.sortable(t, ["bytes", "", "count", "largest", "line"]);
    return el("section", { class: "card" },
      el("h3", {}, `${count(all.length)} lines hold ${bytes(all.reduce((n, o) => n + o.bytes, 0))} of ${bytes(h.total)}`),
      t);
  }

  private line(o: OwnerRow, share: number): HTMLElement {
    return el("span", { class: "line" },
      this.app.link(o.line, { view: "timeline", q: `"${o.line}"` }),
      o.operation !== "" && el("span", { class: "faint" }, ` (${o.operation})`), bar(share));
  }

  /* Make the heads of a table buttons that sort. */
  private sortable(t: HTMLTableElement, keys: string[]): void {
    t.querySelectorAll("th").forEach((th, i) => {
      if (keys[i] === "") return;
      const text = th.textContent ?? "", isOn = (this.app.state.sort || "bytes") === keys[i];
      th.setAttribute("aria-sort", isOn ? (keys[i] === "line" ? "ascending" : "descending") : "none");
      clear(th, button(isOn ? `${text} ${keys[i] === "line" ? "▴" : "▾"}` : text, `Sort by ${text.toLowerCase()}`,
        () => this.app.store.set({ sort: keys[i] }), "plain"));
    });
  }

  private changeTable(a: Holding, b: Holding): HTMLElement {
    const before = new Map(a.rows.map((r) => [`${r.line}\n${r.operation}`, r]));
    const after = new Map(b.rows.map((r) => [`${r.line}\n${r.operation}`, r]));
    const rows = [...new Set([...before.keys(), ...after.keys()])].map((key) => {
      const x = before.get(key), y = after.get(key), any = (y ?? x) as OwnerRow;
      return { any, from: x?.bytes ?? 0, to: y?.bytes ?? 0, by: (y?.bytes ?? 0) - (x?.bytes ?? 0) };
    }).filter((r) => r.by !== 0).sort((x, y) => Math.abs(y.by) - Math.abs(x.by));
    const most = Math.max(1, ...rows.map((r) => Math.abs(r.by)));
    const cells: Child[][] = rows.slice(0, 500).map((r) => [difference(r.by), bytes(r.from), bytes(r.to),
      this.line(r.any, Math.abs(r.by) / most)]);
    return el("section", { class: "card" },
      el("h3", {}, `${difference(b.total - a.total)} from A to B`),
      (a.isPicture || b.isPicture) && el("p", { class: "faint" }, "Small allocations are not counted."),
      rows.length === 0 ? el("p", {}, "No line holds more or less at B than at A.")
        : table("By how much each line's bytes differ", [{ head: "B − A", right: true }, { head: "A", right: true },
          { head: "B", right: true }, { head: "Line" }], cells));
  }

  copy(): string {
    const { a, app } = this;
    if (a === null) return "";
    return [app.subject, `Who holds the memory ${app.momentName(a.moment)}: ${bytes(a.total)}`,
      ...a.rows.slice(0, 30).map((o) => `${bytes(o.bytes).padStart(12)}  ${count(o.count).padStart(6)}  ${o.line}`)].join("\n");
  }
}
