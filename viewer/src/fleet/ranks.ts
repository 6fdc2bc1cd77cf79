// SPDX-License-Identifier: Apache-2.0
/* The ranks: a strip of all, a list in pages, and the one that is looked at. */

import { button, clear, el, swatch, table, wide, type TableColumn } from "../dom.ts";
import { bytes, clean, count, plural } from "../format.ts";
import { groupColour, onPage, pager, type Desk, type PartView } from "./desk.ts";
import { chooseRanks } from "./filter.ts";
import { RankView } from "./rank.ts";
import { SORTS, type Sort, type State } from "./state.ts";
import { Strip } from "./strip.ts";

const ROWS = 50;
const HEADS: [Sort | "", TableColumn][] = [["rank", { head: "Rank" }], ["group", { head: "Group" }],
  ["reserved", { head: "Reserved", right: true, title: "At the peak" }],
  ["allocated", { head: "Allocated", right: true, title: "At the peak" }],
  ["cached", { head: "Cached", right: true, title: "Free, and could go back to the device" }],
  ["stranded", { head: "Stranded", right: true, title: "Free, and cannot go back" }],
  ["retries", { head: "Retries", right: true }], ["", { head: "Verdict" }]];

export class Ranks implements PartView {
  private readonly strip: Strip;
  private readonly rank: RankView;
  private readonly list = el("div", { class: "list" });
  private readonly where = el("span", { class: "where" });

  constructor(private readonly desk: Desk, host: HTMLElement) {
    host.className = "card";
    const stripHost = el("div"), panel = el("aside", { class: "panel", aria: { label: "The rank that is looked at" } });
    const { layout } = desk.job.about.sentences;
    host.append(el("h3", {}, "Ranks"), layout === null ? "" : el("p", { class: "faint" }, clean(layout)), stripHost,
      el("div", { class: "rankgrid" }, panel, el("div", {}, this.where, this.list)));
    this.strip = new Strip(desk, stripHost);
    this.rank = new RankView(desk, panel);
  }

  update(now: State, before: State | null): void {
    const isOther = (...keys: (keyof State)[]) => before === null || keys.some((k) => before[k] !== now[k]);
    if (isOther("q", "sort", "page", "file")) this.paintList(now);
    if (isOther("q", "by", "file")) this.strip.update();
    this.rank.update(now, before);
  }

  repaint(): void { this.strip.repaint(); }

  private paintList(now: State): void {
    const { desk } = this, { job, store } = desk, found = chooseRanks(job, now.q, now.sort);
    this.strip.show(now.q.trim() === "" ? null : found);
    clear(this.where, now.q.trim() === "" ? "" : `${plural(found.length, "rank")} found: ${clean(now.q)} `,
      now.q.trim() === "" ? null : button("Show all", "End the search (Esc)", () => store.set({ q: "", page: 0 })));
    const rows = onPage(found, ROWS, now.page);
    const t = table("Ranks and their memory", HEADS.map(([, column]) => column), rows.map((file) => this.row(file)),
      (i) => (rows[i] === now.file ? "best" : ""));
    t.querySelectorAll("tbody tr").forEach((tr, i) => tr.addEventListener("click", () => store.set({ file: rows[i] })));
    this.sortable(t, now.sort);
    clear(this.list, rows.length > 0 ? wide("List of ranks", t) : el("p", {}, "No rank is found."),
      pager("ranks", found.length, ROWS, now.page, (page) => store.set({ page })));
  }

  private row(file: number): (HTMLElement | string)[] {
    const { desk } = this, { job } = desk, f = job.fleet.files[file], figures = job.figures(file);
    const name = desk.link(f.rank !== null ? String(f.rank) : job.who(file), { file }, `Look at ${job.who(file)}`);
    const words = [figures.oom ? "out of memory" : "", figures.verdict === "none" ? "" : clean(figures.verdict),
      figures.trust === "high" ? "" : `${clean(figures.trust)} trust`].filter((w) => w !== "").join(", ");
    return [name, f.group === null ? "" : el("span", {}, swatch(groupColour(f.group)), String(f.group)),
      bytes(figures.reserved_peak), bytes(figures.allocated_peak), bytes(figures.releasable), bytes(figures.stranded),
      count(figures.retries), el("span", {}, words, " ", f.differs ? el("span", { class: "tagged" }, "differs") : "")];
  }

  /* Make the heads of the table buttons that sort. */
  private sortable(t: HTMLTableElement, sort: Sort): void {
    t.querySelectorAll("th").forEach((th, i) => {
      const key = SORTS.find((s) => s === HEADS[i][0]), rises = key === "rank" || key === "group";
      if (key === undefined) return;
      const text = HEADS[i][1].head, isOn = sort === key;
      th.setAttribute("aria-sort", isOn ? (rises ? "ascending" : "descending") : "none");
      clear(th, button(isOn ? `${text} ${rises ? "▴" : "▾"}` : text, `Sort by ${text.toLowerCase()}`,
        () => this.desk.store.set({ sort: key, page: 0 }), "plain"));
    });
  }
}
