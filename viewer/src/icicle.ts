// SPDX-License-Identifier: Apache-2.0
/*
 * An icicle: frames as bars as wide as the bytes under them, callers above callees. Bars are links, so
 * keys reach them and screen readers say them. Bars too narrow to read are left out, and counted in the bar
 * above.
 */

import type { App } from "./app.ts";
import { el, swatch } from "./dom.ts";
import { bytes, percent, plural } from "./format.ts";
import { categoryColour, mix, themeColour } from "./palette.ts";
import type { NameBy, Stacks } from "./stacks.ts";
import type { Group } from "./state.ts";
import { FLAG_STACK_OF_FREE, type Allocs } from "./tile.ts";

export interface Tree { name: string; isUser: boolean; bytes: number; count: number; uses: number[]; children: Map<string, Tree> }

const DEPTH = 24, SHARE_MIN = 0.006;

function grow(node: Tree, name: string, isUser: boolean, size: number, category: number): Tree {
  let child = node.children.get(name);
  if (child === undefined) {
    child = { name, isUser, bytes: 0, count: 0, uses: [], children: new Map() };
    node.children.set(name, child);
  }
  child.bytes += size;
  child.uses[category] = (child.uses[category] ?? 0) + size;
  child.count++;
  return child;
}

/*
 * List the names of an allocation from the outermost frame in. Library frames are left out where the stack has the
 * user's own; a stack without any is its owner alone, which says more than the machinery around it. Frames that
 * follow one another by the same name are one.
 */
function pathOf(allocs: Allocs, row: number, stacks: Stacks, by: NameBy): { name: string; isUser: boolean }[] {
  const stack = allocs.stack[row], flags = allocs.flags[row];
  const own = Array.from(stacks.frames(stack)).filter((f) => stacks.isUser(f)).reverse();
  if (own.length === 0) return [{ name: stacks.siteTitle(stack, flags, by), isUser: false }];
  const path: { name: string; isUser: boolean }[] = [];
  for (const f of own) {
    const name = stacks.title(f, by);
    if (path.length === 0 || path[path.length - 1].name !== name) path.push({ name, isUser: true });
  }
  if ((flags & FLAG_STACK_OF_FREE) !== 0) path[path.length - 1].name += " (freed there)";
  return path;
}

/*
 * Build the tree of allocations `rows`, put together by `group`; a category stands above the functions that
 * allocated for it. With `isFlipped` callees stand above their callers.
 */
export function buildTree(allocs: Allocs, rows: number[], stacks: Stacks, group: Group, isFlipped: boolean,
                          categories: string[]): Tree {
  const root: Tree = { name: "all", isUser: true, bytes: 0, count: 0, uses: [], children: new Map() };
  for (const row of rows) {
    const size = allocs.size[row], category = allocs.category[row], path = pathOf(allocs, row, stacks, group === "category" ? "function" : group);
    if (isFlipped) path.reverse();
    root.bytes += size;
    root.count++;
    let node = group === "category" ? grow(root, categories[category] ?? "unknown", true, size, category) : root;
    for (const { name, isUser } of path.slice(0, DEPTH)) node = grow(node, name, isUser, size, category);
  }
  return root;
}

/* Return the category of which most of the bytes are. */
function mainUse(node: Tree, categories: string[]): string {
  const most = node.uses.reduce((best, n, k) => (n > (node.uses[best] ?? 0) ? k : best), 0);
  return categories[most] ?? "unknown";
}

/* Draw a tree under `title`. A bar has the colour of the category that most of its bytes are of. */
export function icicle(app: App, tree: Tree, title: string): HTMLElement {
  const box = el("div", { class: "icicle" }), uses = new Set<string>();
  let deepest = 0;
  const place = (node: Tree, left: number, depth: number): void => {
    let x = left;
    for (const child of [...node.children.values()].sort((p, q) => q.bytes - p.bytes)) {
      const share = child.bytes / Math.max(1, tree.bytes);
      if (share < SHARE_MIN) break;
      const isCategory = depth === 0 && app.state.group === "category";
      const use = mainUse(child, app.about.categories);
      const label = `${child.name}: ${bytes(child.bytes)}, ${percent(child.bytes, tree.bytes)}, mostly ${use}`;
      uses.add(use);
      const a = el("a", { href: app.store.link({ q: isCategory ? child.name : `"${child.name}"`, view: "timeline" }), title: label,
        class: child.isUser ? "own" : "" }, share > 0.03 ? child.name : "");
      a.setAttribute("aria-label", label);
      a.style.left = `${100 * x}%`;
      a.style.width = `calc(${100 * share}% - 1px)`;
      a.style.top = `${depth * 24}px`;
      a.style.background = mix(categoryColour(use), themeColour("paper"), 0.42);
      box.append(a);
      deepest = Math.max(deepest, depth + 1);
      if (depth + 1 < DEPTH) place(child, x, depth + 1);
      x += share;
    }
  };
  place(tree, 0, 0);
  box.style.height = `${deepest * 24}px`;
  return el("section", { class: "card" }, el("h3", {}, `${title}: ${bytes(tree.bytes)} in ${plural(tree.count, "block")}`),
    tree.count > 0 && box, tree.count > 0 && el("p", { class: "legend" }, el("span", { class: "key" }, "Most of a bar is:"),
      ...app.about.categories.filter((name) => uses.has(name)).map((name) => el("span", { class: "key" },
        swatch(mix(categoryColour(name), themeColour("paper"), 0.42)), name))));
}
