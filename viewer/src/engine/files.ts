// SPDX-License-Identifier: Apache-2.0
/*
 * What the engine sees of a system: files to read, and two streams to write. Everything else is refused
 * by the base class. Files are read in pieces, so that a recording is never in memory twice.
 */

import { Fd, Inode, wasi } from "@bjorn3/browser_wasi_shim";

/* A file that can be read at any place, at once. */
export interface Readable {
  readonly name: string;
  readonly size: number;
  /* Return `count` bytes from byte `at` on; fewer at the end. */
  read(at: number, count: number): Uint8Array;
}

class OpenReadable extends Fd {
  private at = 0;

  constructor(private readonly file: ReadableInode) { super(); }

  override fd_fdstat_get() {
    return { ret: 0, fdstat: new wasi.Fdstat(wasi.FILETYPE_REGULAR_FILE, 0) };
  }

  override fd_filestat_get() { return { ret: 0, filestat: this.file.stat() }; }

  override fd_read(size: number) {
    const data = this.file.from.read(this.at, size);
    this.at += data.byteLength;
    return { ret: 0, data };
  }

  override fd_pread(size: number, offset: bigint) {
    return { ret: 0, data: this.file.from.read(Number(offset), size) };
  }

  override fd_seek(offset: bigint, whence: number) {
    const bases = [0, this.at, this.file.from.size]; // SET, CUR, END
    const to = whence < bases.length ? bases[whence] + Number(offset) : -1;
    if (to < 0) return { ret: wasi.ERRNO_INVAL, offset: 0n };
    this.at = to;
    return { ret: 0, offset: BigInt(to) };
  }

  override fd_tell() { return { ret: 0, offset: BigInt(this.at) }; }
}

export class ReadableInode extends Inode {
  constructor(readonly from: Readable) { super(); }

  override path_open(oflags: number, rights: bigint) {
    const writes = BigInt(wasi.RIGHTS_FD_WRITE) & rights;
    if (writes !== 0n || (oflags & wasi.OFLAGS_TRUNC) !== 0)
      return { ret: wasi.ERRNO_PERM, fd_obj: null };
    return { ret: 0, fd_obj: new OpenReadable(this) };
  }

  override stat() {
    return new wasi.Filestat(this.ino, wasi.FILETYPE_REGULAR_FILE, BigInt(this.from.size));
  }
}

/* Standard input. */
export function openEmpty(): Fd {
  return new OpenReadable(new ReadableInode({ name: "-", size: 0, read: () => new Uint8Array() }));
}

/* Standard output or error: keeps up to `most` bytes, then fails as a full disk does. */
export class Sink extends Fd {
  private readonly parts: Uint8Array[] = [];
  private length = 0;

  constructor(private readonly most: number) { super(); }

  override fd_fdstat_get() {
    return { ret: 0, fdstat: new wasi.Fdstat(wasi.FILETYPE_REGULAR_FILE, 0) };
  }

  override fd_write(data: Uint8Array) {
    if (this.length + data.byteLength > this.most) return { ret: wasi.ERRNO_NOSPC, nwritten: 0 };
    this.parts.push(data.slice());
    this.length += data.byteLength;
    return { ret: 0, nwritten: data.byteLength };
  }

  bytes(): Uint8Array {
    const all = new Uint8Array(this.length);
    let at = 0;
    for (const part of this.parts) {
      all.set(part, at);
      at += part.byteLength;
    }
    return all;
  }

  text(): string { return new TextDecoder().decode(this.bytes()); }
}
