// SPDX-License-Identifier: Apache-2.0
/*
 * Shows who holds the memory at the cursor, or what was born and what died between two: a table that sorts, and
 * icicles of frames, by line, function, file or category. The lines of one moment are the answer "owners", as
 * `drystone top` prints them; all else is summed up here, of the allocations that are alive.
 */

import { alike, bornSince, findAlive, goneBy, groupOf, sumUp, type Alive, type Sum } from "./alive.ts";
import type { App, View } from "./app.ts";
import { bar, button, choice, clear, el, table, type Child } from "./dom.ts";
import { bytes, clean, count, difference, percent } from "./format.ts";
import { buildTree, icicle } from "./icicle.ts";
import type { Stacks } from "./stacks.ts";
import { GROUPS, type Group, type State } from "./state.ts";

interface OwnerRow extends Sum { operation: string }
interface Owners {
  total_bytes: number; others: number; others_bytes: number;
  owners: { line: string; operation: string | null; bytes: number; count: number; largest_bytes: number }[];
}

const SORTS: Record<string, (x: OwnerRow, y: OwnerRow) => number> = {
  bytes: (x, y) => y.bytes - x.bytes, count: (x, y) => y.count - x.count,
  largest: (x, y) => y.largest - x.largest, line: (x, y) => (x.name < y.name ? -1 : 1),
};
const ROWS_MAX = 500;
const MANY: Record<Group, string> = { line: "lines", function: "functions", file: "files", category: "categories" };
const HEADS: Record<Group, string> = { line: "Line", function: "Function", file: "File", category: "Category" };

export class OwnersView implements View {
  private readonly bar = el("div", { class: "toolbar" });
  private readonly body = el("div", { class: "page" });
  private stacks: Stacks | null = null;
  private a: Alive | null = null;
  private b: Alive | null = null;
  private list: Owners | null = null;
  private asked = "";

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

  repaint(): void { this.paint(this.app.state); }

  private async load(key: string): Promise<void> {
    const { app } = this;
    try {
      const stacks = await app.stacks().catch(() => null);
      const list = app.b === null ? await app.json<Owners>(`${app.key}/owners/${app.a}`) : null;
      const a = await findAlive(app, app.a), b = app.b === null ? null : await findAlive(app, app.b);
      if (key !== this.asked) return;
      if (a !== null && b !== null) alike(a, b);
      Object.assign(this, { stacks, list, a, b });
      this.paint(app.state);
    } catch (error) {
      clear(this.body, el("p", { class: "error" }, `The owners cannot be read: ${String(error)}`));
    }
  }

  private paint(now: State): void {
    const { app, a, b, list, stacks } = this;
    this.paintBar(now);
    if (list === null && (a === null || stacks === null || (app.b !== null && b === null))) {
      clear(this.body, el("p", { class: "error" }, "Neither the owners nor a picture of this moment is in this report."));
      return;
    }
    clear(this.body,
      (a?.isPicture === true || b?.isPicture === true) && (list === null || now.group !== "line") && el("p", { class: "notice" },
        `The list of ${b === null ? "this moment" : "these moments"} was left out. These figures are out of the timeline's picture; ${
          bytes(Math.max(a?.rest ?? 0, b?.rest ?? 0))} in small allocations are not divided.`),
      ...(a === null || stacks === null ? [] : b === null ? [this.tree(a, a.rows, stacks, "Held")]
        : this.changeTrees(a, b, stacks)),
      a !== null && b !== null && stacks !== null ? this.changeTable(a, b, stacks) : this.ownerTable(now));
  }

  private paintBar(now: State): void {
    const { app } = this;
    clear(this.bar,
      el("span", { class: "where" }, app.b === null ? `Who holds the memory ${app.momentName(app.a)}`
        : `What changed from A (${app.momentName(app.a)}) to B (${app.momentName(app.b)})`),
      el("span", { class: "gap" }),
      ...app.device.places.map((p) => button(p.name === "oom" ? "Failure" : p.name === "peak" ? "Peak"
        : p.name === "end" ? "End" : clean(p.name), app.momentName(p.moment),
        () => app.store.set({ a: p.moment }), p.moment === app.a ? "on" : "")),
      app.b === null ? button("Set B", "Put the second cursor where A is (key b), then move A", () => app.store.set({ b: app.a }))
        : button("Drop B", "Take the second cursor away (key x)", () => app.store.set({ b: null })),
      choice("By", GROUPS.map((g): [string, string] => [g, g]), now.group, (v) => app.store.set({ group: v as Group })),
      button(now.flip ? "Callers first" : "Callees first", "Turn the icicle over", () => app.store.set({ flip: !now.flip })));
  }

  private tree(alive: Alive, rows: number[], stacks: Stacks, title: string): HTMLElement {
    const { app } = this, { group, flip } = app.state;
    return icicle(app, buildTree(alive.allocs, rows, stacks, group, flip, app.about.categories), title);
  }

  /* Draw what came and what went, from the earlier of the two moments to the later one. */
  private changeTrees(a: Alive, b: Alive, stacks: Stacks): HTMLElement[] {
    const [first, last] = a.moment <= b.moment ? [a, b] : [b, a], [x, y] = first === a ? ["A", "B"] : ["B", "A"];
    return [this.tree(last, bornSince(first, last), stacks, `Born after ${x}, alive at ${y}`),
      this.tree(first, goneBy(first, last), stacks, `Alive at ${x}, gone by ${y}`)];
  }

