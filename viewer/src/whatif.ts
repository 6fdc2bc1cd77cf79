// SPDX-License-Identifier: Apache-2.0
/* What-if: the same requests under other allocator settings, as `drystone sweep` replayed them. */

import type { App, View } from "./app.ts";
import { copyText } from "./clipboard.ts";
import { bar, button, clear, el, table, type Child } from "./dom.ts";
import { bytes, clean, count, difference, duration } from "./format.ts";
import { reservedCurves } from "./reserved.ts";
import type { State } from "./state.ts";

interface Candidate {
  conf: string; label: string; verdict: string; recorded: boolean; default: boolean; allowed: boolean;
  oom: boolean; oom_at_event: number | null; reserved_peak_bytes: number | null; gain_bytes: number | null;
  runs_on_bytes: number | null; fails_on_bytes: number | null; runs_on_retries: number | null; num_alloc_retries: number;
  num_device_alloc: number; num_device_free: number; driver_time_us: number; since: string | null;
  caveats: { name: string; text: string }[];
}
interface Recommend {
  device: number; goal: string; outcome: string; best: number | null; conf: string | null;
  capacity_bytes: number | null; margin_bytes: number | null; floor_bytes: number;
  floor_event: number | null; runs: number; min_gain_bytes: number;
  trust: { possible: boolean; exact: boolean; approximate: boolean; compat: string };
  candidates: Candidate[];
}

export class WhatIf implements View {
  private answer: Recommend | null = null;

  constructor(private readonly app: App, private readonly host: HTMLElement) {
    host.append(el("p", { class: "faint" }, "Reading the replays…"));
  }

  update(now: State, before: State | null): void {
    if (before === null || before.file !== now.file || before.device !== now.device) void this.load();
  }

  private async load(): Promise<void> {
    const { app } = this, key = app.key;
    try {
      this.answer = await app.json<Recommend>(`${app.fileIndex}/sweep`);
    } catch (error) {
      clear(this.host, el("p", { class: "error" }, `The replays cannot be read: ${String(error)}`));
      return;
    }
    if (key === app.key) this.paint();
  }

  repaint(): void { this.paint(); }

  private paint(): void {
    const { answer: r, host } = this;
    if (r === null) {
      clear(host, el("p", { class: "error" },
        "The replays under other settings were left out of this report. drystone sweep makes them."));
      return;
    }
    const { app } = this, at = Math.max(0, app.file.devices.findIndex((d) => d.device === r.device));
    clear(host, el("div", { class: "page" }, this.head(r),
      reservedCurves(app, `${app.fileIndex}/${at}`, app.file.devices[at].moments,
        r.candidates.filter((c) => !c.recorded).map((c) => ({ conf: c.conf, label: clean(c.label) || "default settings" }))),
      this.compared(r)));
  }

  private head(r: Recommend): HTMLElement {
    const best = r.best === null ? null : r.candidates[r.best] ?? null, keeps = r.outcome === "keep";
    const { app } = this;
    const self = r.trust.exact ? `The replay of the recorded settings is exact, by the rules of PyTorch ${r.trust.compat}.`
      : "The replay is approximate: the recorded addresses could not all be reproduced.";
    return el("section", { class: `card head ${best === null ? "" : "good"}` },
      el("p", { class: "over" }, r.goal === "fit" ? "Goal: the smallest device on which it does not fail"
        : "Goal: the least reserved memory at the peak", `, ${count(r.runs)} replays, device ${r.device}`),
      el("h2", {}, best === null || keeps ? outcomeWords(r.outcome)
        : el("code", {}, clean(best.label) || "the default settings")),
      best !== null && keeps && el("p", { class: "big" }, el("code", {}, clean(best.label) || "the default settings")),
      best !== null && !keeps && el("p", { class: "big" }, gainText(r, best), " ",
        button("Copy the setting", "Copy the line for the shell", () => {
          void copyText(best.conf === "" ? "unset PYTORCH_CUDA_ALLOC_CONF"
            : `export PYTORCH_CUDA_ALLOC_CONF='${best.conf.replace(/'/g, "'\\''")}'`, () => app.status("Copied."));
        })),
      ...(best?.caveats ?? []).map((c) => el("p", { class: "faint" }, `but: ${clean(c.text)}`)),
      el("p", {}, self, " In use at the peak: ",
        r.floor_event === null ? bytes(r.floor_bytes) : app.momentLink(r.floor_event + 1, bytes(r.floor_bytes)),
        "; no settings run on less."));
  }

