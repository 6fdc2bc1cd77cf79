// SPDX-License-Identifier: Apache-2.0
/*
 * The timeline's drawing: one canvas for the picture, one over it for what follows the pointer. The
 * lower one is painted again only if the moments, the size, the colours or the search change.
 */

import { oomMoment, type Device } from "./about.ts";
import { bytes, bytesShort, clean, count, duration } from "./format.ts";
import { mix, themeColour } from "./palette.ts";
import type { Picture } from "./picture.ts";
import { Raster, type Look } from "./raster.ts";
import { Scale, ticks, type Knots } from "./scale.ts";
import type { Tile } from "./tile.ts";

export const LEFT = 76, RIGHT = 14, TOP = 40, BOTTOM = 26;
const FLAG = 19; // pixels from a cursor's name to the next one
const LINE_GAP = 12; // pixels between marks of one kind
const FONT = "12px system-ui, sans-serif";

/* The most that PyTorch could have reserved, and how it is said. */
export interface Limit { bytes: number; text: string }

export interface Scene {
  device: Device;
  picture: Picture;
  from: number;
  to: number;
  knots: Knots | null;
  top: number; // bytes at the upper edge
  limit: Limit | null;
  look: Omit<Look, "dim" | "small">;
  small: string[];
  a: number;
  b: number | null;
  pick: number | null;
  isEventAxis: boolean;
}

export interface Pointer { x: number; y: number }

function makeCanvas(name: string): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.className = name;
  return canvas;
}

export class Plot {
  readonly under = makeCanvas("under");
  readonly over = makeCanvas("over");
  readonly raster = new Raster();
  scale = new Scale({ from: 0, to: 1, width: 1 }, null);
  private width = 0;
  private height = 0;
  private ratio = 1;
  lastPaint = 0; // milliseconds

  /* Take the size of the place that the canvases fill. Returns false if there is no room. */
  resize(width: number, height: number): boolean {
    this.ratio = Math.min(2, devicePixelRatio || 1);
    this.width = Math.max(0, Math.floor(width));
    this.height = Math.max(0, Math.floor(height));
    for (const canvas of [this.under, this.over]) {
      canvas.width = this.width * this.ratio;
      canvas.height = this.height * this.ratio;
      canvas.style.width = `${this.width}px`;
      canvas.style.height = `${this.height}px`;
    }
    return this.plotWidth > 20 && this.plotHeight > 20;
  }

  get plotWidth(): number { return this.width - LEFT - RIGHT; }
  get plotHeight(): number { return this.height - TOP - BOTTOM; }

  /* Return the moment under `x` of the page's element. */
  momentAt(x: number): number { return this.scale.moment(x - LEFT); }
  isInside({ x, y }: Pointer): boolean {
    return x >= LEFT && x < this.width - RIGHT && y >= TOP && y < this.height - BOTTOM;
  }

  hit({ x, y }: Pointer): ReturnType<Raster["at"]> {
    const r = this.ratio;
    return this.raster.at(Math.floor((x - LEFT) * r), Math.floor((y - TOP) * r));
  }

  private pen(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
    const pen = canvas.getContext("2d") as CanvasRenderingContext2D;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = FONT;
    pen.textBaseline = "middle";
    return pen;
  }

  paint(scene: Scene): void {
    const begin = performance.now();
    const r = this.ratio, w = Math.floor(this.plotWidth * r), h = Math.floor(this.plotHeight * r);
    const paper = themeColour("paper");
    this.scale = new Scale({ from: scene.from, to: scene.to, width: this.plotWidth }, scene.knots);
    const fine = new Scale({ from: scene.from, to: scene.to, width: w }, scene.knots);
    this.raster.paint(scene.picture.parts, fine, w, h, scene.top, {
      ...scene.look, dim: (hex) => mix(hex, paper, 0.16), small: scene.small,
    });
    const pen = this.pen(this.under);
    pen.putImageData(new ImageData(new Uint8ClampedArray(this.raster.pixels.buffer as ArrayBuffer),
                                   w, h), LEFT * r, TOP * r);
    this.paintHeights(pen, scene.top);
    this.paintReserved(pen, scene.top);
    this.paintTicks(pen, scene);
    this.paintLimit(pen, scene);
    this.paintMarks(pen, scene);
    this.lastPaint = performance.now() - begin;
  }

