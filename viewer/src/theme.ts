// SPDX-License-Identifier: Apache-2.0
/* Dark or light: as the system wishes, or as it was turned; on paper always light. */

export function isDark(): boolean {
  const { theme } = document.documentElement.dataset;
  return theme === "dark" || (theme === undefined && matchMedia("(prefers-color-scheme: dark)").matches);
}

export function turnTheme(): void {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
}

/*
 * Make paper light: `repaint` has views take their colours before they are printed, and give them back. A picture of
 * pixels cannot be painted anew then (Chromium prints an empty canvas), so a picture keeps its ground.
 */
export function lightOnPaper(repaint: () => void): void {
  const { dataset } = document.documentElement;
  let onScreen: string | undefined;
  const turn = (theme: string | undefined) => {
    if (theme === "light" && isDark()) dataset.ground = "dark"; else delete dataset.ground;
    onScreen = dataset.theme;
    if (theme === undefined) delete dataset.theme; else dataset.theme = theme;
    repaint();
  };
  addEventListener("beforeprint", () => turn("light"));
  addEventListener("afterprint", () => turn(onScreen));
}
