// SPDX-License-Identifier: Apache-2.0
/* One allocation in full: what it is, when it lived, and the code that asked for it. */

import type { App } from "./app.ts";
import { el, swatch, type Child } from "./dom.ts";
import { address, bytes, clean, duration } from "./format.ts";
import { NONE } from "./pack.ts";
import { categoryColour } from "./palette.ts";
import type { Stacks } from "./stacks.ts";
import { FLAG_CARRIED_OVER, FLAG_GUESSED, FLAG_LOST, FLAG_STACK_OF_FREE, type Allocs } from "./tile.ts";

/* List the words about an allocation that its flags stand for. */
export function flagWords(flags: number): string[] {
  const words: string[] = [];
  if (flags & FLAG_CARRIED_OVER) words.push("It is older than the recording.");
  if (flags & FLAG_STACK_OF_FREE) words.push("The stack is the free's: no other was recorded.");
  if (flags & FLAG_GUESSED) words.push("Its block's size is the rounded request, unconfirmed.");
  if (flags & FLAG_LOST) words.push("Its free is not in the record, but must have happened.");
  return words;
}

function frameLine(app: App, stacks: Stacks, frame: number): HTMLElement {
  const file = stacks.fileOf(frame), line = stacks.lineOf(frame);
  const where = file === "" ? "" : line > 0 ? `${file}:${line}` : file;
  const isUser = stacks.isUser(frame);
  const title = stacks.title(frame);
  return el("li", { class: isUser ? "frame user" : "frame" },
    app.link(stacks.functionOf(frame) || title, { q: `"${title}"` }, "plain"),
    where !== "" && el("span", { class: "where", title: where }, where));
}

/*
 * List the frames of a stack: the user's own in the open, what lies between them folded. Nothing is
 * folded if the stack has none of the user's.
 */
export function stackList(app: App, stacks: Stacks, stack: number): HTMLElement {
  const frames = stacks.frames(stack);
  if (frames.length === 0) return el("p", { class: "faint" }, "No stack was recorded.");
  const list = el("ol", { class: "stack" });
  const anyUser = frames.some((f) => stacks.isUser(f));
  let folded: number[] = [];
  const flush = () => {
    if (folded.length > 0)
      list.append(el("li", { class: "fold" }, el("details", {},
        el("summary", {}, folded.length === 1 ? "1 library frame" : `${folded.length} library frames`),
        el("ol", { class: "stack" }, ...folded.map((f) => frameLine(app, stacks, f))))));
    folded = [];
  };
  for (const frame of frames) {
    if (anyUser && !stacks.isUser(frame)) { folded.push(frame); continue; }
    flush();
    list.append(frameLine(app, stacks, frame));
  }
  flush();
  return list;
}

function row(name: string, ...value: Child[]): HTMLElement {
  return el("div", { class: "fact" }, el("dt", {}, name), el("dd", {}, ...value));
}

function lifeBar(app: App, begin: number, end: number): HTMLElement {
  const whole = Math.max(1, app.device.moments);
  const fill = el("span", { class: "fill" });
  fill.style.left = `${(100 * begin) / whole}%`;
  fill.style.width = `${Math.max(0.6, (100 * (end - begin)) / whole)}%`;
  return el("span", { class: "bar life", aria: { hidden: "true" } }, fill);
}

export interface Times { (moment: number): number | null }

/* Make the panel of allocation `at` of `allocs`. `timeOf` tells a moment's microseconds, if known. */
export function allocDetails(app: App, stacks: Stacks | null, allocs: Allocs, at: number,
                             timeOf: Times): HTMLElement {
  const begin = allocs.begin[at], end = allocs.end[at], freed = allocs.freed[at];
  const last = end === NONE ? app.device.moments : end;
  const waits = allocs.waits(at, app.device.moments), gone = end === NONE && !waits ? freed : end;
  const margin = Math.max(2, (last - begin) * 0.15);
  const lane = app.device.lanes[allocs.lane[at]];
  const category = app.about.categories[allocs.category[at]] ?? "unknown";
  const t0 = timeOf(begin), t1 = timeOf(last);
  const title = stacks === null ? "(stacks were left out)" : stacks.siteTitle(allocs.stack[at], allocs.flags[at]);
  return el("section", { class: "details", aria: { label: "The picked allocation" } },
    el("h3", {}, `${bytes(allocs.size[at])} by ${title}`),
    lifeBar(app, begin, last),
    el("dl", {},
      row("Asked for", allocs.req[at] === allocs.size[at] ? "all of it"
        : `${bytes(allocs.req[at])}; the block is ${bytes(allocs.size[at] - allocs.req[at])} larger`),
      row("Born", begin === 0 ? "before the recording"
        : app.momentLink(begin, app.momentName(begin), { pick: allocs.id[at] })),
      waits && row("Freed", app.momentLink(freed, app.momentName(freed), { pick: allocs.id[at] }),
        ", and reusable later: another stream still used it"),
      row(waits ? "Reusable" : "Freed", gone === NONE ? "not within the recording"
        : app.momentLink(gone, app.momentName(gone), { pick: allocs.id[at] })),
      t0 !== null && t1 !== null && row("Lived", duration(t1 - t0)),
      row("For", swatch(categoryColour(category)), category),
      row("Stream, pool", lane === undefined ? "not recorded"
        : `${clean(lane.stream)}, ${clean(lane.pool)}`),
      row("Address", el("code", {}, address(allocs.addr[at])))),
    ...flagWords(allocs.flags[at]).map((text) => el("p", { class: "faint" }, text)),
    el("p", { class: "actions" },
      app.link("Zoom to its life", { view: "timeline", pick: allocs.id[at],
        from: Math.max(0, begin - margin), to: Math.min(app.device.moments, last + margin) }, "button"),
      app.link("Show in the map", { view: "map", pick: allocs.id[at] }, "button"),
      app.link("Same line", { q: `"${title}"` }, "button")),
    stacks === null ? null : stackList(app, stacks, allocs.stack[at]));
}

/* Write the picked allocation as text for an issue. */
export function allocText(app: App, stacks: Stacks | null, allocs: Allocs, at: number): string {
  const freed = allocs.freed[at] === NONE ? allocs.end[at] : allocs.freed[at];
  const lines = [`${bytes(allocs.size[at])} (asked for ${allocs.req[at]} B) at ${address(allocs.addr[at])}`,
    `born ${app.momentName(allocs.begin[at])}, ${freed === NONE ? "not freed"
      : `freed ${app.momentName(freed)}${!allocs.waits(at, app.device.moments) ? ""
        : allocs.end[at] === NONE ? ", not reusable in the recording"
          : `, reusable ${app.momentName(allocs.end[at])}`}`}`];
  for (const frame of stacks?.frames(allocs.stack[at]) ?? [])
    lines.push(`  ${stacks?.title(frame) ?? ""}`);
  return lines.join("\n");
}
