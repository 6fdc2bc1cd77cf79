// SPDX-License-Identifier: Apache-2.0
/* Texts for the clipboard, also where the browser keeps it from pages: in frames and without TLS. */

import { button, el } from "./dom.ts";

/* Show a text to be copied by hand. */
function offerText(text: string): void {
  const area = el("textarea", { value: text, aria: { label: "Text to copy" } });
  const dialog = el("dialog", { class: "text" }, el("h2", {}, "Copy this text"), area);
  dialog.append(button("Close", "Close (Esc)", () => dialog.close()));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  area.select();
}

/* Copy a text and call `copied`, or offer the text. */
export async function copyText(text: string, copied: () => void): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    offerText(text);
    return;
  }
  copied();
}
