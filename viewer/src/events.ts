// SPDX-License-Identifier: Apache-2.0
/*
 * Events: a table of any length in a window of rows. A scroll bar's position is mapped to a row, since a
 * page of millions of rows is higher than browsers allow. With a filter, pages are read one after the
 * other, and the numbers of the events found are kept.
 */

import type { App, View } from "./app.ts";
import { allocDetails, stackList } from "./details.ts";
import { button, choice, clear, el } from "./dom.ts";
import { address, bytes, clean, count, plural, seconds } from "./format.ts";
import { NONE } from "./pack.ts";
import { findAlloc } from "./picture.ts";
import { parseSearch, type Search } from "./search.ts";
import type { Stacks } from "./stacks.ts";
import type { State } from "./state.ts";
import { EVENT_PAGE, type EventPage } from "./tile.ts";

const ROW = 24, SPACER_MAX = 4e6, FOUND_MAX = 1e6, PAGES_KEPT = 64;
const HEADS = ["Event", "Time", "Action", "Size", "Address", "Stream", "Line"];

export class EventsView implements View {
  private readonly bar = el("div", { class: "toolbar" });
  private readonly spacer = el("div", { class: "spacer" });
  private readonly body = el("div", { class: "rows", role: "rowgroup" });
  private readonly scroller = el("div", { class: "scroller events", tabIndex: 0, role: "table",
    aria: { label: "Events" } });
  private readonly side = el("aside", { class: "side", tabIndex: 0, aria: { label: "The event" } });
  private readonly observer = new ResizeObserver(() => this.paint());
  private readonly pages = new Map<number, EventPage | null | "coming">();
  private stacks: Stacks | null = null;
  private search: Search | null = null;
  private found: Uint32Array | null = null; // events that pass the filter, if there is one
  private foundCount = 0;
  private scanned = 0;
  private scan = 0; // the number of the scan that runs
  private first = 0; // the first visible row
  private isOurs = false; // a scroll that the page made itself
  private key0 = "";

  constructor(private readonly app: App, host: HTMLElement) {
    const head = el("div", { class: "row head", role: "row" }, ...HEADS.map((h, i) =>
      el("span", { role: "columnheader", class: `c${i}` }, h)));
    this.scroller.append(el("div", { role: "rowgroup" }, head), this.body, this.spacer);
    host.append(el("div", { class: "timeline" }, el("div", { class: "main" }, this.bar, this.scroller), this.side));
    this.scroller.addEventListener("scroll", () => this.scrolled());
    this.scroller.addEventListener("wheel", (e) => {
      e.preventDefault();
      this.show(this.first + Math.sign(e.deltaY) * Math.max(1, Math.round(Math.abs(e.deltaY) / 40)));
    }, { passive: false });
    this.observer.observe(this.scroller);
  }

  finish(): void {
    this.observer.disconnect();
    this.scan++;
  }

  update(now: State, before: State | null): void {
    const key = `${this.app.key}\n${now.q}\n${now.act}`;
    if (key !== this.key0) {
      this.key0 = key;
      if (before === null || before.file !== now.file || before.device !== now.device) this.pages.clear();
      void this.begin(now);
      return;
    }
    if (before?.a !== now.a) this.reveal();
    this.paint();
  }

  private async begin(now: State): Promise<void> {
    const { app } = this, scan = ++this.scan;
    this.stacks = await app.stacks().catch(() => null);
    this.search = parseSearch(now.q, this.stacks, app.about.categories, app.device.lanes);
    this.found = this.search === null && now.act === "" ? null : new Uint32Array(1024);
    this.foundCount = this.scanned = 0;
    if (scan !== this.scan) return;
    if (this.found === null) this.reveal(); else this.first = 0;
    this.paint();
    if (this.found !== null) await this.runScan(scan, app.about.actions.indexOf(now.act));
  }

  /* Read all pages in turn and keep what passes. A newer scan ends this one. */
  private async runScan(scan: number, action: number): Promise<void> {
    const { events } = this.app.device;
    for (let page = 0; page * EVENT_PAGE < events && this.foundCount < FOUND_MAX; page++) {
      const p = await this.app.events(page).catch(() => null);
      if (scan !== this.scan) return;
      for (let i = 0; p !== null && i < p.length; i++) {
        if (action >= 0 && p.action[i] !== action) continue;
        if (this.search !== null &&
          !this.search.matchesEvent(p.stack[i], p.size[i], this.isOom(p, i) ? 0n : p.addr[i], p.lane[i])) continue;
        this.keep(page * EVENT_PAGE + i);
      }
      this.scanned = Math.min(events, (page + 1) * EVENT_PAGE);
      if (page % 16 === 0) this.paint();
    }
    this.paint();
  }

