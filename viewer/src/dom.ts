// SPDX-License-Identifier: Apache-2.0
/*
 * Elements. Texts go in by textContent alone, so a name of a function can never become markup.
 */

export type Child = Node | string | null | undefined | false;
type Props = {
  class?: string; title?: string; href?: string; id?: string; type?: string; role?: string;
  tabIndex?: number; value?: string; disabled?: boolean; colSpan?: number; hidden?: boolean;
  placeholder?: string; htmlFor?: string; open?: boolean; scope?: string; checked?: boolean;
  aria?: Record<string, string>; data?: Record<string, string>;
  on?: { [K in keyof HTMLElementEventMap]?: (e: HTMLElementEventMap[K]) => void };
};

/* Make an element with properties and children. A child that is a string becomes text. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined) continue;
    if (key === "class") node.className = value as string;
    else if (key === "role") node.setAttribute("role", value as string);
    else if (key === "aria")
      for (const [k, v] of Object.entries(value as Record<string, string>))
        node.setAttribute(`aria-${k}`, v);
    else if (key === "data") Object.assign(node.dataset, value);
    else if (key === "on")
      for (const [k, v] of Object.entries(value as Record<string, EventListener>))
        node.addEventListener(k, v);
    else (node as unknown as Record<string, unknown>)[key] = value;
  }
  add(node, ...children);
  return node;
}

export function add(node: Node, ...children: Child[]): void {
  for (const child of children)
    if (child !== null && child !== undefined && child !== false)
      node.appendChild(typeof child === "string" ? document.createTextNode(child) : child);
}

export function clear(node: Element, ...children: Child[]): void {
  node.replaceChildren();
  add(node, ...children);
}

export function button(text: string, title: string, press: () => void, cls = ""): HTMLButtonElement {
  return el("button", { type: "button", class: cls, title, on: { click: press } }, text);
}

/* Make a labelled choice of `options`: pairs of value and text. */
export function choice(label: string, options: [string, string][], value: string,
                       change: (value: string) => void): HTMLLabelElement {
  const select = el("select", { on: { change: () => change(select.value) } },
    ...options.map(([v, text]) => {
      const option = el("option", { value: v }, text);
      option.selected = v === value;
      return option;
    }));
  return el("label", { class: "choice" }, el("span", {}, label), select);
}

export interface TableColumn { head: string; right?: boolean; title?: string; class?: string }

/* Make a table. `rows` hold a cell for each column; the first cell of a row is its heading. */
export function table(caption: string, columns: TableColumn[], rows: Child[][],
                      rowClass?: (i: number) => string): HTMLTableElement {
  const side = (c: TableColumn) => `${c.right ? "right" : ""} ${c.class ?? ""}`.trim();
  return el("table", {},
    el("caption", { class: "unseen" }, caption),
    el("thead", {}, el("tr", {}, ...columns.map((c) =>
      el("th", { scope: "col", class: side(c), title: c.title }, c.head)))),
    el("tbody", {}, ...rows.map((cells, r) =>
      el("tr", { class: rowClass?.(r) ?? "" }, ...cells.map((cell, i) =>
        el("td", { class: side(columns[i]) }, cell))))));
}

/* Hold a table that may be wider than its place; the keyboard scrolls it. */
export function wide(label: string, t: HTMLTableElement): HTMLElement {
  return el("div", { class: "wide", tabIndex: 0, role: "region", aria: { label } }, t);
}

/* Make the words that stand where a picture would be. */
export function absence(head: string, why: string, ...links: Child[]): HTMLElement {
  return el("div", { class: "absence" }, el("h3", {}, head), el("p", {}, why), el("p", { class: "actions" }, ...links));
}

/* Show lines of text beside a point of the tip's stage, within its width and, if it clips what is beyond, its height. */
export function showTip(tip: HTMLElement, x: number, y: number, lines: string[], clips = true): void {
  const stage = tip.parentElement as HTMLElement, gap = 14;
  clear(tip, ...lines.map((text, i) => el("div", { class: i === 0 ? "first" : "" }, text)));
  tip.hidden = false;
  const right = stage.clientWidth - tip.offsetWidth, beside = x + gap > right ? x - gap - tip.offsetWidth : x + gap;
  tip.style.left = `${Math.max(0, Math.min(right, beside))}px`;
  tip.style.top = `${clips ? Math.max(0, Math.min(stage.clientHeight - tip.offsetHeight, y + gap)) : y + gap}px`;
}

/* Make a sample of a colour, for a legend. */
export function swatch(colour: string): HTMLElement {
  const sample = el("span", { class: "swatch" });
  sample.style.background = colour;
  return sample;
}

/* Make a sample of a line as it is drawn, for a legend. */
export function stroke(colour: string, dash: number[] = []): SVGElement {
  const ns = "http://www.w3.org/2000/svg", sample = document.createElementNS(ns, "svg"), path = document.createElementNS(ns, "path");
  sample.setAttribute("class", "stroke");
  sample.setAttribute("aria-hidden", "true");
  path.setAttribute("d", "M0 4H26");
  path.setAttribute("stroke-dasharray", dash.join(" "));
  path.style.stroke = colour;
  sample.append(path);
  return sample;
}

/* Make a bar whose filled part is `share` of its width, for the eye alone. */
export function bar(share: number, colour?: string): HTMLElement {
  const fill = el("span", { class: "fill" });
  fill.style.width = `${Math.max(0, Math.min(100, 100 * share)).toFixed(2)}%`;
  if (colour !== undefined) fill.style.background = colour;
  return el("span", { class: "bar", aria: { hidden: "true" } }, fill);
}

/* Give a canvas the pixels of `width` by `height` points, and return its pen. */
export function penOf(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = Math.min(2, devicePixelRatio || 1);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d") as CanvasRenderingContext2D;
  pen.scale(ratio, ratio);
  pen.font = "12px system-ui, sans-serif";
  return pen;
}
