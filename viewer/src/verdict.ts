// SPDX-License-Identifier: Apache-2.0
/* The verdict: what `drystone explain` says, as cards. Numbers lead to where they can be seen. */

import { oomMoment } from "./about.ts";
import type { App, View } from "./app.ts";
import { bar, clear, el, swatch, table, type Child } from "./dom.ts";
import { bytes, clean, count, duration, percent, plural } from "./format.ts";
import { categoryColour } from "./palette.ts";
import { causeWords, changeWords } from "./words.ts";
import type { State } from "./state.ts";

interface Term { name: string; bytes: number }
interface Proof { left: Term[]; relation: string; right: Term[]; left_bytes: number; right_bytes: number }
interface Effect { headroom_bytes: number; lasting: string; steps: number | null; replayed: boolean }
interface Finding {
  cause: string; confidence_percent: number; assumed: boolean; bytes: number; proofs: Proof[];
  note: string | null;
}
export interface ExplainOwner {
  line: string; operation: string | null; bytes: number; count: number; largest_bytes: number;
}
interface Change {
  kind: string; setting: string | null; caveats: string[]; removes_oom: boolean; bytes: number; effect?: Effect | null;
  reserved_peak_bytes: number | null; oom_at_event: number | null; reason?: string | null; since?: string | null;
  recorded_reserved_peak_bytes?: number | null; runs_on_bytes?: number | null; recorded_runs_on_bytes?: number | null;
  retries?: number | null; recorded_retries?: number | null; gain_bytes?: number | null;
}
export interface Explain {
  device: number; devices: number; simulated: boolean; verdict: string;
  moment: { kind: string; event: number | null; time_us: number };
  state: Record<string, number>;
  oom: null | {
    request_bytes: number; request_line: string | null; device_free_bytes: number | null;
    budget_bytes: number | null; short_bytes: number; other_bytes: number | null; number: number;
    count: number; freed_after: number; end_active_bytes: number; end_reserved_bytes: number;
  };
  findings: Finding[]; owners: ExplainOwner[];
  categories: Record<string, { bytes: number; confidence_percent: number }>;
  step: null | { index: number; allocations: number; allocations_of_a_whole_step: number;
    active_peak_bytes_of_a_whole_step: number; source: string };
  siblings: { device: number; subject: boolean; oom: boolean; peak_bytes: number; held_bytes: number;
    typical_bytes: number; done: number }[];
  projected_bytes: number | null; changes: Change[];
  trust: { level: string; exact: boolean; checked: boolean; reason: string | null;
    unmatched_frees: number; carried_over_bytes: number; covered_bytes: number; unexplained_bytes: number;
    time_reversals: number };
}
export interface Recommend {
  candidates: { caveats: { name: string; text: string }[] }[];
}

const OWNERS = 12;

export class Verdict implements View {
  private explain: Explain | null = null;
  private caveats = new Map<string, string>();
  private isOver = false; // another view has the host

  constructor(private readonly app: App, private readonly host: HTMLElement) {
    host.append(el("p", { class: "faint" }, "Reading the verdict…"));
  }

  update(now: State, before: State | null): void {
    if (before === null || before.file !== now.file || before.device !== now.device)
      void this.load();
  }

  finish(): void { this.isOver = true; }

  private async load(): Promise<void> {
    const { app } = this, file = app.fileIndex;
    try {
      this.explain = await app.json<Explain>(`${file}/explain`);
    } catch (error) {
      clear(this.host, el("p", { class: "error" }, `The verdict cannot be read: ${String(error)}`));
      return;
    }
    if (file !== app.fileIndex || this.isOver) return;
    this.paint();
    if (this.explain?.changes.some((c) => c.caveats.length > 0)) await this.loadCaveats(file);
  }

  /* Read what each setting costs, which takes the replays of sweep. */
  private async loadCaveats(file: number): Promise<void> {
    const { app } = this;
    const recommend = await app.json<Recommend>(`${file}/sweep`).catch(() => null);
    for (const c of recommend?.candidates ?? [])
      for (const { name, text } of c.caveats) this.caveats.set(name, text);
    if (this.caveats.size > 0 && file === app.fileIndex && !this.isOver) this.paint();
  }

