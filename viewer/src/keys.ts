// SPDX-License-Identifier: Apache-2.0
/* The list of keys, in a dialog. */

import { button, el } from "./dom.ts";

export type Keys = [string, [string, string][]][];

export const KEYS: Keys = [
  ["Everywhere", [["1 … 9", "the views, in the order of the tabs"], ["/", "search"], ["Esc", "leave, clear"],
    ["o, p", "cursor to the failure, to the peak"], ["n, N", "cursor to the next, the previous mark"],
    ["b, x", "second cursor here, away"], ["d", "next device"], ["c", "copy what is shown as text"],
    ["t", "dark or light"], ["?", "this list"]]],
  ["Timeline", [["← →", "cursor by one event; with Shift by a twentieth"], ["↑ ↓", "pick the allocation above, below"],
    ["+ −", "zoom at the cursor"], ["[ ]", "move left, right"], ["0", "the whole record"], ["Enter", "zoom to the picked life"],
    ["e", "event or time axis"], ["k", "colours"], ["y", "height of all, of what is visible"],
    ["wheel", "zoom; with Shift move"], ["Shift+click", "second cursor"]]],
  ["Memory map", [[", .", "the moment before, after"], ["+ −", "wider, narrower"]]],
  ["Events", [["↑ ↓", "the event before, after"], ["Page ↑ ↓, Home, End", "scroll"]]],
];

export const SEARCH_NOTE = "Search: words of a line or function, a category, >64MiB, <1GiB, =512, 0x7f…, stream:7. All must hold.";

/* Make the dialog; showModal() opens it. */
export function keyDialog(keys: Keys, note: string): HTMLDialogElement {
  const dialog = el("dialog", { class: "keys", aria: { label: "Keys" } });
  dialog.append(el("h2", {}, "Keys"),
    el("div", { class: "columns" }, ...keys.map(([title, rows]) => el("section", {}, el("h3", {}, title),
      el("dl", {}, ...rows.flatMap(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]))))),
    el("p", {}, note),
    button("Close", "Close (Esc)", () => dialog.close()));
  return dialog;
}
