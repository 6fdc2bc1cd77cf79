// SPDX-License-Identifier: Apache-2.0
/*
 * Packs: columns of numbers in one answer (doc/design/viewer.md). A pack comes out of a file that
 * may be damaged or hostile, so every figure of its table is checked before a column is made. The
 * columns are views of the answer's bytes: nothing is copied but a pack at an odd address.
 */

const MAGIC = 0x31565344; // "DSV1"
const ROW_BYTES = 32;
const COLUMNS_MAX = 256;

/* `4294967295` stands for "none" in a column of u32. */
export const NONE = 0xffffffff;

export class PackError extends Error {}

type Column = Uint8Array | Uint32Array | Float64Array | BigUint64Array;

/* Read the name at `at`: printable ASCII, padded by zeros to 16 bytes. */
function readName(bytes: Uint8Array, at: number): string {
  let end = 16;
  while (end > 0 && bytes[at + end - 1] === 0) end--;
  let name = "";
  for (let i = 0; i < end; i++) {
    const c = bytes[at + i];
    if (c < 0x21 || c > 0x7e) throw new PackError("a column's name is not printable");
    name += String.fromCharCode(c);
  }
  if (name === "") throw new PackError("a column has no name");
  return name;
}

/* Make the column of `type` at `offset` of `buffer`. Requires offset and end to be checked. */
function makeColumn(buffer: ArrayBuffer, type: number, offset: number, count: number): Column {
  switch (type) {
    case 1: return new Uint8Array(buffer, offset, count);
    case 2: return new Uint32Array(buffer, offset, count);
    case 3: return new Float64Array(buffer, offset, count);
    default: return new BigUint64Array(buffer, offset, count);
  }
}

const SIZES = [0, 1, 4, 8, 8];

export class Pack {
  readonly byteLength: number;
  private readonly columns = new Map<string, Column>();

  /* Read `input`, which the pack keeps. Throws PackError for anything but a sound pack. */
  constructor(input: Uint8Array) {
    const whole = input.byteOffset % 8 === 0 && input.buffer instanceof ArrayBuffer;
    const bytes = whole ? input : input.slice();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.byteLength = bytes.byteLength;
    if (bytes.byteLength < 8 || view.getUint32(0, true) !== MAGIC)
      throw new PackError("this is not a pack: it does not begin with DSV1");
    const count = view.getUint32(4, true);
    const first = 8 + count * ROW_BYTES;
    if (count > COLUMNS_MAX) throw new PackError(`a pack of ${count} columns is too wide`);
    if (first > bytes.byteLength) throw new PackError("the pack ends within its table");
    for (let i = 0; i < count; i++) this.addColumn(bytes, view, 8 + i * ROW_BYTES, first);
  }

  private addColumn(bytes: Uint8Array, view: DataView, row: number, first: number): void {
    const name = readName(bytes, row);
    const type = view.getUint32(row + 16, true);
    const offset = view.getUint32(row + 24, true);
    const count = view.getUint32(row + 28, true);
    if (this.columns.has(name)) throw new PackError(`column ${name} is there twice`);
    if (type < 1 || type > 4) throw new PackError(`column ${name} has unknown type ${type}`);
    if (view.getUint32(row + 20, true) !== 0)
      throw new PackError(`column ${name} has a word that must be zero`);
    if (offset % 8 !== 0) throw new PackError(`column ${name} is not aligned`);
    if (offset < first && count > 0) throw new PackError(`column ${name} lies in the table`);
    if (count > 0 && offset + count * SIZES[type] > bytes.byteLength)
      throw new PackError(`column ${name} ends beyond the pack`);
    const at = count > 0 ? bytes.byteOffset + offset : 0;
    this.columns.set(name, makeColumn(bytes.buffer as ArrayBuffer, type, at, count));
  }

  private get<T extends Column>(name: string, kind: new (n: number) => T): T {
    const column = this.columns.get(name);
    if (column === undefined) throw new PackError(`column ${name} is missing`);
    if (!(column instanceof kind)) throw new PackError(`column ${name} has the wrong type`);
    return column;
  }

  /* Return the column `name` of that type. Throws PackError if there is none. */
  u8(name: string): Uint8Array { return this.get(name, Uint8Array); }
  u32(name: string): Uint32Array { return this.get(name, Uint32Array); }
  f64(name: string): Float64Array { return this.get(name, Float64Array); }
  u64(name: string): BigUint64Array { return this.get(name, BigUint64Array); }
}

/* Check that the columns of a table are of one length. Returns the length. */
export function sameLength(table: string, ...columns: Column[]): number {
  for (const c of columns)
    if (c.length !== columns[0].length)
      throw new PackError(`the columns of ${table} differ in length`);
  return columns[0].length;
}

/* Check that every value of `column` is below `limit`, or NONE if `orNone`. */
export function checkBelow(name: string, column: Uint32Array, limit: number, orNone = false): void {
  for (let i = 0; i < column.length; i++)
    if (column[i] >= limit && !(orNone && column[i] === NONE))
      throw new PackError(`${name} names row ${column[i]} of ${limit}`);
}

/* Check that `column` holds finite numbers from 0 to 2^53. */
export function checkBytes(name: string, column: Float64Array): void {
  for (let i = 0; i < column.length; i++)
    if (!(column[i] >= 0 && column[i] <= 2 ** 53))
      throw new PackError(`${name} holds ${column[i]}, which is no number of bytes`);
}