  private compared(r: Recommend): HTMLElement {
    const isFit = r.goal === "fit", value = (c: Candidate) => judged(r, c);
    const most = Math.max(1, r.capacity_bytes ?? 0, ...r.candidates.map((c) => value(c) ?? 0));
    const rows: Child[][] = r.candidates.map((c) => {
      const v = value(c);
      return [verdictWord(c), judgedText(r, c),
        c.gain_bytes === null || c.gain_bytes === 0 ? "–" : difference(-c.gain_bytes),
        count(c.num_alloc_retries), duration(c.driver_time_us),
        el("span", { class: "line" },
          el("code", {}, c.recorded ? `recorded settings${c.conf !== "" ? `: ${clean(c.conf)}` : ""}`
            : c.default ? "default settings" : clean(c.label)),
          ...c.caveats.map((k) => el("span", { class: "tagged", title: clean(k.text) }, clean(k.name))),
          v === null ? null : this.valueBar(v, most, r.floor_bytes))];
    });
    return el("section", { class: "card" },
      el("h3", {}, isFit ? "The device that each setting needs" : "Reserved bytes at the peak under each setting"),
      table("Allocator settings, replayed", [{ head: "Verdict" },
        { head: isFit ? "Runs on" : "Reserved", right: true }, { head: "Against the record", right: true },
        { head: "Retries", right: true }, { head: "Driver", right: true }, { head: "Settings" }], rows,
        (i) => (i === r.best ? "best" : r.candidates[i].recorded ? "recorded" : "")),
      el("p", { class: "faint" }, `The mark on a bar is what is in use at the peak${
        r.capacity_bytes !== null ? `; a full bar is ${bytes(most)}` : ""}. Less than ${bytes(r.min_gain_bytes)} counts as no gain.`));
  }

  private valueBar(v: number, most: number, floor: number): HTMLElement {
    const b = bar(v / most), mark = el("span", { class: "mark" });
    mark.style.left = `${Math.min(100, (100 * floor) / most)}%`;
    b.append(mark);
    return b;
  }

  copy(): string {
    const { answer: r, app } = this;
    if (r === null) return "";
    return [app.subject, ...r.candidates.map((c) =>
      `${verdictWord(c).padEnd(8)} ${judgedText(r, c).padStart(11)}  ${
        c.recorded ? "recorded settings" : clean(c.label)}`)].join("\n");
  }
}

/* The figure that settings are ranked by: the smallest device, or the peak of reserved bytes. */
function judged(r: Recommend, c: Candidate): number | null {
  return r.goal === "fit" ? c.runs_on_bytes : c.reserved_peak_bytes;
}

/* Say a figure; "<" marks a device whose search ended early. */
function judgedText(r: Recommend, c: Candidate): string {
  const v = judged(r, c), bound = r.goal === "fit" && v !== null && v - (c.fails_on_bytes ?? 0) > r.min_gain_bytes;
  return v === null ? "–" : `${bound ? "<" : ""}${bytes(v)}`;
}

function verdictWord(c: Candidate): string {
  const words: Record<string, string> = { "best": "best", "good": "good", "no-gain": "no gain", "fails": "fails",
    "worse": "worse" };
  return words[c.verdict] ?? clean(c.verdict);
}

function gainText(r: Recommend, best: Candidate): string {
  if (r.goal === "fit" && best.runs_on_bytes !== null)
    return `It runs on ${bytes(best.runs_on_bytes)}${r.margin_bytes !== null ? `, ${bytes(r.margin_bytes)} below what the device has` : ""}.`;
  if (best.reserved_peak_bytes !== null)
    return `${(best.gain_bytes ?? 0) > 0 ? `${bytes(best.gain_bytes ?? 0)} less` : "As much"} reserved at the peak: ${
      bytes(best.reserved_peak_bytes)}.`;
  return "";
}

function outcomeWords(outcome: string): string {
  const words: Record<string, string> = {
    "capacity": "No setting can help: it does not fit, however it is laid out",
    "keep": "The recorded settings are the best of those tried",
    "none": "No setting helps",
    "limit": "No setting helps: a memory fraction forbade the request that failed",
    "no-evidence": "The recording says nothing about settings",
  };
  return words[outcome] ?? `No setting is recommended (${clean(outcome)})`;
}