  private keep(event: number): void {
    let found = this.found as Uint32Array;
    if (this.foundCount === found.length) {
      const larger = new Uint32Array(found.length * 2);
      larger.set(found);
      this.found = found = larger;
    }
    found[this.foundCount++] = event;
  }

  private get rowCount(): number { return this.found === null ? this.app.device.events : this.foundCount; }
  private eventOf(row: number): number { return this.found === null ? row : this.found[row]; }
  private get visible(): number { return Math.max(1, Math.floor((this.scroller.clientHeight - ROW) / ROW)); }
  /* The height of what the scroll bar moves over, beyond what is visible. */
  private get room(): number {
    return Math.min(SPACER_MAX, Math.max(0, this.rowCount - this.visible) * ROW);
  }

  /* Make the event before the cursor visible. */
  private reveal(): void {
    const event = Math.max(0, this.app.a - 1);
    let row = event;
    if (this.found !== null) {
      row = 0;
      while (row < this.foundCount && this.found[row] < event) row++;
    }
    if (row < this.first || row >= this.first + this.visible) this.show(row - Math.floor(this.visible / 2));
  }

  private show(row: number): void {
    const most = Math.max(0, this.rowCount - this.visible);
    this.first = Math.max(0, Math.min(most, row));
    const before = this.scroller.scrollTop;
    this.fitHeights();
    this.scroller.scrollTop = most > 0 ? (this.first / most) * this.room : 0;
    this.isOurs = this.scroller.scrollTop !== before;
    this.paint();
  }

  private scrolled(): void {
    if (this.isOurs) {
      this.isOurs = false;
      return;
    }
    const { room } = this, most = Math.max(0, this.rowCount - this.visible);
    this.first = room > 0 ? Math.min(most, Math.round((this.scroller.scrollTop / room) * most)) : 0;
    this.paint();
  }

  private fitHeights(): void {
    this.body.style.height = `${Math.max(0, this.scroller.clientHeight - ROW)}px`;
    this.spacer.style.height = `${this.room}px`;
  }

  private page(index: number): EventPage | null | undefined {
    const known = this.pages.get(index);
    if (known === "coming") return undefined;
    if (known !== undefined) return known;
    this.pages.set(index, "coming");
    this.app.events(index).catch(() => null).then((p) => {
      this.pages.set(index, p);
      for (const old of this.pages.keys())
        if (this.pages.size > PAGES_KEPT && old !== index) this.pages.delete(old); else break;
      this.paint();
    });
    return undefined;
  }

  private paint(): void {
    this.paintBar();
    this.fitHeights();
    const rows: HTMLElement[] = [];
    for (let i = 0; i <= this.visible && this.first + i < this.rowCount; i++)
      rows.push(this.row(this.eventOf(this.first + i)));
    if (this.rowCount === 0) rows.push(el("div", { class: "row none", role: "row" }, el("span", { role: "cell" },
      this.found === null ? "The recording holds no events of this device."
        : this.scanned < this.app.device.events ? "Looking…" : "No event passes the filter.")));
    const hadFocus = this.body.contains(document.activeElement);
    clear(this.body, ...rows);
    if (hadFocus) this.scroller.focus({ preventScroll: true });
    this.paintSide();
    document.body.dataset.painted = "events";
  }

  private isOom(p: EventPage, i: number): boolean { return this.app.about.actions[p.action[i]] === "oom"; }

  /* Write what the device had free at a failure; some files do not tell it. */
  private freeText(p: EventPage, i: number): string { return p.addr[i] === 0n ? "" : `${bytes(Number(p.addr[i]))} free`; }

  private actionName(p: EventPage, i: number): string {
    return this.isOom(p, i) ? "out of memory" : (this.app.about.actions[p.action[i]] ?? "unknown").replace(/_/g, " ");
  }