  /* Link to the state that the verdict speaks of, in another view. */
  private place(text: string, change: Partial<State>): HTMLElement {
    const { app } = this, e = this.explain as Explain;
    const device = app.file.devices.findIndex((d) => d.device === e.device);
    return app.link(text, { device: Math.max(0, device), a: null, pick: null, from: null, to: null,
      ...change });
  }

  private paint(): void {
    const { explain: e, host, app } = this;
    if (e === null) {
      clear(host, el("p", { class: "error" }, "The verdict was left out of this report."));
      return;
    }
    clear(host, el("div", { class: "verdict" },
      this.head(e),
      el("div", { class: "column" }, this.sums(e), this.why(e), this.siblings(e), this.trust(e)),
      el("div", { class: "column" }, this.changes(e), this.owners(e))));
    if (app.device.device !== e.device)
      host.prepend(el("p", { class: "notice" },
        `The verdict of a file is that of its most telling device, which is device ${e.device}. `,
        this.place(`Show device ${e.device}`, {})));
  }

  private head(e: Explain): HTMLElement {
    const kind = e.oom !== null ? "bad" : e.verdict === "none" ? "good" : "warn";
    const when = e.moment.time_us > 0 ? ` (+${duration(e.moment.time_us)})` : "";
    const event = e.moment.event === null ? "" : count(e.moment.event);
    const after = event === "" ? "" : `, after event ${event}`;
    const place = e.oom !== null ? `Out of memory${event === "" ? "" : ` at event ${event}`}${when}`
      : e.moment.kind === "peak" ? `At the peak${after}${when}`
      : e.moment.kind === "end" ? "At the end of the file" : `State${after}${when}`;
    const rest = e.findings.slice(1).map((f) =>
      el("p", {}, el("strong", {}, `${f.cause}: `), causeWords(f.cause, e.oom?.short_bytes ?? 0).replace(/^[^:]*: /, ""), f.assumed ? " (assumed)" : ""));
    return el("section", { class: `card head ${kind}` },
      el("p", { class: "over" }, `${this.app.file.name}, device ${e.device} `, "· ",
        this.place(place, { view: "timeline" }),
        e.simulated ? " · requests alone, placed by PyTorch's rules on a simulated device" : ""),
      el("h2", {}, headline(e)), ...rest,
      e.oom !== null && this.request(e));
  }

  private request(e: Explain): HTMLElement {
    const oom = e.oom as NonNullable<Explain["oom"]>;
    const line = oom.request_line === null ? "a line that was not recorded" : clean(oom.request_line);
    return el("p", { class: "big" }, this.place(bytes(oom.request_bytes), { view: "map" }),
      " asked for by ", el("code", {}, line),
      oom.short_bytes > 0 ? ` — ${bytes(oom.short_bytes)} more than could be had` : null,
      oom.count > 1 ? ` — failure ${oom.number} of ${oom.count}` : null,
      oom.freed_after > 0 ? el("span", { class: "faint block" },
        `${plural(oom.freed_after, "block")} went back right after it. The file's end shows ${
          bytes(oom.end_active_bytes)} of ${bytes(oom.end_reserved_bytes)}: that is not what failed.`) : null);
  }

  private sums(e: Explain): HTMLElement {
    const s = e.state;
    const free = e.oom?.device_free_bytes ?? 0;
    const whole = Math.max(1, s.reserved_bytes + free);
    const piece = (name: string, n: number, cls: string, help: string): [HTMLElement, HTMLElement] => {
      const part = el("span", { class: `piece ${cls}`, title: `${name}: ${bytes(n)}` });
      part.style.width = `${(100 * n) / whole}%`;
      return [part, el("div", { class: "sum" }, el("span", { class: `swatch ${cls}` }),
        el("span", { class: "name" }, name), el("span", { class: "value" }, this.place(bytes(n), { view: "map" })),
        el("span", { class: "faint" }, help))];
    };
    const pieces = [
      piece("active", s.active_bytes, "active",
        `in use; ${bytes(s.rounding_bytes)} of it is rounding${
          s.pending_bytes > 0 ? `, ${bytes(s.pending_bytes)} waits for streams` : ""}`),
      piece("releasable", s.releasable_bytes, "releasable", "free; given back before anything fails"),
      piece("stranded", s.stranded_bytes, "stranded",
        s.private_free_bytes > 0 ? "free, but beside something in use, or in private pools"
          : "free, but beside something in use"),
    ];
    if (e.oom?.device_free_bytes != null)
      pieces.push(piece("free on the device", free, "device", "PyTorch could have reserved it"));
    return el("section", { class: "card" },
      el("h3", {}, "Reserved ", this.place(bytes(s.reserved_bytes), { view: "timeline" })),
      el("div", { class: "pieces", aria: { hidden: "true" } }, ...pieces.map(([part]) => part)),
      ...pieces.map(([, line]) => line),
      e.trust.unexplained_bytes > 0 && el("div", { class: "sum" }, el("span", {}), el("span", { class: "name" }, "unexplained"),
        el("span", { class: "value" }, bytes(e.trust.unexplained_bytes)),
        el("span", { class: "faint" }, "alive by the events, but outside of every known segment")),
      e.oom !== null && this.requestBar(e.oom.request_bytes, whole));
  }

