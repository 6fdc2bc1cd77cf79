// SPDX-License-Identifier: Apache-2.0
/*
 * drystone.html before it shows anything: takes recordings, dropped or chosen, or an error text. The
 * engine in the page reads them. Nothing leaves the page.
 */

import { button, clear, el } from "./dom.ts";
import { EngineClient } from "./engine/client.ts";
import { bytes } from "./format.ts";
import { openFiles, type Source } from "./source.ts";

const FILES_MOST = 64; // VIEW_FILES_MAX
const COLUMNS_LEAST = 40, COLUMNS_MOST = 88, COLUMN_PIXELS = 8;

const words = (error: unknown) => (error instanceof Error ? error.message : String(error));

export class Desk {
  private readonly input = el("input", { type: "file", id: "files" });
  private readonly message = el("textarea", { id: "message",
    placeholder: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate …" });
  private readonly said = el("div", { role: "status", class: "said" });
  private client: EngineClient | null = null;

  constructor(private readonly show: (source: Source) => Promise<void>) {
    this.input.multiple = true;
    this.input.addEventListener("change", () => void this.open([...(this.input.files ?? [])]));
    this.message.rows = 5;
    document.title = "Drystone";
    document.body.replaceChildren(el("main", { class: "desk" },
      el("h1", {}, "Drystone"),
      el("p", {}, "Why a program ran out of GPU memory, who held it, and what helps. The engine is in this page: "
        + "nothing is fetched, and nothing is uploaded."),
      el("section", { class: "drop" },
        el("label", { htmlFor: "files" }, "Drop memory snapshots here, or choose them"), this.input,
        el("p", { class: "faint" }, "A snapshot that PyTorch wrote: pickle, JSON, a page of memory_viz; also packed "
          + "by gzip or zstd. Several are compared.")),
      el("section", {},
        el("label", { htmlFor: "message" }, "Or paste the text of the error"), this.message,
        button("Explain", "What the text says, and what it leaves open", () => void this.explain())),
      this.said));
    document.addEventListener("dragover", this.over);
    document.addEventListener("drop", this.drop);
  }

  private readonly over = (e: DragEvent) => {
    e.preventDefault();
    document.body.classList.add("over");
  };

  private readonly drop = (e: DragEvent) => {
    e.preventDefault();
    document.body.classList.remove("over");
    void this.open([...(e.dataTransfer?.files ?? [])]);
  };

  private refuse(why: string): void { clear(this.said, el("pre", { class: "error" }, why)); }

  private paintProgress(name: string, what: string, share: number | null): void {
    const bar = el("progress", { aria: { label: what } });
    if (share !== null) bar.value = share;
    clear(this.said, el("p", {}, `${what || name} `, bar, " ",
      button("Cancel", "Stop, and forget what was read", () => this.client?.end())));
  }

  private async open(files: File[]): Promise<void> {
    if (files.length === 0) return;
    if (files.length > FILES_MOST) return this.refuse(`${files.length} files are given; at most ${FILES_MOST} are shown.`);
    this.client?.end();
    const client = this.client = new EngineClient();
    const size = files.reduce((sum, file) => sum + file.size, 0);
    const name = files.length === 1 ? files[0].name : `${files.length} files`;
    this.paintProgress(name, `reading ${name}, ${bytes(size)}`, null);
    try {
      const source = await openFiles(client, files, (what, share) => this.paintProgress(name, what, share));
      document.removeEventListener("dragover", this.over);
      document.removeEventListener("drop", this.drop);
      await this.show(source);
    } catch (error) {
      client.end();
      this.refuse(words(error));
    }
  }

  private async explain(): Promise<void> {
    const client = new EngineClient();
    try {
      const columns = Math.max(COLUMNS_LEAST, Math.min(COLUMNS_MOST, Math.floor(this.message.clientWidth / COLUMN_PIXELS)));
      clear(this.said, el("pre", { tabIndex: 0 }, await client.explain(this.message.value, columns)));
    } catch (error) {
      this.refuse(words(error));
    }
    client.end();
  }
}