  private matching<T extends Sum>(rows: T[], q: string): T[] {
    const words = q.toLowerCase().replace(/"/g, "");
    return words === "" || /^[<>=]/.test(words) ? rows : rows.filter((r) => r.name.toLowerCase().includes(words));
  }

  /* List the owners of the moment, and the bytes of all. */
  private holders(): { rows: OwnerRow[]; total: number } {
    const { list, a, stacks } = this, { group } = this.app.state;
    if (list !== null && (group === "line" || a === null || stacks === null))
      return { total: list.total_bytes, rows: list.owners.map((o) => ({ name: clean(o.line), operation: clean(o.operation ?? ""),
        bytes: o.bytes, count: o.count, largest: o.largest_bytes })) };
    const { allocs, rows, rest } = a as Alive, sums = sumUp(allocs, rows, (row) =>
      groupOf(allocs, row, stacks as Stacks, group, this.app.about.categories));
    return { rows: sums.map((s) => ({ ...s, operation: "" })), total: sums.reduce((n, s) => n + s.bytes, rest) };
  }

  private ownerTable(now: State): HTMLElement {
    const { rows, total } = this.holders(), all = this.matching(rows, now.q), sort = SORTS[now.sort] ?? SORTS.bytes;
    const t = table("Who holds the memory",
      [{ head: "Bytes", right: true }, { head: "Share", right: true }, { head: "Blocks", right: true },
        { head: "Largest", right: true }, { head: HEADS[now.group] }],
      [...all].sort(sort).slice(0, ROWS_MAX).map((o) => [bytes(o.bytes), percent(o.bytes, total), count(o.count),
        bytes(o.largest), this.line(o.name, o.operation, o.bytes / Math.max(1, total))]));
    this.sortable(t, ["bytes", "", "count", "largest", "line"]);
    return el("section", { class: "card" },
      el("h3", {}, `${count(all.length)} ${MANY[now.group]} hold ${bytes(all.reduce((n, o) => n + o.bytes, 0))} of ${bytes(total)}`),
      t);
  }

  private line(name: string, operation: string, share: number): HTMLElement {
    const q = this.app.state.group === "category" ? name : `"${name}"`;
    return el("span", { class: "line" },
      this.app.link(name, { view: "timeline", q }),
      operation !== "" && el("span", { class: "faint" }, ` (${operation})`), bar(share));
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

  private changeTable(a: Alive, b: Alive, stacks: Stacks): HTMLElement {
    const { group } = this.app.state, [first, last] = a.moment <= b.moment ? [a, b] : [b, a];
    const sums = (alive: Alive, rows: number[]) => new Map(sumUp(alive.allocs, rows, (row) =>
      groupOf(alive.allocs, row, stacks, group, this.app.about.categories)).map((s) => [s.name, s.bytes]));
    const atA = sums(a, a.rows), atB = sums(b, b.rows);
    const born = sums(last, bornSince(first, last)), died = sums(first, goneBy(first, last));
    const names = [...new Set([...atA.keys(), ...atB.keys()])];
    const by = (name: string) => (atB.get(name) ?? 0) - (atA.get(name) ?? 0);
    const moved = (name: string) => (born.get(name) ?? 0) + (died.get(name) ?? 0);
    const rows = this.matching(names.filter((n) => by(n) !== 0 || moved(n) > 0).map((name) => ({ name, bytes: by(name), count: 0,
      largest: moved(name) })), this.app.state.q)
      .sort((x, y) => Math.abs(y.bytes) - Math.abs(x.bytes) || y.largest - x.largest);
    const most = Math.max(1, ...rows.map((r) => Math.abs(r.bytes)));
    const cells: Child[][] = rows.slice(0, ROWS_MAX).map(({ name }) => [difference(by(name)), bytes(born.get(name) ?? 0),
      bytes(died.get(name) ?? 0), bytes(atA.get(name) ?? 0), bytes(atB.get(name) ?? 0),
      this.line(name, "", Math.abs(by(name)) / most)]);
    const total = names.reduce((n, name) => n + by(name), 0);
    return el("section", { class: "card" },
      el("h3", {}, `${difference(total)} from A to B`),
      rows.length === 0 ? el("p", {}, "Nothing was born and nothing died between A and B.")
        : table("What each held, what was born and what died", [{ head: "B − A", right: true }, { head: "Born", right: true },
          { head: "Died", right: true }, { head: "A", right: true }, { head: "B", right: true }, { head: HEADS[group] }], cells));
  }

  copy(): string {
    const { app } = this;
    if (app.b !== null)
      return [app.subject, ...[...this.body.querySelectorAll("h3, tbody tr")].map((row) =>
        [...row.querySelectorAll("td")].map((c) => (c.textContent ?? "").padStart(12)).join("  ") ||
        (row.textContent ?? ""))].join("\n");
    if (this.list === null && (this.a === null || this.stacks === null)) return "";
    const { rows, total } = this.holders();
    return [app.subject, `Who holds the memory ${app.momentName(app.a)}: ${bytes(total)}`,
      ...rows.slice(0, 30).map((o) => `${bytes(o.bytes).padStart(12)}  ${count(o.count).padStart(6)}  ${o.name}`)].join("\n");
  }
}
