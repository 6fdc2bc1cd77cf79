// SPDX-License-Identifier: Apache-2.0
/* The whole record in a strip, with the visible moments marked; a drag moves or draws them. */

import { themeColour } from "./palette.ts";
import { Scale, type Knots } from "./scale.ts";
import type { Tile } from "./tile.ts";

export class Minimap {
  readonly canvas = document.createElement("canvas");
  private scale = new Scale({ from: 0, to: 1, width: 1 }, null);
  private drag: { mode: "move" | "draw"; at: number; from: number; to: number } | null = null;
  private shown: [number, number] = [0, 1];

  constructor(private readonly change: (from: number, to: number) => void) {
    this.canvas.className = "minimap";
    this.canvas.title = "The whole record. Drag to choose what is shown; drag the frame to move it.";
    this.canvas.addEventListener("pointerdown", (e) => this.down(e));
    this.canvas.addEventListener("pointermove", (e) => this.move(e));
    this.canvas.addEventListener("pointerup", () => { this.drag = null; });
  }

  private down(e: PointerEvent): void {
    const at = this.scale.moment(e.offsetX), [from, to] = this.shown;
    const isWhole = to - from > 0.98 * (this.scale.span.to - this.scale.span.from);
    const mode = at >= from && at <= to && !isWhole ? "move" : "draw";
    this.canvas.setPointerCapture(e.pointerId);
    this.drag = { mode, at, from, to };
  }

  private move(e: PointerEvent): void {
    if (this.drag === null) return;
    const { mode, at, from, to } = this.drag, now = this.scale.moment(e.offsetX);
    if (mode === "draw") {
      if (Math.abs(this.scale.x(now) - this.scale.x(at)) > 3)
        this.change(Math.min(at, now), Math.max(at, now));
      return;
    }
    const { span } = this.scale;
    const by = Math.max(span.from - from, Math.min(span.to - to, now - at));
    this.change(from + by, to + by);
  }

  paint(tile: Tile | null, whole: number, top: number, knots: Knots | null,
        from: number, to: number, width: number): void {
    const ratio = Math.min(2, devicePixelRatio || 1), height = 44;
    this.shown = [from, to];
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.scale = new Scale({ from: 0, to: whole, width }, knots);
    const pen = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    pen.scale(ratio, ratio);
    pen.fillStyle = themeColour("sunk");
    pen.fillRect(0, 0, width, height);
    if (tile !== null) this.paintCurves(pen, tile, top, height);
    const x0 = this.scale.x(from), x1 = Math.max(x0 + 3, this.scale.x(to));
    pen.fillStyle = themeColour("paper");
    pen.globalAlpha = 0.72;
    pen.fillRect(0, 0, x0, height);
    pen.fillRect(x1, 0, width - x1, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = themeColour("accent");
    pen.lineWidth = 2;
    pen.strokeRect(x0 + 1, 1, Math.max(1, x1 - x0 - 2), height - 2);
  }

  private paintCurves(pen: CanvasRenderingContext2D, tile: Tile, top: number, height: number): void {
    pen.fillStyle = themeColour("curve");
    for (let i = 0; i < tile.columns; i++) {
      const x0 = this.scale.x(tile.begin[i]), x1 = this.scale.x(tile.end[i]);
      const h = (tile.active[i] / top) * (height - 4);
      pen.fillRect(x0, height - h, Math.max(1, x1 - x0 + 0.5), h);
    }
    pen.fillStyle = themeColour("reserved");
    for (let i = 0; i < tile.columns; i++) {
      const x0 = this.scale.x(tile.begin[i]), x1 = this.scale.x(tile.end[i]);
      pen.fillRect(x0, height - (tile.reserved[i] / top) * (height - 4), Math.max(1, x1 - x0 + 0.5), 1.5);
    }
  }
}
