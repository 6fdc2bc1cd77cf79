// SPDX-License-Identifier: Apache-2.0
/* The verdict for the job: who failed first, the one change, and which files it is made of. */

import { copyText } from "../clipboard.ts";
import { add, button, el, type Child } from "../dom.ts";
import { clean, count, plural } from "../format.ts";
import { sentence, sourceLine, type Desk, type PartView } from "./desk.ts";
import type { Job } from "./job.ts";

interface Coverage { fine: number; differ: number; ooms: number; retried: number; doubtful: number; missing: number; lost: number }

export function coverage(job: Job): Coverage {
  const { fleet } = job, figures = job.used.map((i) => job.figures(i));
  const differ = job.used.filter((i) => fleet.files[i].differs).length;
  return {
    differ, fine: job.used.length - differ, ooms: figures.filter((f) => f.oom).length,
    retried: figures.filter((f) => f.retries > 0).length, doubtful: figures.filter((f) => f.trust !== "high").length,
    missing: fleet.missing.reduce((n, [from, to]) => n + to - from + 1, 0), lost: fleet.files.length - job.used.length,
  };
}

/* Say the verdict in one sentence. */
export function headline(job: Job): string {
  const { fleet } = job, c = coverage(job);
  if (job.used.length === 0) return "None of the files can be used";
  if (fleet.first_failure !== null)
    return `${job.who(fleet.first_failure.file)} ran out of memory first`.replace(/^r/, "R");
  if (fleet.findings.length === 0)
    return `${job.about.compared ? "Nothing differs" : "Nothing is compared"}: ${clean(job.about.sentences.nothing ?? "")}`;
  return c.differ === 0 ? "A group of ranks stands out" : `${count(c.differ)} of ${plural(job.used.length, "rank")} differ${c.differ === 1 ? "s" : ""}`;
}

/* Return the line for the shell that sets what the decision names, or null. */
export function settingLine(job: Job): string | null {
  const { settings } = job.fleet;
  if (settings?.decision !== "change" || settings.conf === null) return null;
  return settings.conf === "" ? "unset PYTORCH_CUDA_ALLOC_CONF"
    : `export PYTORCH_CUDA_ALLOC_CONF='${settings.conf.replace(/'/g, "'\\''")}'`;
}

export class Verdict implements PartView {
  constructor(desk: Desk, host: HTMLElement) {
    const { job } = desk, { fleet } = job;
    host.className = `card head ${fleet.first_failure !== null || job.used.length === 0 ? "bad" : fleet.findings.length > 0 ? "warn" : job.about.compared ? "good" : ""}`;
    add(host,
      el("p", { class: "over" }, clean(fleet.job), `: ${plural(fleet.files.length, "file")}, ${plural(job.used.length, "rank")} in ${plural(fleet.groups.length, "group")}`),
      el("h2", {}, headline(job)),
      this.failure(desk), el("div", { class: "columns2" }, this.change(desk), this.facts(desk)),
      job.about.left_out.length > 0 && el("p", { class: "faint" }, `Left out of this page, for its size: ${clean(job.about.left_out.join("; "))}.`));
  }

  update(): void { return; }

  private failure(desk: Desk): Child {
    const { first_failure: f } = desk.job.fleet, text = desk.job.about.sentences.failure;
    if (f === null || text === null) return null;
    return el("p", { class: "big" }, desk.rankLink(f.file), ` failed ${clean(text)} `, sourceLine(f.line),
      el("span", { class: "faint block" }, f.by_clock ? "It is the first by the clocks of the hosts." : "The clocks do not tell who was first; it is the lowest rank of those that failed."));
  }

  private change(desk: Desk): HTMLElement {
    const { job } = desk, { sentences } = job.about, { advice } = job.fleet, line = settingLine(job);
    const tried = sentences.settings === null ? null : clean(sentences.settings);
    const more = desk.link("All that was replayed", { part: "settings" });
    const words: Child[] = job.used.length === 0 ? [el("p", {}, "Nothing is known of the job.")]
      : advice.kind === "setting" && tried !== null ? [el("p", { class: "advice" }, `Set one thing for all ranks: ${tried}. `, more)]
        : [el("p", { class: "advice" }, sentence(sentences.advice), " ", sourceLine(advice.finding?.line ?? null)),
          tried !== null && el("p", {}, sentence(tried), " ", more)];
    return el("section", {}, el("h3", {}, "What to change"), ...words,
      line !== null && el("p", { class: "copyable" }, el("code", {}, clean(line)),
        button("Copy the setting", "Copy the line for the shell", () => { void copyText(line, () => desk.status("Copied.")); })));
  }

  private facts(desk: Desk): HTMLElement {
    const { job } = desk, c = coverage(job);
    const fact = (n: number, text: string, more?: Child): Child => n > 0 && el("li", {}, el("b", {}, count(n)), ` ${text}`, more);
    return el("section", {}, el("h3", {}, "What it is made of"), el("ul", { class: "plainlist" },
      fact(c.fine, job.about.compared ? (c.fine === 1 ? "rank is fine" : "ranks are fine") : `rank${c.fine === 1 ? "" : "s"} without a finding, not compared`),
      fact(c.differ, c.differ === 1 ? "rank differs: " : "ranks differ: ", desk.link("list", { part: "ranks", q: "differs", page: 0 }, "List the ranks that differ")),
      fact(c.ooms, "ran out of memory: ", desk.link("list", { part: "ranks", q: "oom", page: 0 }, "List the ranks that ran out of memory")),
      fact(c.retried, c.retried === 1 ? "was full: requests were served on a retry alone" : "were full: requests were served on a retry alone"),
      fact(c.doubtful, "can be trusted less than fully"),
      fact(c.missing, c.missing === 1 ? "rank below the highest has no file: " : "ranks below the highest have no file: ", desk.link("which", { part: "files" }, "Which ranks have no file")),
      fact(c.lost, c.lost === 1 ? "file does not count: " : "files do not count: ", desk.link("why", { part: "files" }, "Why files do not count"))));
  }
}