  private requestBar(request: number, whole: number): HTMLElement {
    const fill = el("span", { class: "piece request" });
    fill.style.width = `${Math.min(100, (100 * request) / whole)}%`;
    return el("div", {},
      el("div", { class: "pieces", aria: { hidden: "true" } }, fill),
      el("div", { class: "sum" }, el("span", { class: "swatch request" }), el("span", { class: "name" }, "asked for"),
        el("span", { class: "value" }, bytes(request)),
        el("span", { class: "faint" }, request > whole ? "more than all of the above" : "drawn to the same scale")));
  }

  private why(e: Explain): Child {
    const findings = e.findings.filter((f) => f.cause !== "none");
    if (findings.length === 0) return null;
    const side = (terms: Term[]) => terms.flatMap((t, i) =>
      [i > 0 ? " + " : "", el("b", {}, bytes(t.bytes)), ` ${t.name}`]);
    return el("section", { class: "card" }, el("h3", {}, "Why"),
      ...findings.map((f) => el("div", { class: "finding" },
        el("p", {}, el("strong", {}, f.cause), el("span", { class: "faint" },
          ` ${f.confidence_percent} % sure${f.assumed ? ", from an assumed size" : ""}`)),
        ...f.proofs.map((p) => el("p", { class: "proof" }, ...side(p.left),
          p.relation !== "=" && p.left.length > 1 ? ` = ${bytes(p.left_bytes)}` : "",
          el("span", { class: "relation" }, ` ${p.relation} `), ...side(p.right),
          p.relation !== "=" && p.right.length > 1 ? ` = ${bytes(p.right_bytes)}` : "")),
        f.note !== null && el("p", {}, clean(f.note)))));
  }

  private owners(e: Explain): Child {
    if (e.owners.length === 0) return null;
    const active = heldBytes(e);
    const rows: Child[][] = e.owners.slice(0, OWNERS).map((o) => [
      bytes(o.bytes), percent(o.bytes, active), count(o.count), bytes(o.largest_bytes),
      el("span", { class: "line" }, this.place(clean(o.line), { view: "timeline", q: `"${clean(o.line)}"` }),
        o.operation !== null && el("span", { class: "faint" }, ` (${clean(o.operation)})`),
        bar(o.bytes / active))]);
    const rest = e.owners.slice(OWNERS), sum = rest.reduce((n, o) => n + o.bytes, 0);
    if (rest.length > 0)
      rows.push([bytes(sum), percent(sum, active), "", "", this.place(`${rest.length} more lines`, { view: "owners" })]);
    return el("section", { class: "card" }, el("h3", {}, "Who held it"),
      table("Lines of code that hold the memory", [{ head: "Bytes", right: true }, { head: "Share", right: true },
        { head: "Blocks", right: true }, { head: "Largest", right: true }, { head: "Line" }], rows),
      this.categories(e));
  }

  private categories(e: Explain): HTMLElement {
    const all = Object.entries(e.categories).filter(([, c]) => c.bytes > 0);
    const whole = heldBytes(e);
    return el("div", { class: "uses" },
      el("div", { class: "pieces", aria: { hidden: "true" } }, ...all.map(([name, c]) => {
        const part = el("span", { class: "piece" });
        part.style.width = `${(100 * c.bytes) / whole}%`;
        part.style.background = categoryColour(name);
        return part;
      })),
      el("p", {}, ...all.map(([name, c]) =>
        el("span", { class: "key" }, swatch(categoryColour(name)),
          this.place(name, { view: "timeline", q: name, colour: "category" }),
          ` ${bytes(c.bytes)}`, c.confidence_percent > 0 &&
            el("span", { class: "faint" }, ` ${c.confidence_percent} % sure`)))));
  }

