// SPDX-License-Identifier: Apache-2.0
/*
 * A value that the URL's hash holds, and who wants to know of its changes. So each state of a page has
 * a link, and Back works.
 */

export interface Form<S> {
  read(hash: string): S;
  write(state: S): string;
  /* Tell whether the step from one state to the other is a new entry of the history. */
  isPlace(now: S, before: S): boolean;
}

/* Read a value of a hash. A text that is none gives null, or `other`. */
export function readNumber(text: string | null): number | null {
  if (text === null || !/^\d{1,10}(\.\d{1,4})?$/.test(text)) return null;
  return Number(text);
}

export function readWhole(text: string | null): number | null {
  const n = readNumber(text);
  return n === null ? null : Math.floor(n);
}

export function readWord<T extends string>(text: string | null, words: readonly T[], other: T): T {
  return words.find((w) => w === text) ?? other;
}

export class HashStore<S extends object> {
  state: S;
  private readonly listeners: ((now: S, before: S) => void)[] = [];
  private timer: number | undefined;

  constructor(private readonly form: Form<S>) {
    this.state = form.read(location.hash);
    addEventListener("hashchange", () => this.replace(form.read(location.hash)));
    addEventListener("click", (event) => this.follow(event));
  }

  listen(call: (now: S, before: S) => void): void { this.listeners.push(call); }

  private replace(next: S): void {
    const before = this.state;
    this.state = next;
    for (const call of this.listeners) call(next, before);
  }

  set(change: Partial<S>): void {
    const next = { ...this.state, ...change }, isPlace = this.form.isPlace(next, this.state);
    this.replace(next);
    if (isPlace) this.write(true);
    else this.timer ??= setTimeout(() => this.write(false), 200);
  }

  /* Follow a link to another state. The browser would not do: inside a notebook's frame the address
     that a link completes is the notebook's, so the frame would show the notebook once more. */
  private follow(event: MouseEvent): void {
    const hash = event.target instanceof Element ? event.target.closest("a")?.getAttribute("href") : null;
    if (!hash?.startsWith("#") || event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    this.replace(this.form.read(hash));
    this.write(true);
  }

  /* Write the hash, after the address of this document and not of the base: they differ inside a
     notebook's frame. A browser may forbid the write there, and the page goes on without. */
  private write(isPlace: boolean): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const hash = this.form.write(this.state);
    if (hash === location.hash) return;
    const address = location.href.split("#")[0] + hash;
    try {
      if (isPlace) history.pushState(null, "", address); else history.replaceState(null, "", address);
    } catch {
      return;
    }
  }

  link(change: Partial<S>): string { return this.form.write({ ...this.state, ...change }); }
}
