// SPDX-License-Identifier: Apache-2.0
/* Steps: each iteration's curve on one scale, what it reached, kept and threw away, and what grows. */

import type { App, View } from "./app.ts";
import { bar, clear, el, table, type Child } from "./dom.ts";
import { bytes, clean, count, difference, duration, percent, plural } from "./format.ts";
import { themeColour } from "./palette.ts";
import { choosePicture } from "./picture.ts";
import type { State } from "./state.ts";

interface Step {
  partial: boolean; first_event: number; events: number; begin_us: number; end_us: number;
  peak_bytes: number; peak_event: number | null; active_end_bytes: number; reserved_end_bytes: number;
  kept_bytes: number; alloc_bytes: number; allocs: number; temporary_bytes: number; temporaries: number;
}
interface Growth {
  owner: string; requested_bytes: number; bytes_per_step: number; blocks_per_step: number; bytes: number;
  steps: number; last_event: number; confidence: number;
}
interface Steps {
  device: number; source: string; reason: string | null; marker: string | null; steps: Step[];
  growth_bytes_per_step: number; capacity_bytes: number | null; steps_until_full: number | null;
  growth: Growth[];
}

const MULTIPLES = 24, ROWS = 300;

/*
 * Return at most `max` of the peaks' indices, in order: the first, the last, the highest, and those
 * that differ most from the peak before, by 1 % of the highest or more. `fills`: then the first ones.
 */
export function chooseSteps(peaks: number[], max: number, fills: boolean): number[] {
  const all = peaks.map((_, i) => i);
  if (all.length <= max) return all;
  const highest = all.reduce((a, b) => (peaks[b] > peaks[a] ? b : a));
  const jump = (i: number): number => (i === 0 ? 0 : Math.abs(peaks[i] - peaks[i - 1]));
  const differing = all.filter((i) => jump(i) >= peaks[highest] / 100 && jump(i) > 0)
    .sort((a, b) => jump(b) - jump(a));
  const chosen = new Set([0, all.length - 1, highest, ...differing, ...(fills ? all : [])]);
  return [...chosen].slice(0, max).sort((a, b) => a - b);
}

function peaksOf(s: Steps): number[] {
  return s.steps.map((step) => step.peak_bytes);
}

export class StepsView implements View {
  private steps: Steps | null = null;
  private multiples = new Map<number, HTMLCanvasElement>(); // by the step

  constructor(private readonly app: App, private readonly host: HTMLElement) {
    host.append(el("p", { class: "faint" }, "Reading the steps…"));
  }

  update(now: State, before: State | null): void {
    if (before === null || before.file !== now.file || before.device !== now.device) void this.load();
  }

  private async load(): Promise<void> {
    const { app } = this, key = app.key;
    try {
      this.steps = await app.json<Steps>(`${app.fileIndex}/steps`);
    } catch (error) {
      clear(this.host, el("p", { class: "error" }, `The steps cannot be read: ${String(error)}`));
      return;
    }
    if (key === app.key) this.paint();
  }

  private paint(): void {
    const { steps: s, host, app } = this;
    if (s === null) {
      clear(host, el("p", { class: "error" }, "The steps were left out of this report."));
      return;
    }
    if (s.device !== app.device.device) {
      const at = app.file.devices.findIndex((d) => d.device === s.device);
      clear(host, el("p", { class: "notice" }, `The steps known are those of device ${s.device}. `,
        app.link(`Show device ${s.device}`, { device: Math.max(0, at) })));
      return;
    }
    const whole = s.steps.filter((step) => !step.partial);
    const none = s.source === "none";
    clear(host, el("div", { class: "page" },
      el("section", { class: "card" }, el("h3", {}, none ? "No steps were found"
        : `${plural(whole.length, "step")}${whole.length < s.steps.length ? ` and ${s.steps.length - whole.length} partial` : ""}`),
        el("p", {}, none ? clean(s.reason ?? "") : `Told apart by ${clean(s.source)}${s.marker !== null ? `: ${clean(s.marker)}` : ""}.`),
        none && el("p", { class: "faint" }, "The window as a whole is shown as one step. Recording with record_function or an Optimizer's own marks tells steps apart."),
        this.trend(s)),
      this.curves(s), this.growth(s), this.stepTable(s)));
    void this.drawCurves(s);
  }

  private trend(s: Steps): HTMLElement {
    const grow = s.growth_bytes_per_step;
    return el("p", { class: grow > 0 ? "big" : "" }, grow > 0
      ? `Each step leaves ${bytes(grow)} more behind${s.steps_until_full !== null && s.capacity_bytes !== null
        ? `; ${s.steps_until_full === 0 ? "one more step does not fit" : `the device is full in ${plural(s.steps_until_full, "step")}`}` : ""}.`
      : "Steps do not grow.");
  }

