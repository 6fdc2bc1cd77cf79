// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers and texts as people read them. Bytes are in binary units everywhere, as the command
 * prints them. Texts of a file pass through clean() before anything shows or copies them.
 */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/* Write `n` bytes with two decimals, as the command does: "11.46 GiB". */
export function bytes(n: number): string {
  let unit = 0, value = Math.abs(n);
  while (value >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit++; }
  const digits = unit === 0 ? String(value) : value.toFixed(2);
  return `${n < 0 ? "−" : ""}${digits} ${UNITS[unit]}`;
}

/* Write a difference with its sign. */
export function difference(n: number): string {
  return n > 0 ? `+${bytes(n)}` : bytes(n);
}

/* Write an axis's label, without decimals that are zero. */
export function bytesShort(n: number): string {
  return bytes(n).replace(/\.00 |(\.\d)0 /, "$1 ");
}

/* Write a count in groups of three digits, parted by thin blanks. */
export function count(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
}

/* Write "1 block", "2 blocks". */
export function plural(n: number, word: string): string {
  return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}

/* Write a duration of `us` microseconds with about three digits. */
export function duration(us: number): string {
  const a = Math.abs(us), sign = us < 0 ? "−" : "";
  if (a < 1e3) return `${sign}${a.toFixed(0)} µs`;
  if (a < 1e6) return `${sign}${(a / 1e3).toPrecision(3)} ms`;
  if (a < 1e8) return `${sign}${(a / 1e6).toPrecision(3)} s`;
  return `${sign}${(a / 6e7).toFixed(1)} min`;
}

/* Write a time to the microsecond: "+3.741234 s". */
export function seconds(us: number): string {
  return `+${(us / 1e6).toFixed(6)} s`;
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "–";
}

export function address(a: bigint): string {
  return `0x${a.toString(16)}`;
}

/*
 * Make a hostile text safe to look at: controls, line ends, marks that turn the direction of
 * writing, and characters that nobody sees become visible escapes. tool/base/term.c knows the same
 * ones. A text longer than `max` is cut.
 */
export function clean(text: string, max = 400): string {
  const cut = text.length > max ? `${text.slice(0, max)}…` : text;
  return cut.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
    (c) => `\\u{${(c.codePointAt(0) as number).toString(16)}}`);
}

/* Read a size such as "64MiB", "1.5G" or "512"; null if it is none. GB counts as GiB. */
export function parseBytes(text: string): number | null {
  const m = /^(\d+(?:\.\d+)?)\s*([kmgtp]?)i?b?$/i.exec(text);
  if (m === null) return null;
  return Number(m[1]) * 1024 ** ["", "k", "m", "g", "t", "p"].indexOf(m[2].toLowerCase());
}