  private changes(e: Explain): Child {
    if (e.changes.length === 0) return null;
    const setting = (c: Change) => el("code", {}, `PYTORCH_CUDA_ALLOC_CONF=${clean(c.setting ?? "") || "''"}`);
    return el("section", { class: "card" }, el("h3", {}, "What to change"),
      el("ol", { class: "changes" }, ...e.changes.map((c) => el("li", {},
        c.setting !== null && c.kind === "setting" ? setting(c) : null,
        el("span", {}, ` ${changeText(c)}`),
        c.setting !== null && c.kind !== "setting" ? el("span", {}, " Replayed with ", setting(c)) : null,
        c.setting !== null ? el("span", {}, " ", this.place("compare settings", { view: "whatif" })) : null,
        ...c.caveats.map((name) => el("p", { class: "faint" }, `but: ${this.caveats.get(name) ?? name}`))))));
  }

  private siblings(e: Explain): Child {
    if (e.siblings.length < 2) return null;
    const top = Math.max(...e.siblings.map((s) => s.peak_bytes), 1);
    return el("section", { class: "card" }, el("h3", {}, "The same code on the other devices"),
      table("Devices", [{ head: "Device" }, { head: "Peak", right: true }, { head: "At these lines", right: true },
        { head: "Each", right: true }, { head: "" }],
        e.siblings.map((s) => [this.app.link(`device ${s.device}`, { view: "compare" }), bytes(s.peak_bytes),
          bytes(s.held_bytes), bytes(s.typical_bytes),
          el("span", { class: "line" }, s.subject ? "this one" : "", s.oom ? " out of memory" : "",
            bar(s.peak_bytes / top))])),
      e.projected_bytes !== null && el("p", {},
        `At the pace of the fullest of them this device would have needed about ${bytes(e.projected_bytes)}.`));
  }

  private trust(e: Explain): HTMLElement {
    return el("section", { class: "card" }, el("h3", {}, `Trust: ${e.trust.level}`),
      el("p", {}, trustText(e), " ", this.place("What is missing, and how to record it", { view: "trust" })));
  }

  copy(): string {
    return this.explain === null ? "" : verdictText(this.app, this.explain);
  }
}

/* Return what the owners hold in sum: more than is active where blocks lie outside of the known segments. */
function heldBytes(e: Explain): number {
  return Math.max(1, e.owners.reduce((n, o) => n + o.bytes, 0));
}

const CACHE_MIN = 64 * 2 ** 20; // a smaller cache is not worth a word

function verdictWords(e: Explain): string {
  const saving = e.changes.find((c) => c.kind === "setting" && (c.gain_bytes ?? 0) > 0);
  const pieces = e.findings[0]?.bytes ?? 0, whole = e.state.releasable_bytes;
  if (e.verdict === "fragmentation" && e.oom === null && whole > pieces)
    return `an unused cache: ${bytes(whole)} are free as whole segments, ${bytes(pieces)} in pieces`;
  if (e.verdict === "none" && saving === undefined && whole > CACHE_MIN && whole > e.state.reserved_bytes / 4)
    return `nothing is wrong; ${bytes(whole)} of cache are free as whole segments`;
  return e.verdict === "none" && saving !== undefined
    ? `nothing failed, but a setting would save ${bytes(saving.gain_bytes ?? 0)}` : causeWords(e.verdict, e.oom?.short_bytes ?? 0);
}

function headline(e: Explain): string {
  const words = verdictWords(e);
  return words[0].toUpperCase() + words.slice(1);
}

