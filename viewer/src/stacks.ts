// SPDX-License-Identifier: Apache-2.0
/* Stacks of a file, out of the pack `F/stacks`. Texts are decoded when they are first asked for. */

import { Pack, NONE, PackError, checkBelow, sameLength } from "./pack.ts";
import { baseName, clean } from "./format.ts";
import { FLAG_GHOST, FLAG_STACK_OF_FREE } from "./tile.ts";

function checkRising(name: string, column: Uint32Array, last: number): void {
  if (column.length === 0) throw new PackError(`${name} is empty`);
  for (let i = 1; i < column.length; i++)
    if (column[i] < column[i - 1]) throw new PackError(`${name} falls at row ${i}`);
  if (column[0] !== 0 || column[column.length - 1] !== last)
    throw new PackError(`${name} does not cover what it divides`);
}

/* Write a node of autograd as the command does; null for any other frame. */
function nativeTitle(name: string): string | null {
  const node = /^torch::autograd::(?:\w+::)*(\w+)::apply\b/.exec(name);
  return node === null ? null : `autograd ${node[1]}`;
}

/* A site that is no frame: an allocation without a stack, from before the recording. */
export const BEFORE = 0xfffffffe;

export class Stacks {
  readonly count: number;
  private readonly text: Uint8Array;
  private readonly textFrom: Uint32Array;
  private readonly name: Uint32Array;
  private readonly file: Uint32Array;
  private readonly line: Uint32Array;
  private readonly user: Uint8Array;
  private readonly from: Uint32Array;
  private readonly frame: Uint32Array;
  private readonly siteFrame: Uint32Array;
  private readonly texts = new Map<number, string>();
  private readonly titles = new Map<number, string>();

  constructor(pack: Pack) {
    this.text = pack.u8("text");
    this.textFrom = pack.u32("text_from");
    this.name = pack.u32("frame_name");
    this.file = pack.u32("frame_file");
    this.line = pack.u32("frame_line");
    this.user = pack.u8("frame_user");
    this.from = pack.u32("stack_from");
    this.frame = pack.u32("stack_frame");
    this.siteFrame = pack.u32("stack_site");
    this.count = this.siteFrame.length;
    checkRising("text_from", this.textFrom, this.text.length);
    checkRising("stack_from", this.from, this.frame.length);
    const frames = sameLength("frames", this.name, this.file, this.line, this.user);
    if (this.from.length !== this.count + 1) throw new PackError("stack_from is of another length");
    checkBelow("frame_name", this.name, this.textFrom.length - 1, true);
    checkBelow("frame_file", this.file, this.textFrom.length - 1, true);
    checkBelow("stack_frame", this.frame, frames);
    checkBelow("stack_site", this.siteFrame, frames, true);
  }

  get frameCount(): number { return this.name.length; }

  private textOf(i: number): string {
    if (i === NONE) return "";
    let text = this.texts.get(i);
    if (text === undefined) {
      text = new TextDecoder().decode(this.text.subarray(this.textFrom[i], this.textFrom[i + 1]));
      this.texts.set(i, text);
    }
    return text;
  }

  /* Return the frames of a stack, the innermost first. */
  frames(stack: number): Uint32Array {
    return stack < this.count ? this.frame.subarray(this.from[stack], this.from[stack + 1])
                              : new Uint32Array(0);
  }

  isUser(frame: number): boolean { return this.user[frame] === 1; }
  functionOf(frame: number): string { return clean(this.textOf(this.name[frame])); }
  fileOf(frame: number): string { return clean(this.textOf(this.file[frame])); }
  lineOf(frame: number): number { return this.line[frame]; }

  /* Write a frame as "model.py:39 forward". A frame without a line is written by its name. */
  title(frame: number): string {
    if (frame === NONE) return "(no Python stack)";
    if (frame === BEFORE) return "(before the recording)";
    let title = this.titles.get(frame);
    if (title === undefined) {
      const file = baseName(this.textOf(this.file[frame]));
      const where = file === "" ? "" : this.line[frame] > 0 ? `${file}:${this.line[frame]}` : file;
      const name = this.textOf(this.name[frame]);
      title = nativeTitle(name) ?? (clean(`${where} ${name}`.trim(), 160) || "(no name)");
      this.titles.set(frame, title);
    }
    return title;
  }

  /* Return the frame that a stack is known by; NONE if it has none. */
  site(stack: number): number { return stack < this.count ? this.siteFrame[stack] : NONE; }

  /* Return the site of an allocation with those flags. */
  siteOf(stack: number, flags: number): number {
    const site = this.site(stack);
    return site === NONE && (flags & FLAG_GHOST) !== 0 ? BEFORE : site;
  }

  /* Write the site of an allocation; a stack of its free is marked as such. */
  siteTitle(stack: number, flags = 0): string {
    const title = this.title(this.siteOf(stack, flags));
    return (flags & FLAG_STACK_OF_FREE) !== 0 ? `${title} (freed there)` : title;
  }
}
