// SPDX-License-Identifier: Apache-2.0
/* The page of a job: its head, its parts one below the other, the keys that hold everywhere. */

import { copyText } from "../clipboard.ts";
import { button, el } from "../dom.ts";
import { clean, plural } from "../format.ts";
import { keyDialog, type Keys } from "../keys.ts";
import { openSource } from "../source.ts";
import { lightOnPaper, turnTheme } from "../theme.ts";
import { Desk, type PartView } from "./desk.ts";
import { openJob } from "./job.ts";
import { Files, Findings, Settings } from "./lists.ts";
import { Ranks } from "./ranks.ts";
import { PARTS, Store, type Part, type State } from "./state.ts";
import { Timeline } from "./timeline.ts";
import { headline, settingLine, Verdict } from "./verdict.ts";

const TITLES: Record<Part, string> = { verdict: "Verdict", timeline: "Timeline", ranks: "Ranks", findings: "Findings",
  settings: "Settings", files: "Files" };
const MAKERS: Record<Part, new (desk: Desk, host: HTMLElement) => PartView> = { verdict: Verdict, timeline: Timeline, ranks: Ranks,
  findings: Findings, settings: Settings, files: Files };
const KEYS: Keys = [
  ["Everywhere", [["1 … 6", "the parts, in their order"], ["/", "find ranks"], ["Esc", "leave the rank, end the search"],
    ["c", "copy the verdict as text"], ["t", "dark or light"], ["?", "this list"]]],
  ["Timeline", [["← →", "the step before, after"], ["Home, End", "the first, the last step"], ["Enter", "the rank that holds most"]]],
  ["Ranks", [["← → ↑ ↓", "another rank"], ["Home, End", "the first, the last rank"]]],
];
const NOTE = "Find ranks: 17, 8-15, group:2, oom, differs, alike, a part of a path or a verdict. All words must hold.";

class Page {
  private readonly host = el("main", { id: "view", tabIndex: -1 });
  private readonly status = el("div", { class: "status", role: "status" });
  private readonly input = el("input", { type: "search", placeholder: "Find ranks: 8-15, group:2, oom   /", aria: { label: "Find ranks" } });
  private readonly dialog = keyDialog(KEYS, NOTE);
  private readonly hosts = new Map<Part, HTMLElement>();
  private readonly views: PartView[] = [];
  private statusTimer = 0;
  private searchTimer = 0;

  constructor(private readonly desk: Desk) {
    const { job, store } = desk;
    desk.status = (text) => this.say(text);
    document.title = `${headline(job)} — ${clean(job.fleet.job)} — Drystone`;
    document.body.replaceChildren(
      el("a", { class: "skip", href: "#view", on: { click: (e) => { e.preventDefault(); this.host.focus(); } } }, "To the verdict"),
      el("header", {}, el("h1", {}, "Drystone"),
        el("div", { class: "subject" }, el("span", { class: "file", title: clean(job.fleet.job) }, clean(job.fleet.job))),
        el("nav", { aria: { label: "Parts" } }, ...PARTS.map((p) => el("a", { href: "", data: { part: p } }, TITLES[p]))),
        this.input, button("Copy", "Copy the verdict as text for an issue (key c)", () => this.copy()),
        button("◐", "Dark or light (key t)", () => this.turn()), button("?", "Keys (key ?)", () => this.dialog.showModal())),
      this.host, this.status, this.dialog);
    const page = el("div", { class: "page fleet" });
    this.host.append(page);
    for (const part of PARTS) {
      const host = el("section", { id: part, aria: { label: TITLES[part] } });
      page.append(host);
      this.hosts.set(part, host);
      this.views.push(new MAKERS[part](desk, host));
    }
    this.listen();
    store.listen((now, before) => this.update(now, before));
    this.update(store.state, null);
  }

