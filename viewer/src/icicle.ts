// SPDX-License-Identifier: Apache-2.0
/*
 * An icicle: frames as bars as wide as the bytes under them, callers above callees. Bars are links, so
 * keys reach them and screen readers say them. Bars too narrow to read are left out, and counted in the bar
 * above.
 */

import type { App } from "./app.ts";
import { el } from "./dom.ts";
import { bytes, percent } from "./format.ts";
import { mix, ownerColour, themeColour } from "./palette.ts";
import type { Stacks } from "./stacks.ts";
import type { Allocs } from "./tile.ts";

export interface Tree { name: string; isUser: boolean; bytes: number; count: number; children: Map<string, Tree> }

const DEPTH = 24, SHARE_MIN = 0.006;

function grow(node: Tree, name: string, isUser: boolean, size: number): Tree {
  let child = node.children.get(name);
  if (child === undefined) {
    child = { name, isUser, bytes: 0, count: 0, children: new Map() };
    node.children.set(name, child);
  }
  child.bytes += size;
  child.count++;
  return child;
}

/*
 * Build the tree of the frames of allocations `rows`. Library frames are left out where the stack has the
 * user's own. With `fromInner` the innermost frame is the root.
 */
export function buildTree(allocs: Allocs, rows: number[], stacks: Stacks, fromInner: boolean): Tree {
  const root: Tree = { name: "all", isUser: true, bytes: 0, count: 0, children: new Map() };
  for (const row of rows) {
    const size = allocs.size[row], frames = Array.from(stacks.frames(allocs.stack[row]));
    const own = frames.filter((f) => stacks.isUser(f));
    const path = (own.length > 0 ? own : frames.slice(0, 3));
    if (!fromInner) path.reverse();
    root.bytes += size;
    root.count++;
    let node = root;
    if (path.length === 0) grow(node, "(no stack)", false, size);
    for (const frame of path.slice(0, DEPTH)) node = grow(node, stacks.title(frame), stacks.isUser(frame), size);
  }
  return root;
}

function colourOf(name: string): string {
  let h = 7;
  for (let i = 0; i < name.length; i++) h = (h * 31 + name.charCodeAt(i)) % 9973;
  return mix(ownerColour(h % 6), themeColour("paper"), 0.42);
}

/* Draw a tree. Equal names have equal colours; colours mean nothing more. */
export function icicle(app: App, tree: Tree): HTMLElement {
  const box = el("div", { class: "icicle" });
  let deepest = 0;
  const place = (node: Tree, left: number, depth: number): void => {
    let x = left;
    for (const child of [...node.children.values()].sort((p, q) => q.bytes - p.bytes)) {
      const share = child.bytes / Math.max(1, tree.bytes);
      if (share < SHARE_MIN) break;
      const label = `${child.name}: ${bytes(child.bytes)}, ${percent(child.bytes, tree.bytes)}`;
      const a = el("a", { href: app.store.link({ q: `"${child.name}"`, view: "timeline" }), title: label,
        class: child.isUser ? "own" : "" }, share > 0.03 ? child.name : "");
      a.setAttribute("aria-label", label);
      a.style.left = `${100 * x}%`;
      a.style.width = `calc(${100 * share}% - 1px)`;
      a.style.top = `${depth * 24}px`;
      a.style.background = colourOf(child.name);
      box.append(a);
      deepest = Math.max(deepest, depth + 1);
      if (depth + 1 < DEPTH) place(child, x, depth + 1);
      x += share;
    }
  };
  place(tree, 0, 0);
  box.style.height = `${deepest * 24}px`;
  return el("section", { class: "card" }, el("h3", {}, `Frames of ${bytes(tree.bytes)}`), box);
}