  private y(value: number, top: number): number {
    return TOP + this.plotHeight * (1 - value / top);
  }

  private paintHeights(pen: CanvasRenderingContext2D, top: number): void {
    pen.textAlign = "right";
    for (const value of ticks(0, top, this.plotHeight / 48, true)) {
      const y = Math.round(this.y(value, top)) + 0.5;
      pen.fillStyle = themeColour("faint");
      pen.fillText(bytesShort(value), LEFT - 8, y);
      pen.strokeStyle = themeColour("grid");
      pen.globalAlpha = 0.4;
      pen.beginPath();
      pen.moveTo(LEFT, y);
      pen.lineTo(this.width - RIGHT, y);
      pen.stroke();
      pen.globalAlpha = 1;
    }
  }

  private paintReserved(pen: CanvasRenderingContext2D, top: number): void {
    const { reserved, column } = this.raster;
    pen.strokeStyle = themeColour("reserved");
    pen.lineWidth = 1.75;
    pen.beginPath();
    let isDown = false, end = LEFT;
    for (let i = 0; i < reserved.length; i++) {
      if (column[i] < 0) {
        if (isDown) pen.lineTo(end, this.y(reserved[i - 1], top));
        isDown = false;
        continue;
      }
      const x = LEFT + i / this.ratio, y = this.y(reserved[i], top);
      if (isDown && reserved[i] === reserved[i - 1]) { // one line for all of a flat stretch
        end = x + 1 / this.ratio;
        continue;
      }
      if (isDown) pen.lineTo(end, this.y(reserved[i - 1], top));
      if (isDown) pen.lineTo(x, y); else pen.moveTo(x, y);
      end = x + 1 / this.ratio;
      isDown = true;
    }
    if (isDown) pen.lineTo(end, this.y(reserved[reserved.length - 1], top));
    pen.stroke();
    pen.lineWidth = 1;
  }

  private paintTicks(pen: CanvasRenderingContext2D, scene: Scene): void {
    const y = this.height - BOTTOM;
    pen.strokeStyle = themeColour("grid");
    pen.strokeRect(LEFT - 0.5, TOP - 0.5, this.plotWidth + 1, this.plotHeight + 1);
    pen.fillStyle = themeColour("faint");
    pen.textAlign = "center";
    const flags = [scene.a, scene.b ?? scene.a].map((m) => this.cursorX(m));
    let busy = -Infinity;
    const label = (x: number, text: string) => {
      const half = pen.measureText(text).width / 2;
      const at = Math.max(LEFT + half, Math.min(this.width - half - 2, LEFT + x));
      if (at - half < busy + 8 || flags.some((f) => Math.abs(f - at) < half + 2 * FLAG)) return;
      busy = at + half;
      pen.fillText(text, at, y + 14);
      pen.fillRect(Math.round(LEFT + x), y, 1, 4);
    };
    if (scene.isEventAxis) {
      for (const event of ticks(scene.from - 1, scene.to - 1, this.plotWidth / 110)) {
        const x = this.scale.x(event + 1); // event 0 lies between moments 0 and 1
        if (Number.isInteger(event) && event >= 0 && event < scene.device.events)
          label(x, `event ${count(event)}`);
      }
      return;
    }
    const [t0, t1] = this.scale.times;
    for (const t of ticks(t0, t1, this.plotWidth / 110)) {
      label(((t - t0) / (t1 - t0)) * this.plotWidth, `+${duration(t)}`);
    }
  }

