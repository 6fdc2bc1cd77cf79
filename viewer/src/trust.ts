// SPDX-License-Identifier: Apache-2.0
/* Trust: what is in the file, what is missing, what the report left out, and how to record better. */

import type { App, View } from "./app.ts";
import { clear, el, table, type Child, wide } from "./dom.ts";
import { bytes, clean, count, percent } from "./format.ts";
import type { State } from "./state.ts";
import { trustText, type Explain } from "./verdict.ts";

interface Info {
  kind: string; file_bytes: number; events: number; segments_only: boolean;
  devices: { device: number; events: number; actions: Record<string, number>; segments: number;
    reserved_bytes: number; warm_frees: number; old_blocks: number; lost_blocks: number; time_reversals: number }[];
  stacks: { stacks: number; frames: number; events: number; events_with_stack: number; live_blocks: number;
    live_blocks_with_stack: number };
  settings: Record<string, unknown> | null; annotations: number | null; unknown: unknown[];
  trust: { code: string; count: number; text: string }[];
}

const SNIPPET = `import torch
torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
try:
    train()
finally:
    torch.cuda.memory._dump_snapshot("memory.pickle")`;

export class Trust implements View {
  private info: Info | null = null;
  private explain: Explain | null = null;

  constructor(private readonly app: App, private readonly host: HTMLElement) {
    host.append(el("p", { class: "faint" }, "Reading what is in the file…"));
  }

  update(now: State, before: State | null): void {
    if (before === null || before.file !== now.file) void this.load();
  }

  private async load(): Promise<void> {
    const { app } = this, file = app.fileIndex;
    const [info, explain] = await Promise.all([
      app.json<Info>(`${file}/info`).catch(() => null), app.json<Explain>(`${file}/explain`).catch(() => null)]);
    if (file !== app.fileIndex) return;
    this.info = info;
    this.explain = explain;
    this.paint();
  }

  private paint(): void {
    const { info, explain, app } = this;
    clear(this.host, el("div", { class: "page" },
      el("section", { class: "card" }, el("h3", {}, explain === null ? "Trust" : `Trust: ${explain.trust.level}`),
        explain !== null && el("p", {}, trustText(explain)),
        info === null ? el("p", { class: "error" }, "What is in the file was left out of this report.")
          : info.trust.length === 0 ? el("p", {}, "Nothing is missing from the file.")
            : el("ul", {}, ...info.trust.map((t) => el("li", {}, el("b", {}, count(t.count)), ` ${clean(t.text)}`)))),
      info !== null && this.content(info),
      el("section", { class: "card" }, el("h3", {}, "What this page leaves out"),
        app.about.left_out.length === 0 ? el("p", {}, "Nothing: everything that was asked for is in it.")
          : el("ul", {}, ...app.about.left_out.map((t) => el("li", {}, clean(t))))),
      el("section", { class: "card" }, el("h3", {}, "How to record well"),
        el("p", {}, "Record from the program's start, so that every block's line is known; with Python stacks, which cost the least; and with room for all events."),
        el("pre", { tabIndex: 0 }, SNIPPET),
        el("p", { class: "faint" }, "A recording sees what PyTorch allocated. NCCL, CUDA contexts and other libraries are not in it."))));
  }

  private content(info: Info): HTMLElement {
    const s = info.stacks;
    const settings: Child[][] = Object.entries(info.settings ?? {}).map(([k, v]) =>
      [clean(k.replace(/_/g, " ")), el("code", {}, v === null ? "not set" : v === "" ? "default" : clean(String(v)))]);
    return el("section", { class: "card" }, el("h3", {}, "What is in the file"),
      el("p", {}, `${clean(info.kind)} of ${bytes(info.file_bytes)}; ${count(s.stacks)} distinct stacks of ${count(s.frames)} frames, on ${
        percent(s.events_with_stack, s.events)} of the events and ${percent(s.live_blocks_with_stack, s.live_blocks)} of the blocks in use at the end.`),
      wide("Devices of the file", table("Devices", [{ head: "Device" }, { head: "Events", right: true }, { head: "Segments", right: true },
        { head: "Reserved", right: true }, { head: "Frees of unknown blocks", right: true },
        { head: "Older blocks", right: true }, { head: "Times that go back", right: true }],
        info.devices.map((d) => [d.device < 0 ? "pinned host memory" : `device ${d.device}`, count(d.events), count(d.segments), bytes(d.reserved_bytes),
          count(d.warm_frees), count(d.old_blocks), count(d.time_reversals)]))),
      settings.length > 0 && el("h4", {}, "Allocator settings"),
      settings.length > 0 && table("Allocator settings", [{ head: "Setting" }, { head: "Value" }], settings));
  }

  copy(): string {
    return [this.app.subject, this.explain === null ? "" : `trust ${this.explain.trust.level}: ${trustText(this.explain)}`,
      ...(this.info?.trust ?? []).map((t) => `${count(t.count)} ${clean(t.text)}`)].join("\n");
  }
}
