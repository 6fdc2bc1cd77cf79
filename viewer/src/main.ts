// SPDX-License-Identifier: Apache-2.0
/* The page: the head, the views, the keys that hold everywhere. */

import { oomMoment, readAbout } from "./about.ts";
import { App, type View } from "./app.ts";
import { copyText } from "./clipboard.ts";
import { Compare } from "./compare.ts";
import { Desk } from "./desk.ts";
import { button, choice, clear, el } from "./dom.ts";
import { EventsView } from "./events.ts";
import { clean } from "./format.ts";
import { KEYS, SEARCH_NOTE, keyDialog } from "./keys.ts";
import { MapView } from "./map.ts";
import { OwnersView } from "./owners.ts";
import { openSource, waitsForFiles, type Source } from "./source.ts";
import { Store, VIEWS, type State, type ViewName } from "./state.ts";
import { StepsView } from "./steps.ts";
import { lightOnPaper, turnTheme } from "./theme.ts";
import { Timeline } from "./timeline.ts";
import { Trust } from "./trust.ts";
import { Verdict } from "./verdict.ts";
import { WhatIf } from "./whatif.ts";

const TITLES: Record<ViewName, string> = {
  verdict: "Verdict", timeline: "Timeline", map: "Memory map", owners: "Owners", steps: "Steps",
  whatif: "What-if", compare: "Compare", events: "Events", trust: "Trust",
};
const MAKERS: Record<ViewName, new (app: App, host: HTMLElement) => View> = {
  verdict: Verdict, timeline: Timeline, map: MapView, owners: OwnersView, steps: StepsView,
  whatif: WhatIf, compare: Compare, events: EventsView, trust: Trust,
};

class Page {
  private readonly host = el("main", { id: "view", tabIndex: -1 });
  private readonly tabs = el("nav", { aria: { label: "Views" } });
  private readonly subject = el("div", { class: "subject" });
  private readonly status = el("div", { class: "status", role: "status" });
  private readonly input = el("input", { type: "search", placeholder: "Search: line, category, >64MiB   /",
    aria: { label: "Search" } });
  private readonly dialog = keyDialog(KEYS, SEARCH_NOTE);
  private view: View | null = null;
  private shown: ViewName | null = null;
  private statusTimer = 0;
  private searchTimer = 0;

  constructor(private readonly app: App, reopen: boolean) {
    app.status = (text) => this.say(text);
    document.body.replaceChildren(
      el("a", { class: "skip", href: "#view", on: { click: (e) => { e.preventDefault(); this.host.focus(); } } },
        "To the view"),
      el("header", {}, el("h1", {}, "Drystone"), this.subject, this.tabs, this.input,
        reopen && button("Open", "Open other recordings", () => { location.hash = ""; location.reload(); }),
        button("Copy", "Copy what is shown as text for an issue (key c)", () => this.copy()),
        button("◐", "Dark or light (key t)", () => this.turnTheme()),
        button("?", "Keys (key ?)", () => this.dialog.showModal())),
      this.host, this.status, this.dialog);
    this.input.addEventListener("input", () => {
      clearTimeout(this.searchTimer);
      this.searchTimer = setTimeout(() => app.store.set({ q: this.input.value.trim().slice(0, 200) }), 120);
    });
    this.input.addEventListener("keydown", (e) => this.inputKey(e));
    app.store.listen((now, before) => this.update(now, before));
    addEventListener("keydown", (e) => this.key(e));
    lightOnPaper(() => this.view?.repaint?.());
    this.update(app.state, null);
  }

  private update(now: State, before: State | null): void {
    this.paintHead(now);
    if (this.shown !== now.view) {
      this.view?.finish?.();
      this.host.replaceChildren();
      this.host.className = `view-${now.view}`;
      delete document.body.dataset.painted;
      this.view = new MAKERS[now.view](this.app, this.host);
      this.shown = now.view;
      before = null;
    }
    this.view?.update(now, before);
  }