  private paintLimit(pen: CanvasRenderingContext2D, scene: Scene): void {
    if (scene.limit === null || scene.limit.bytes > scene.top) return;
    const y = Math.round(this.y(scene.limit.bytes, scene.top)) + 0.5;
    pen.strokeStyle = themeColour("alarm");
    pen.setLineDash([7, 4]);
    pen.beginPath();
    pen.moveTo(LEFT, y);
    pen.lineTo(this.width - RIGHT, y);
    pen.stroke();
    pen.setLineDash([]);
    const oom = oomMoment(scene.device), isLeft = oom !== null && this.scale.x(oom) > this.plotWidth / 2;
    this.tag(pen, scene.limit.text, isLeft ? LEFT + 6 : this.width - RIGHT - 6, y + 12, "alarm", isLeft ? "left" : "right");
  }

  /* Write a text on a ground of paper, so that it is readable over any colour. */
  private tag(pen: CanvasRenderingContext2D, text: string, x: number, y: number, colour: string,
              side: CanvasTextAlign): void {
    const w = pen.measureText(text).width;
    const left = side === "left" ? x : side === "right" ? x - w : x - w / 2;
    pen.fillStyle = themeColour("paper");
    pen.globalAlpha = 0.85;
    pen.fillRect(left - 3, y - 8, w + 6, 16);
    pen.globalAlpha = 1;
    pen.fillStyle = themeColour(colour);
    pen.textAlign = side;
    pen.fillText(text, x, y);
  }

  private paintMarks(pen: CanvasRenderingContext2D, scene: Scene): void {
    const { device } = scene;
    const drawn = [-Infinity, -Infinity], texts: (() => void)[] = [], busy = [-Infinity, -Infinity];
    for (const mark of device.marks) {
      if (mark.moment < scene.from || mark.moment >= scene.to) continue;
      const row = mark.kind === "step" ? 0 : 1, x = this.scale.x(mark.moment);
      if (x - drawn[row] < LINE_GAP) continue; // lines side by side would hide the picture
      drawn[row] = x;
      this.paintMarkLine(pen, mark.moment, 9 + 16 * row, row);
      texts.push(() => this.paintMarkText(pen, mark.moment, clean(mark.text, 40), 9 + 16 * row, busy, row));
    }
    for (const write of texts) write();
    const peak = device.peaks.active;
    if (peak.moment >= scene.from && peak.moment < scene.to) {
      const x = LEFT + this.scale.x(peak.moment), y = this.y(peak.bytes, scene.top);
      pen.fillStyle = themeColour("ink");
      pen.beginPath();
      pen.moveTo(x - 5, y - 9);
      pen.lineTo(x + 5, y - 9);
      pen.lineTo(x, y - 2);
      pen.fill();
    }
    this.paintOoms(pen, scene);
  }

  private paintMarkLine(pen: CanvasRenderingContext2D, moment: number, y: number, row: number): void {
    const x = Math.round(LEFT + this.scale.x(moment)) + 0.5;
    pen.strokeStyle = themeColour("mark");
    pen.globalAlpha = 0.6;
    pen.beginPath();
    pen.moveTo(x, y - 6);
    pen.lineTo(x, row === 0 ? this.height - BOTTOM : TOP);
    pen.stroke();
    pen.globalAlpha = 1;
  }

  /* Write a mark's text over the lines, if there is room for it. */
  private paintMarkText(pen: CanvasRenderingContext2D, moment: number, text: string, y: number, busy: number[],
                        row: number): void {
    const x = Math.round(LEFT + this.scale.x(moment)) + 5, w = pen.measureText(text).width;
    if (x < busy[row] + 10 || w > this.width - x - 2) return;
    this.tag(pen, text, x, y, "faint", "left");
    busy[row] = x + w;
  }

  private paintOoms(pen: CanvasRenderingContext2D, scene: Scene): void {
    const first = oomMoment(scene.device);
    pen.strokeStyle = themeColour("alarm");
    pen.lineWidth = 2;
    scene.device.ooms.forEach((oom, i) => {
      const moment = i === 0 && first !== null ? first : oom.moment - 1;
      if (moment < scene.from || moment >= scene.to) return;
      const x = Math.round(LEFT + this.scale.x(moment));
      pen.beginPath();
      pen.moveTo(x, TOP - 6);
      pen.lineTo(x, this.height - BOTTOM);
      pen.stroke();
      if (i > 0) return;
      const side = x > this.width / 2 ? "right" : "left";
      this.tag(pen, `out of memory: ${bytes(oom.bytes)} asked for`, x + (side === "left" ? 6 : -6),
        this.height - BOTTOM - 12, "alarm", side);
    });
    pen.lineWidth = 1;
  }