  private listen(): void {
    this.input.addEventListener("input", () => {
      clearTimeout(this.searchTimer);
      this.searchTimer = setTimeout(() => this.search(false), 120);
    });
    this.input.addEventListener("keydown", (e) => {
      e.stopPropagation();
      if (e.key === "Enter") this.search(true);
      else if (e.key === "Escape") {
        this.input.value = "";
        this.search(false);
      } else return;
      this.input.blur();
    });
    addEventListener("keydown", (e) => this.key(e));
    lightOnPaper(() => this.repaint());
  }

  private search(goes: boolean): void {
    clearTimeout(this.searchTimer);
    this.desk.store.set({ q: this.input.value.slice(0, 200), page: 0, ...(goes ? { part: "ranks" as const } : {}) });
    if (goes) this.scroll("ranks");
  }

  private update(now: State, before: State | null): void {
    for (const a of document.querySelectorAll<HTMLAnchorElement>("header nav a"))
      a.href = this.desk.store.link({ part: a.dataset.part as Part });
    if (document.activeElement !== this.input) this.input.value = now.q;
    for (const view of this.views) view.update(now, before);
    const isSame = before !== null && Object.keys(now).every((k) => now[k as keyof State] === before[k as keyof State]);
    if (before === null ? now.part !== "verdict" : now.part !== before.part || isSame) this.scroll(now.part);
  }

  private scroll(part: Part): void {
    this.host.scrollTop = part === "verdict" ? 0 : (this.hosts.get(part)?.offsetTop ?? 0) - 8;
  }

  private repaint(): void { for (const view of this.views) view.repaint?.(); }

  private turn(): void {
    turnTheme();
    this.repaint();
  }

  private say(text: string): void {
    this.status.textContent = text;
    clearTimeout(this.statusTimer);
    this.statusTimer = setTimeout(() => { this.status.textContent = ""; }, 6000);
  }

  private copy(): void {
    const { job } = this.desk, { fleet, about } = job, s = about.sentences, line = settingLine(job);
    const text = [`${clean(fleet.job)}: ${plural(fleet.files.length, "file")}, ${plural(job.used.length, "rank")} in ${plural(fleet.groups.length, "group")}`,
      `VERDICT  ${headline(job)}`,
      ...(fleet.first_failure !== null ? [`FAILED   ${job.who(fleet.first_failure.file)} ${clean(s.failure ?? "")} ${clean(fleet.first_failure.line ?? "")}`] : []),
      `CHANGE   ${clean(s.advice)} ${clean(fleet.advice.finding?.line ?? "")}`.trimEnd(), ...(line === null ? [] : [`         ${clean(line)}`]),
      ...fleet.findings.slice(0, 40).map((f, i) => `${(f.file !== null ? job.who(f.file) : `group ${f.group}`).padEnd(10)} ${
        clean(about.findings[i] ?? "")} ${clean(f.line ?? "")}`.trimEnd())].join("\n");
    void copyText(`${text}\n`, () => this.say("Copied as text. Names of files and functions are in it."));
  }

  private key(e: KeyboardEvent): void {
    const target = e.target as HTMLElement, { store } = this.desk;
    if (e.ctrlKey || e.metaKey || e.altKey || this.dialog.open) return;
    if (target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement) return;
    const acts: Record<string, () => void> = {
      "/": () => { this.input.focus(); this.input.select(); }, "?": () => this.dialog.showModal(),
      c: () => this.copy(), t: () => this.turn(), Escape: () => store.set({ file: null, q: "", page: 0 }),
    };
    PARTS.forEach((part, i) => { acts[String(i + 1)] = () => { store.set({ part }); this.scroll(part); }; });
    if (acts[e.key] === undefined) return;
    acts[e.key]();
    e.preventDefault();
  }
}

async function start(): Promise<void> {
  try {
    new Page(new Desk(await openJob(openSource()), new Store()));
    document.body.dataset.painted = "fleet";
  } catch (error) {
    document.body.replaceChildren(el("main", {}, el("h1", {}, "Drystone"),
      el("p", { class: "error" }, `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`),
      el("p", {}, "It is written by: drystone fleet DIR -o fleet.html")));
  }
}

void start();
