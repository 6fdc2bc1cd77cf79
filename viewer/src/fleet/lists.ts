// SPDX-License-Identifier: Apache-2.0
/* Findings, settings that were replayed, and files that do not count. */

import { clear, el, table, wide, type Child } from "../dom.ts";
import { bytes, clean, count, difference, plural } from "../format.ts";
import { onPage, pager, sentence, sourceLine, type Desk, type PartView } from "./desk.ts";
import type { Candidate } from "./job.ts";
import type { State } from "./state.ts";

const FINDINGS = 40, FILES = 40, GAPS = 200;

export class Findings implements PartView {
  constructor(private readonly desk: Desk, private readonly host: HTMLElement) { host.className = "card"; }

  update(now: State, before: State | null): void {
    if (before !== null && before.found === now.found) return;
    const { desk } = this, { fleet, about } = desk.job, all = fleet.findings.map((_, i) => i);
    clear(this.host, el("h3", {}, all.length === 0 ? "What differs: nothing" : `What differs: ${plural(all.length, "finding")}`),
      all.length === 0 ? el("p", {}, sentence(about.sentences.nothing ?? ""))
        : el("ul", { class: "findings" }, ...onPage(all, FINDINGS, now.found).map((i) => this.item(i))),
      pager("findings", all.length, FINDINGS, now.found, (found) => desk.store.set({ found })));
  }

  private item(i: number): HTMLElement {
    const { desk } = this, f = desk.job.fleet.findings[i];
    return el("li", {}, el("span", { class: "who" }, f.file !== null ? desk.rankLink(f.file) : f.group !== null ? desk.groupLink(f.group) : ""),
      el("span", {}, clean(desk.job.about.findings[i] ?? ""), " ", sourceLine(f.line)));
  }
}

/* Say what a setting did on a rank, which ran out of memory or did not. */
export function verdictText(c: Candidate | undefined, isOom: boolean): string {
  if (c === undefined) return "not tried";
  if (!c.allowed) return "its release has no such setting";
  if (c.verdict === "fails") return c.recorded ? "fails, as recorded" : "fails";
  if (isOom && !c.gets_past) return "not past the failure";
  const gain = c.gain_bytes !== null && c.gain_bytes > 0 ? ` (${difference(-c.gain_bytes)})` : "";
  return `${bytes(c.reserved_peak)}${gain}${c.gets_past ? ", gets past the failure" : ""}${c.verdict === "worse" ? ", worse" : ""}`;
}

export class Settings implements PartView {
  constructor(private readonly desk: Desk, private readonly host: HTMLElement) { host.className = "card"; }

  update(_now: State, before: State | null): void {
    if (before !== null) return;
    const { desk } = this, { settings } = desk.job.fleet, { sentences } = desk.job.about;
    clear(this.host, el("h3", {}, "Settings, replayed on the ranks that decide"));
    if (settings === null) {
      this.host.append(el("p", { class: "faint" }, "No settings were replayed."));
      return;
    }
    this.host.append(el("p", {}, sentence(sentences.settings ?? "")), this.matrix(),
      el("p", { class: "faint" }, "Figures are the reserved bytes at the peak. A setting is named if it helps one rank and harms none."));
  }

  private matrix(): HTMLElement {
    const { job } = this.desk, settings = job.fleet.settings, files = settings?.files ?? [];
    const confs = [...new Set(files.flatMap((f) => f.candidates.map((c) => c.conf)))];
    const of = (conf: string) => files.map((f) => f.candidates.find((c) => c.conf === conf));
    const best = settings?.decision === "change" ? settings.conf : null;
    confs.sort((x, y) => Number(y === best) - Number(x === best));
    const rows: Child[][] = confs.map((conf) => {
      const cells = of(conf), name = clean(cells.find((c) => c !== undefined && c.label !== "")?.label ?? conf);
      return [el("span", { class: "line" }, el("code", {}, name === "" ? "unset" : name),
        cells.some((c) => c?.recorded) ? el("span", { class: "tagged" }, "recorded") : null), ...cells.map((c, i) => verdictText(c, job.figures(files[i].file).oom))];
    });
    if (files.some((f) => f.why !== null))
      rows.push([el("i", {}, "why a rank has no say"), ...files.map((f) => clean(f.why ?? ""))]);
    return wide("Settings by ranks", table("What each setting does on each rank that decides",
      [{ head: "Setting" }, ...files.map((f) => ({ head: job.who(f.file), class: "cell" }))], rows, (i) => (confs[i] === best ? "best" : "")));
  }
}

export class Files implements PartView {
  constructor(private readonly desk: Desk, private readonly host: HTMLElement) { host.className = "card"; }

  update(now: State, before: State | null): void {
    if (before !== null && before.lost === now.lost) return;
    const { desk } = this, { files, missing } = desk.job.fleet;
    const lost = files.flatMap((f, i) => (f.use === "used" ? [] : [i])), gone = missing.reduce((n, [from, to]) => n + to - from + 1, 0);
    clear(this.host, el("h3", {}, lost.length === 0 ? "All files count" : `Files that do not count: ${count(lost.length)}`),
      lost.length > 0 && table("Files that do not count, and why", [{ head: "File" }, { head: "Why" }],
        onPage(lost, FILES, now.lost).map((i) => [el("span", { class: "line" }, clean(files[i].path)), el("span", { class: "line" }, this.why(i))])),
      pager("files", lost.length, FILES, now.lost, (page) => desk.store.set({ lost: page })),
      gone > 0 && el("p", {}, `No file${gone === 1 ? "" : "s"} of ${plural(gone, "rank")} below the highest: ${
        missing.slice(0, GAPS).map(([from, to]) => (from === to ? String(from) : `${from}–${to}`)).join(", ")}${
        missing.length > GAPS ? ` and ${count(missing.length - GAPS)} more runs` : ""}.`));
  }

  private why(i: number): string {
    const { files } = this.desk.job.fleet, f = files[i], other = f.other === null ? "" : clean(files[f.other]?.path ?? "");
    if (f.use === "same-content") return `the same bytes as ${other}`;
    return f.use === "same-rank" ? `another file of its rank counts: ${other}` : clean(f.why ?? f.use);
  }
}