/* Say what a setting would do that was replayed, though nothing failed. */
function savingText(c: Change): string {
  const onDevice = (c.runs_on_bytes ?? 0) > 0 && (c.recorded_runs_on_bytes ?? 0) > 0;
  const now = (onDevice ? c.runs_on_bytes : c.reserved_peak_bytes) ?? 0;
  const then = (onDevice ? c.recorded_runs_on_bytes : c.recorded_reserved_peak_bytes) ?? null;
  const gain = c.gain_bytes ?? c.bytes;
  const effect = then === null ? "" : gain > 0 ? ` instead of ${bytes(then)}, ${bytes(gain)} less`
    : `, the recorded settings ${bytes(then)}`;
  const retries = (c.recorded_retries ?? 0) > 0 ? `; ${plural(c.retries ?? 0, "retry").replace("retrys", "retries")} instead of ${
    count(c.recorded_retries ?? 0)}` : "";
  return `Replayed: ${onDevice ? "runs on" : "reserves"} ${bytes(now)}${effect}${retries}.`;
}

/* Say what a change buys at the failure, and how long that lasts. A sum is an upper bound. */
function effectText(e: Effect | null): string {
  if (e === null || e.headroom_bytes < 0)
    return e?.replayed === true ? " Replayed: the request fails all the same." : "";
  const bound = e.replayed ? "" : "up to ", free = `${bound}${bytes(e.headroom_bytes)}`;
  if (e.lasting === "steps" && e.steps === 0)
    return ` It puts the failure off by ${free}: by the recorded growth, less than one step.`;
  if (e.lasting === "little")
    return ` It puts the failure off by ${free}: the program was still adding, and how much more it needs was not recorded.`;
  if (e.lasting === "steps")
    return ` It leaves ${free} free: ${bound}${plural(e.steps ?? 0, "step")} of the recorded growth.`;
  return ` It leaves ${free} free${e.lasting === "recording" ? "; nothing else grows" : ""}.`;
}

export function changeText(c: Change): string {
  return whatText(c) + effectText(c.effect ?? null);
}

function whatText(c: Change): string {
  if (c.setting !== null && c.kind === "setting") {
    const peak = c.reserved_peak_bytes === null ? "" : `${bytes(c.reserved_peak_bytes)} reserved at the peak`;
    if (c.removes_oom)
      return c.oom_at_event === null ? `Replayed: it gets past this failure, ${peak}.`
        : `Replayed: it gets past this failure, but not past the one at event ${count(c.oom_at_event)}.`;
    return savingText(c);
  }
  if (c.kind === "no-evidence")
    return `The record says nothing about allocator settings${c.reason ? `: ${clean(c.reason)}` : ""}. Trust tells how to record it.`;
  return changeWords(c.kind, c.bytes) + (c.removes_oom ? " That removes the failure." : "");
}

export function trustText(e: Explain): string {
  const t = e.trust;
  const replay = t.checked ? `The replay is ${t.exact ? "exact" : "not exact"}`
    : `The replay was not checked: ${t.reason ?? ""}`;
  return `${replay}; ${plural(t.unmatched_frees, "free")} without allocation; stacks for ${
    percent(t.covered_bytes, heldBytes(e))} of the bytes held; ${
    bytes(t.carried_over_bytes)} from before the recording${t.time_reversals > 0 ? "; times go backwards" : ""}.`;
}

/* Write the verdict as text for an issue. */
function verdictText(app: App, e: Explain): string {
  const s = e.state, moment = oomMoment(app.device);
  const out = [`${app.file.name}, device ${e.device}${moment === null ? "" : ", out of memory"}`,
    `VERDICT  ${verdictWords(e)}`,
    `reserved ${bytes(s.reserved_bytes)} = active ${bytes(s.active_bytes)} + releasable ${
      bytes(s.releasable_bytes)} + stranded ${bytes(s.stranded_bytes)}`];
  if (e.oom !== null)
    out.push(`asked for ${bytes(e.oom.request_bytes)} by ${clean(e.oom.request_line ?? "an unknown line")}`);
  out.push("", "who held it:");
  for (const o of e.owners.slice(0, OWNERS))
    out.push(`${bytes(o.bytes).padStart(12)}  ${count(o.count).padStart(6)}  ${clean(o.line)}`);
  out.push("", "what to change:");
  e.changes.forEach((c, i) => out.push(`${i + 1}. ${c.setting !== null ? `${clean(c.setting)}: ` : ""}${changeText(c)}`));
  out.push("", `trust ${e.trust.level}: ${trustText(e)}`);
  return out.join("\n");
}

