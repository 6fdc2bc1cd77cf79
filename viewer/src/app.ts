// SPDX-License-Identifier: Apache-2.0
/*
 * What every view is given: the source, the state, and answers made into tables. A view is told to
 * `update` after each change of the state, and ends by `finish`.
 */

import { firstMoment, type About, type Device, type ViewFile } from "./about.ts";
import { Pack } from "./pack.ts";
import type { Source } from "./source.ts";
import { Stacks } from "./stacks.ts";
import type { State, Store } from "./state.ts";
import { EventPage, MemoryMap, Tile } from "./tile.ts";
import { bytes, count, duration } from "./format.ts";
import { el, type Child } from "./dom.ts";

export interface View {
  update(now: State, before: State | null): void;
  finish?(): void;
  /* Paint what is shown anew, at once: the colours are others. */
  repaint?(): void;
  /* Act on a key; true if it was one of the view's. */
  key?(event: KeyboardEvent): boolean;
  /* Write what is shown as text. */
  copy?(): string;
}

const TILES_KEPT = 96;

export class App {
  private readonly stacksOf = new Map<number, Promise<Stacks | null>>();
  private readonly tiles = new Map<string, Tile | null | Promise<Tile | null>>();
  status: (text: string) => void = () => {};

  constructor(readonly source: Source, readonly about: About, readonly store: Store) {}

  get state(): State { return this.store.state; }
  get fileIndex(): number { return Math.min(this.state.file, this.about.files.length - 1); }
  get file(): ViewFile { return this.about.files[this.fileIndex]; }
  get deviceIndex(): number {
    return Math.max(0, Math.min(this.state.device, this.file.devices.length - 1));
  }
  get device(): Device { return this.file.devices[this.deviceIndex]; }
  get key(): string { return `${this.fileIndex}/${this.deviceIndex}`; }

  /* The cursor, within the record. */
  get a(): number { return Math.min(this.state.a ?? firstMoment(this.device), this.last); }
  get b(): number | null {
    return this.state.b === null ? null : Math.min(this.state.b, this.last);
  }
  get last(): number { return Math.max(0, this.device.moments - 1); }

  /* The visible moments: at least one, within the record. */
  get range(): [number, number] {
    const whole = Math.max(1, this.device.moments);
    const from = Math.max(0, Math.min(this.state.from ?? 0, whole - 1));
    const to = Math.min(whole, Math.max(this.state.to ?? whole, from + 1));
    return [from, to];
  }

  async pack(key: string): Promise<Pack | null> {
    const answer = await this.source.ask(key);
    return answer === null ? null : new Pack(answer);
  }

  async json<T>(key: string): Promise<T | null> {
    const answer = await this.source.ask(key);
    return answer === null ? null : (JSON.parse(new TextDecoder().decode(answer)) as T);
  }

  stacks(file = this.fileIndex): Promise<Stacks | null> {
    let stacks = this.stacksOf.get(file);
    if (stacks === undefined) {
      stacks = this.pack(`${file}/stacks`).then((p) => (p === null ? null : new Stacks(p)));
      this.stacksOf.set(file, stacks);
    }
    return stacks;
  }

  /*
   * Return tile I of level L: the tile, null if it was left out, or undefined while it is on its
   * way; `arrived` is called then.
   */
  tile(prefix: string, level: number, index: number, arrived: () => void): Tile | null | undefined {
    const key = `${prefix}/tile/${level}/${index}`;
    const known = this.tiles.get(key);
    if (known instanceof Promise) return void known.then(arrived, () => {});
    if (known !== undefined) {
      this.tiles.delete(key);
      this.tiles.set(key, known);
      return known;
    }
    const coming = this.pack(key).then((p) => (p === null ? null : new Tile(p)));
    this.tiles.set(key, coming);
    coming.then((tile) => {
      this.tiles.set(key, tile);
      for (const old of this.tiles.keys()) {
        if (this.tiles.size <= TILES_KEPT) break;
        if (!old.endsWith("/tile/0/0")) this.tiles.delete(old);
      }
      arrived();
    }, (error: unknown) => {
      this.tiles.set(key, null);
      this.status(`Cannot draw ${key}: ${String(error)}`);
    });
    return undefined;
  }

  async wholeTile(prefix: string): Promise<Tile | null> {
    return new Promise((resolve) => {
      const look = () => {
        const tile = this.tile(prefix, 0, 0, look);
        if (tile !== undefined) resolve(tile);
      };
      look();
    });
  }

  async map(moment: number): Promise<MemoryMap | null> {
    const pack = await this.pack(`${this.key}/map/${moment}`);
    return pack === null ? null : new MemoryMap(pack);
  }

  async events(page: number): Promise<EventPage | null> {
    const pack = await this.pack(`${this.key}/events/${page}`);
    return pack === null ? null : new EventPage(pack);
  }

  /* Make a link to a moment. A number in a text is one of these. */
  momentLink(moment: number, text: string, change: Partial<State> = {}, cls = ""): HTMLAnchorElement {
    return this.link(text, { view: "timeline", a: moment, pick: null, ...this.around(moment),
      ...change }, cls);
  }

  link(text: Child, change: Partial<State>, cls = ""): HTMLAnchorElement {
    return el("a", { href: this.store.link(change), class: cls }, text);
  }

  /* Keep the visible moments if `moment` is among them; show the whole record otherwise. */
  around(moment: number): Partial<State> {
    const [from, to] = this.range;
    return moment >= from && moment < to ? {} : { from: null, to: null };
  }

  /* Name a moment: "after event 6 252". Events are counted from 0, as the command counts them. */
  momentName(moment: number): string {
    if (this.device.events === 0) return "at the end of the file";
    if (moment >= this.last) return "at the end of the file";
    return moment === 0 ? "before the first event" : `after event ${count(moment - 1)}`;
  }

  /* Name the device and its file. */
  get subject(): string { return `${this.file.name}, device ${this.device.device}`; }
}

export { bytes, count, duration };
