// SPDX-License-Identifier: Apache-2.0
/* One rank: its numbers beside its group's, and its lines beside the median of the group, what differs first. */

import { button, clear, el, table, wide, type Child } from "../dom.ts";
import { bytes, clean, count, difference } from "../format.ts";
import { causeWords } from "../words.ts";
import { sourceLine, type Desk, type PartView } from "./desk.ts";
import type { Beside, Figures, Lines } from "./job.ts";
import type { State } from "./state.ts";

const LINES_SHOWN = 12;

function fact(name: string, ...value: Child[]): HTMLElement {
  return el("div", { class: "fact" }, el("dt", {}, name), el("dd", {}, ...value));
}

export class RankView implements PartView {
  private showsAll = false;

  constructor(private readonly desk: Desk, private readonly host: HTMLElement) {}

  update(now: State, before: State | null): void {
    if (before !== null && before.file === now.file) return;
    this.showsAll = false;
    void this.load(now.file);
  }

  private async load(file: number | null): Promise<void> {
    const { desk, host } = this, { job } = desk, f = file === null ? undefined : job.fleet.files[file];
    if (file === null || f?.figures == null) {
      clear(host, el("p", { class: "faint" }, "Choose a rank, above or in the table: its lines are then shown beside the median of its group."));
      return;
    }
    try {
      const [lines, group] = await Promise.all([job.lines(file), job.groupLines(f.group)]);
      if (file === desk.state.file) this.paint(file, lines, lines === null ? [] : job.beside(lines.lines, group), group !== null);
    } catch (error) {
      clear(host, el("p", { class: "error" }, `The lines cannot be read: ${String(error)}`));
    }
  }

  private paint(file: number, lines: Lines | null, rows: Beside[], hasGroup: boolean): void {
    const { desk, host } = this, { job } = desk, f = job.fleet.files[file], figures = job.figures(file);
    clear(host,
      el("div", { class: "toolbar" }, el("h3", {}, job.who(file)), el("span", { class: "gap" }),
        button("Close", "Show no rank (Esc)", () => desk.store.set({ file: null }))),
      el("p", { class: "faint path" }, clean(f.path)),
      ...(job.findingsOf.get(file) ?? []).map((i) => el("p", { class: "finding" }, `It ${clean(job.about.findings[i] ?? "")} `,
        sourceLine(job.fleet.findings[i].line))),
      this.pieces(figures), this.facts(file, figures, lines),
      lines === null ? el("p", { class: "notice" }, "The lines of this rank were left out of this page, for its size.")
        : this.lineTable(lines, rows, hasGroup, () => {
          this.showsAll = true;
          this.paint(file, lines, rows, hasGroup);
        }));
  }

  /* Draw what the reserved bytes were at the moment that is judged. */
  private pieces(f: Figures): HTMLElement {
    const list: [string, number, string][] = [["active", f.active, "active"], ["cached", f.releasable, "releasable"], ["stranded", f.stranded, "stranded"]];
    const whole = Math.max(1, f.reserved, list.reduce((n, [, v]) => n + v, 0));
    return el("div", {}, el("div", { class: "pieces", aria: { hidden: "true" } }, ...list.map(([, v, cls]) => {
      const piece = el("span", { class: `piece ${cls}` });
      piece.style.width = `${(100 * v) / whole}%`;
      return piece;
    })), el("p", {}, ...list.map(([name, v, cls]) => el("span", { class: "key" }, el("span", { class: `swatch ${cls}` }), `${name} ${bytes(v)}`))));
  }

  private facts(file: number, f: Figures, lines: Lines | null): HTMLElement {
    const { desk } = this, { job } = desk, { group } = job.fleet.files[file], g = group === null ? undefined : job.fleet.groups[group];
    const beside = (v: number, usual: number | undefined): Child[] => [bytes(v),
      g !== undefined && usual !== undefined && g.files.length > 1 && el("span", { class: "faint" }, `, group's median ${bytes(usual)}`)];
    return el("dl", {}, group !== null && fact("group", desk.groupLink(group)),
      fact("reserved peak", ...beside(f.reserved_peak, g?.reserved_peak_median)),
      fact("active peak", ...beside(f.active_peak, g?.active_peak_median)), fact("allocated peak", bytes(f.allocated_peak)),
      fact(f.oom ? "at the failure" : "at the peak", `${bytes(f.reserved)} reserved; rounding ${bytes(f.rounding)}, waiting for streams ${
        bytes(f.pending)}, free in private pools ${bytes(f.private_free)}`),
      fact("retries", count(f.retries)), fact("out of memory", f.oom ? "yes" : "no"),
      fact("verdict", f.verdict === "none" ? causeWords(f.verdict) : `${causeWords(f.verdict)} (${f.confidence} % sure)`),
      fact("trust", `${clean(f.trust)}; the self-check ${!f.checked ? "was not made" : f.exact ? "is exact" : "is not exact"}`),
      fact("recorded", `${count(f.events)} events on device ${f.device}${f.simulated ? ", simulated" : ""}${
        lines === null ? "" : `, ${count(lines.steps)} steps`}`),
      lines !== null && lines.conf !== "" && fact("settings", el("code", {}, clean(lines.conf))),
      lines?.growth != null && fact("grows", `${bytes(lines.growth.bytes_per_step)} a step (${lines.growth.percent} % sure) at `, sourceLine(lines.growth.line)));
  }

  private lineTable(lines: Lines, rows: Beside[], hasGroup: boolean, showAll: () => void): HTMLElement {
    const shown = this.showsAll ? rows : rows.slice(0, LINES_SHOWN);
    return el("div", {}, el("h4", {}, hasGroup ? "Lines, what differs from the group first" : "Lines, the largest first"),
      wide("Lines of the rank", table("What the rank holds, line by line", [{ head: "Line" }, { head: "Holds", right: true },
        ...(hasGroup ? [{ head: "Group", right: true, title: "The median of its group" }, { head: "Differs", right: true }] : [])],
        shown.map((r) => [sourceLine(r.line) ?? "", bytes(r.bytes),
          ...(hasGroup ? [bytes(r.usual ?? 0), difference(r.bytes - (r.usual ?? 0))] : [])]))),
      rows.length > shown.length && el("p", {}, button(`Show all ${count(rows.length)} lines`, "Show every line", showAll)),
      lines.rest_bytes > 0 && el("p", { class: "faint" }, `${bytes(lines.rest_bytes)} more in lines that are not listed.`));
  }
}