  /* Draw the cursors, and the outlines of the picked and of the pointed-at allocation. */
  paintOver(scene: Scene, hover: { tile: Tile; row: number } | null, pointer: Pointer | null): void {
    const pen = this.pen(this.over);
    for (const { tile } of scene.picture.parts) {
      const row = scene.pick === null ? -1 : tile.allocs.id.indexOf(scene.pick);
      if (row >= 0) this.outline(pen, scene, tile, row, 2.5);
      if (hover !== null && hover.tile === tile) this.outline(pen, scene, tile, hover.row, 1.5);
    }
    if (pointer !== null && this.isInside(pointer)) {
      pen.fillStyle = themeColour("ink");
      pen.globalAlpha = 0.35;
      pen.fillRect(Math.round(pointer.x), TOP, 1, this.plotHeight);
      pen.globalAlpha = 1;
    }
    const by = scene.b === null ? FLAG : this.cursorX(scene.b) - this.cursorX(scene.a);
    const aside = (Math.max(0, FLAG - Math.abs(by)) / 2) * (by < 0 ? -1 : 1); // flags do not cover each other
    this.cursor(pen, scene, scene.a, "A", -aside);
    if (scene.b !== null) this.cursor(pen, scene, scene.b, "B", aside);
  }

  /* Return the pixel of a cursor: the middle of its moment. */
  private cursorX(moment: number): number {
    const half = (this.scale.x(moment + 1) - this.scale.x(moment)) / 2;
    return Math.round(LEFT + this.scale.x(moment) + Math.min(half, this.plotWidth));
  }

  private cursor(pen: CanvasRenderingContext2D, scene: Scene, moment: number, name: string, aside: number): void {
    const x = this.cursorX(moment);
    if (moment < Math.floor(scene.from) || moment >= scene.to) return;
    pen.fillStyle = themeColour("ink");
    pen.globalAlpha = 0.8;
    pen.fillRect(x, TOP - 2, 1, this.plotHeight + 6);
    pen.globalAlpha = 1;
    pen.beginPath();
    pen.moveTo(x - 5, TOP - 8);
    pen.lineTo(x + 6, TOP - 8);
    pen.lineTo(x + 0.5, TOP);
    pen.fill();
    pen.fillRect(x + aside - 9, this.height - BOTTOM + 4, FLAG - 1, 17);
    pen.fillStyle = themeColour("paper");
    pen.textAlign = "center";
    pen.fillText(name, x + aside, this.height - BOTTOM + 13);
  }

  private outline(pen: CanvasRenderingContext2D, scene: Scene, tile: Tile, row: number,
                  width: number): void {
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, TOP, this.plotWidth, this.plotHeight);
    pen.clip();
    pen.beginPath();
    for (let i = 0; i < tile.runs; i++) {
      if (tile.runAlloc[i] !== row) continue;
      const x0 = LEFT + this.scale.x(tile.begin[tile.runFrom[i]]);
      const x1 = LEFT + this.scale.x(tile.end[tile.runTo[i] - 1]);
      const y1 = this.y(tile.runBottom[i], scene.top);
      const y0 = this.y(tile.runBottom[i] + tile.allocs.size[row], scene.top);
      pen.rect(x0, y0, Math.max(1, x1 - x0), Math.max(1, y1 - y0));
    }
    pen.strokeStyle = themeColour("paper");
    pen.lineWidth = width + 2;
    pen.stroke();
    pen.strokeStyle = themeColour("ink");
    pen.lineWidth = width;
    pen.stroke();
    pen.restore();
  }
}