  private curves(s: Steps): HTMLElement {
    this.multiples.clear();
    const shown = chooseSteps(peaksOf(s), MULTIPLES, false), left = s.steps.length - shown.length;
    return el("section", { class: "card" }, el("h3", {}, "Active bytes within each step, on one scale"),
      el("div", { class: "multiples" }, ...shown.map((i) => {
        const step = s.steps[i];
        const canvas = el("canvas", { role: "img", aria: { label: `Step ${i}, peak ${bytes(step.peak_bytes)}` } });
        this.multiples.set(i, canvas);
        return el("a", { class: "multiple", href: this.app.store.link({ view: "timeline", from: step.first_event,
          to: step.first_event + Math.max(1, step.events), a: step.peak_event === null ? step.first_event : step.peak_event + 1,
          pick: null }), title: "Show this step in the timeline" },
          canvas, el("span", {}, `${s.source === "none" ? "window" : `step ${i}`}${step.partial ? "*" : ""}`),
          el("span", { class: "faint" }, bytes(step.peak_bytes)));
      })),
      left > 0 && el("p", { class: "faint" }, `${plural(left, "step")} not shown: these are the first, the last, the highest${
        shown.length > 3 ? " and those that differ most from the step before" : ""}`));
  }

  private async drawCurves(s: Steps): Promise<void> {
    const { app } = this, top = Math.max(1, ...peaksOf(s));
    const draw = (i: number): void => {
      const canvas = this.multiples.get(i), step = s.steps[i];
      if (canvas === undefined || !canvas.isConnected) return;
      const w = canvas.clientWidth || 160, h = 72, ratio = Math.min(2, devicePixelRatio || 1);
      const from = step.first_event, to = Math.min(app.device.moments, from + Math.max(1, step.events));
      const picture = choosePicture(app, app.key, from, to, w * ratio, () => draw(i));
      canvas.width = w * ratio;
      canvas.height = h * ratio;
      const pen = canvas.getContext("2d") as CanvasRenderingContext2D;
      pen.scale(ratio, ratio);
      pen.fillStyle = themeColour("curve");
      for (const { tile } of picture.parts)
        for (let c = 0; c < tile.columns; c++) {
          if (tile.end[c] <= from || tile.begin[c] >= to) continue;
          const x0 = ((tile.begin[c] - from) / (to - from)) * w, x1 = ((tile.end[c] - from) / (to - from)) * w;
          const y = (tile.active[c] / top) * (h - 2);
          pen.fillRect(x0, h - y, Math.max(0.6, x1 - x0 + 0.3), y);
        }
      pen.fillStyle = themeColour("alarm");
      pen.fillRect(0, h - (step.peak_bytes / top) * (h - 2) - 0.5, w, 1);
    };
    for (const i of this.multiples.keys()) draw(i);
  }

  private growth(s: Steps): Child {
    if (s.growth.length === 0) return null;
    return el("section", { class: "card" }, el("h3", {}, "What every step leaves behind"),
      table("Lines that grow from step to step", [{ head: "A step", right: true }, { head: "In all", right: true },
        { head: "Blocks a step", right: true }, { head: "Steps", right: true }, { head: "Sure", right: true }, { head: "Line" }],
        s.growth.map((g) => [difference(g.bytes_per_step), bytes(g.bytes), count(g.blocks_per_step), count(g.steps),
          `${Math.round(g.confidence * 100)} %`,
          this.app.link(clean(g.owner), { view: "timeline", q: `"${clean(g.owner)}"`, from: null, to: null })])));
  }

  private stepTable(s: Steps): HTMLElement {
    const top = Math.max(1, ...peaksOf(s)), { app } = this;
    const rows = chooseSteps(peaksOf(s), ROWS, true);
    return el("section", { class: "card" }, el("h3", {}, "Steps"),
      table("Steps and their memory", [{ head: "Step", right: true }, { head: "Events", right: true }, { head: "Time", right: true },
        { head: "Peak", right: true }, { head: "At its end", right: true }, { head: "Kept", right: true },
        { head: "Churn", right: true }, { head: "Temporary", right: true }, { head: "" }],
        rows.map((i) => [i, s.steps[i]] as const).map(([i, step]) => [
          app.link(`${i}${step.partial ? "*" : ""}`, { view: "timeline", from: step.first_event,
            to: step.first_event + Math.max(1, step.events), pick: null }),
          count(step.events), duration(step.end_us - step.begin_us),
          step.peak_event === null ? bytes(step.peak_bytes)
            : app.momentLink(step.peak_event + 1, bytes(step.peak_bytes)),
          bytes(step.active_end_bytes), bytes(step.kept_bytes), bytes(step.alloc_bytes),
          percent(step.temporaries, step.allocs), bar(step.peak_bytes / top)])),
      s.steps.some((step) => step.partial) && el("p", { class: "faint" }, "* cut off by the window or by an out-of-memory"),
      rows.length < s.steps.length && el("p", { class: "faint" },
        `${plural(s.steps.length - rows.length, "step")} not listed.`));
  }

  copy(): string {
    const { steps: s, app } = this;
    if (s === null) return "";
    return [app.subject, ...s.steps.slice(0, 40).map((step, i) =>
      `step ${i}${step.partial ? "*" : ""}: peak ${bytes(step.peak_bytes)}, kept ${bytes(step.kept_bytes)}, churn ${bytes(step.alloc_bytes)}`),
    ...s.growth.map((g) => `${difference(g.bytes_per_step)} a step: ${clean(g.owner)}`)].join("\n");
  }
}
