// SPDX-License-Identifier: Apache-2.0
/* Stacks of a file, out of the pack `F/stacks`. Texts are decoded when they are first asked for. */

import { Pack, NONE, PackError, checkBelow, sameLength } from "./pack.ts";
import { clean } from "./format.ts";
import { FLAG_CARRIED_OVER, FLAG_STACK_OF_FREE } from "./tile.ts";

function checkRising(name: string, column: Uint32Array, last: number): void {
  if (column.length === 0) throw new PackError(`${name} is empty`);
  for (let i = 1; i < column.length; i++)
    if (column[i] < column[i - 1]) throw new PackError(`${name} falls at row ${i}`);
  if (column[0] !== 0 || column[column.length - 1] !== last)
    throw new PackError(`${name} does not cover what it divides`);
}

/* Sites that are no frame: an allocation from before the recording, and one without any stack. */
export const BEFORE = 0xfffffffe, NO_STACK = 0xfffffffd;

/* The parts of a name by which allocations are put together. */
export type NameBy = "line" | "function" | "file";

export class Stacks {
  readonly count: number;
  private readonly text: Uint8Array;
  private readonly textFrom: Uint32Array;
  private readonly name: Uint32Array;
  private readonly file: Uint32Array;
  private readonly line: Uint32Array;
  private readonly module: Uint32Array;
  private readonly func: Uint32Array;
  private readonly user: Uint8Array;
  private readonly from: Uint32Array;
  private readonly frame: Uint32Array;
  private readonly siteFrame: Uint32Array;
  private readonly texts = new Map<number, string>();
  private readonly titles = { line: new Map<number, string>(), function: new Map<number, string>(),
    file: new Map<number, string>() };

  constructor(pack: Pack) {
    this.text = pack.u8("text");
    this.textFrom = pack.u32("text_from");
    this.name = pack.u32("frame_name");
    this.file = pack.u32("frame_file");
    this.line = pack.u32("frame_line");
    this.module = pack.u32("frame_module");
    this.func = pack.u32("frame_func");
    this.user = pack.u8("frame_user");
    this.from = pack.u32("stack_from");
    this.frame = pack.u32("stack_frame");
    this.siteFrame = pack.u32("stack_site");
    this.count = this.siteFrame.length;
    checkRising("text_from", this.textFrom, this.text.length);
    checkRising("stack_from", this.from, this.frame.length);
    const frames = sameLength("frames", this.name, this.file, this.line, this.module, this.func, this.user);
    if (this.from.length !== this.count + 1) throw new PackError("stack_from is of another length");
    checkBelow("frame_name", this.name, this.textFrom.length - 1, true);
    checkBelow("frame_file", this.file, this.textFrom.length - 1, true);
    checkBelow("frame_module", this.module, this.textFrom.length - 1);
    checkBelow("frame_func", this.func, this.textFrom.length - 1);
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

  /*
   * Write a frame as the command's owners have it: by line as "model.py:39 forward", by function as
   * "model.py forward", by file as "model.py". A site that is no frame has a name in parentheses.
   */
  title(frame: number, by: NameBy = "line"): string {
    if (frame === NONE) return "(no Python stack)";
    if (frame === BEFORE) return "(earlier, no stack)";
    if (frame === NO_STACK) return "(no stack)";
    let title = this.titles[by].get(frame);
    if (title === undefined) {
      const file = this.textOf(this.module[frame]), name = by === "file" ? "" : this.textOf(this.func[frame]);
      const line = by === "line" && this.line[frame] > 0 ? `:${this.line[frame]}` : "";
      title = clean([`${file}${line}`, name].filter((part) => part !== "").join(" ")) || "(no name)";
      this.titles[by].set(frame, title);
    }
    return title;
  }

  /* Return the frame that a stack is known by; NONE if it has none. */
  site(stack: number): number { return stack < this.count ? this.siteFrame[stack] : NONE; }

  /* Return the site of an allocation with those flags. */
  siteOf(stack: number, flags: number): number {
    const site = this.site(stack);
    if (site !== NONE) return site;
    if ((flags & FLAG_CARRIED_OVER) !== 0) return BEFORE;
    return stack === NONE || this.frameCount === 0 ? NO_STACK : NONE;
  }

  /* Write the site of an allocation; a stack of its free is marked as such. */
  siteTitle(stack: number, flags = 0, by: NameBy = "line"): string {
    const site = this.siteOf(stack, flags), title = this.title(site, by);
    return (flags & FLAG_STACK_OF_FREE) !== 0 && site < NO_STACK ? `${title} (freed there)` : title;
  }
}