  private row(event: number): HTMLElement {
    const p = this.page(Math.floor(event / EVENT_PAGE)), i = event % EVENT_PAGE;
    const isOom = p && i < p.length && this.isOom(p, i);
    const cells = (...texts: (string | HTMLElement)[]) => el("div", {
      class: `row${event === this.app.a - 1 ? " on" : ""}${isOom ? " oom" : ""}`, role: "row",
      on: { click: () => this.pick(event) } }, ...texts.map((t, k) => el("span", { role: "cell", class: `c${k}` }, t)));
    const number = button(count(event), "Put the cursor after this event", () => this.pick(event), "plain");
    if (p === undefined) return cells(number, "…");
    if (p === null || i >= p.length) return cells(number, "", "left out of this report");
    const lane = this.app.device.lanes[p.lane[i]]; // a failure has the device's free bytes in place of an address
    return cells(number, seconds(p.time[i]), this.actionName(p, i), bytes(p.size[i]),
      isOom ? this.freeText(p, i) : address(p.addr[i]),
      lane === undefined ? "" : clean(lane.stream), p.stack[i] === NONE ? "" : this.stacks?.siteTitle(p.stack[i]) ?? "");
  }

  private pick(event: number): void {
    const p = this.page(Math.floor(event / EVENT_PAGE));
    const alloc = p ? p.alloc[event % EVENT_PAGE] : NONE;
    this.app.store.set({ a: event + 1, pick: alloc === NONE || alloc === undefined ? null : alloc });
  }

  private paintSide(): void {
    const { app } = this, event = app.a - 1;
    const p = event < 0 ? null : this.page(Math.floor(event / EVENT_PAGE));
    if (!p || event % EVENT_PAGE >= p.length) {
      clear(this.side, el("p", { class: "faint" }, "Choose an event to see its stack."));
      return;
    }
    const i = event % EVENT_PAGE, free = this.isOom(p, i) ? this.freeText(p, i) : "";
    const whole = app.tile(app.key, 0, 0, () => this.paintSide());
    const picked = app.state.pick === null || !whole ? null
      : findAlloc([{ tile: whole, from: whole.first, to: whole.last }], app.state.pick);
    clear(this.side, el("section", {},
      el("h3", {}, `Event ${count(event)}: ${this.actionName(p, i)}, ${bytes(p.size[i])}${free === "" ? "" : `, ${free}`}`),
      el("p", { class: "actions" },
        app.momentLink(event + 1, "Show in the timeline", { pick: app.state.pick }, "button"),
        app.link("Map", { view: "map", a: event + 1 }, "button")),
      this.stacks === null ? null : stackList(app, this.stacks, p.stack[i])),
      picked !== null && allocDetails(app, this.stacks, picked.allocs, picked.row, () => null));
  }

  key(e: KeyboardEvent): boolean {
    const at = Math.max(0, this.app.a - 1);
    const go = (to: number) => this.pick(Math.max(0, Math.min(this.app.device.events - 1, to)));
    const acts: Record<string, () => void> = {
      ArrowDown: () => go(this.next(at, 1)), ArrowUp: () => go(this.next(at, -1)),
      PageDown: () => this.show(this.first + this.visible), PageUp: () => this.show(this.first - this.visible),
      Home: () => this.show(0), End: () => this.show(this.rowCount),
    };
    acts[e.key]?.();
    return acts[e.key] !== undefined;
  }

  private next(event: number, by: number): number {
    if (this.found === null) return event + by;
    const found = this.found.subarray(0, this.foundCount);
    if (by > 0) return found.find((f) => f > event) ?? event;
    for (let i = found.length - 1; i >= 0; i--) if (found[i] < event) return found[i];
    return event;
  }

  private paintBar(): void {
    const { app } = this, filtered = this.found !== null;
    const text = filtered ? `${plural(this.foundCount, "event")} of ${count(this.scanned)}${
      this.scanned < app.device.events && this.foundCount < FOUND_MAX ? " read so far" : ""}`
      : plural(app.device.events, "event");
    const key = `${app.key}${text}${app.state.act}${app.state.q}`;
    if (this.bar.dataset.key === key) return;
    this.bar.dataset.key = key;
    clear(this.bar,
      choice("Action", [["", "all"], ...app.about.actions.map((a): [string, string] => [a, a.replace(/_/g, " ")])],
        app.state.act, (act) => app.store.set({ act })),
      el("span", { class: "where" }, text),
      el("span", { class: "faint" }, app.state.q === "" ? "Search by line, size (>64MiB), address or stream: /" : `search: ${app.state.q}`),
      filtered && button("Show all", "Drop the search and the action", () => app.store.set({ q: "", act: "" })));
  }

  copy(): string {
    const lines = [this.app.subject];
    for (const row of this.body.querySelectorAll(".row"))
      lines.push([...row.querySelectorAll("span")].map((s) => s.textContent ?? "").join("  "));
    return lines.join("\n");
  }
}