  private paintHead(now: State): void {
    const { app } = this;
    document.title = `${TITLES[now.view]} — ${clean(app.file.name)} — Drystone`;
    clear(this.tabs, ...VIEWS.map((name) => {
      const a = app.link(TITLES[name], { view: name }, name === now.view ? "on" : "");
      if (name === now.view) a.setAttribute("aria-current", "page");
      return a;
    }));
    if (document.activeElement !== this.input) this.input.value = now.q;
    const fresh: Partial<State> = { from: null, to: null, a: null, b: null, pick: null };
    const files = app.about.files.map((f, i): [string, string] => [String(i), clean(f.name)]);
    const devices = app.file.devices.map((d, i): [string, string] =>
      [String(i), `device ${d.device}${d.ooms.length > 0 ? ", out of memory" : ""}`]);
    clear(this.subject,
      files.length > 1 ? choice("File", files, String(app.fileIndex), (v) =>
        app.store.set({ file: Number(v), device: app.about.files[Number(v)].main ?? 0, ...fresh }))
        : el("span", { class: "file", title: files[0][1] }, files[0][1]),
      devices.length > 1 && choice("Device", devices, String(app.deviceIndex), (v) =>
        app.store.set({ device: Number(v), ...fresh })));
  }

  private say(text: string): void {
    this.status.textContent = text;
    clearTimeout(this.statusTimer);
    this.statusTimer = setTimeout(() => { this.status.textContent = ""; }, 6000);
  }

  private copy(): void {
    void copyText(`${this.view?.copy?.() ?? ""}\n`,
      () => this.say("Copied as text. Names of files and functions are in it."));
  }

  private turnTheme(): void {
    turnTheme();
    this.shown = null;
    this.update(this.app.state, null);
  }

  private inputKey(e: KeyboardEvent): void {
    e.stopPropagation();
    if (e.key === "Escape") {
      this.input.value = "";
      this.app.store.set({ q: "" });
      this.input.blur();
    } else if (e.key === "Enter") {
      clearTimeout(this.searchTimer);
      this.app.store.set({ q: this.input.value.trim().slice(0, 200),
        ...(["timeline", "map", "owners", "events"].includes(this.app.state.view) ? {} : { view: "timeline" as const }) });
      this.input.blur();
    }
  }

  private goTo(moment: number | null, what: string): void {
    if (moment === null) {
      this.say(`There is no ${what}.`);
      return;
    }
    this.app.store.set({ a: moment, pick: null, ...this.app.around(moment) });
  }

  private goToMark(by: number): void {
    const { device, a } = this.app;
    const moments = [...device.marks.map((m) => m.moment), ...device.ooms.map((o) => o.moment - 1)]
      .sort((x, y) => x - y);
    const next = by > 0 ? moments.find((m) => m > a) : moments.reverse().find((m) => m < a);
    this.goTo(next ?? null, "further mark");
  }

  private key(e: KeyboardEvent): void {
    const target = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || this.dialog.open) return;
    if (target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement) return;
    if (e.key === "Enter" && target !== document.body && target.closest("a, button, summary") !== null) return;
    if (this.view?.key?.(e) === true || this.pageKey(e)) e.preventDefault();
  }

  private pageKey(e: KeyboardEvent): boolean {
    const { app } = this, { store } = app;
    const acts: Record<string, () => void> = {
      "/": () => { this.input.focus(); this.input.select(); },
      "?": () => this.dialog.showModal(),
      o: () => this.goTo(oomMoment(app.device), "failure"),
      p: () => this.goTo(app.device.peaks.active.moment, "peak"),
      n: () => this.goToMark(1), N: () => this.goToMark(-1),
      b: () => store.set({ b: app.a }), x: () => store.set({ b: null }),
      d: () => store.set({ device: (app.deviceIndex + 1) % app.file.devices.length, from: null, to: null,
        a: null, b: null, pick: null }),
      c: () => this.copy(), t: () => this.turnTheme(),
      Escape: () => store.set({ pick: null, q: "" }),
    };
    if (/^[1-9]$/.test(e.key)) store.set({ view: VIEWS[Number(e.key) - 1] });
    else if (acts[e.key] === undefined) return false;
    else acts[e.key]();
    return true;
  }
}

function fail(error: unknown): void {
  document.body.replaceChildren(el("main", {}, el("h1", {}, "Drystone"),
    el("p", { class: "error" }, `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`),
    el("p", {}, "A report is written by: drystone view FILE -o report.html")));
}

async function show(source: Source, reopen: boolean): Promise<void> {
  const answer = await source.ask("about");
  if (answer === null) throw new Error("this page holds no answers");
  const about = readAbout(answer), store = new Store();
  if (about.series && location.hash === "") store.state.view = "compare";
  new Page(new App(source, about, store), reopen);
}

if (waitsForFiles()) new Desk((source) => show(source, true));
else show(openSource(), false).catch(fail);
