// SPDX-License-Identifier: Apache-2.0
/*
 * The job: what `drystone fleet --json` prints, sentences of its text, and the lines and steps of ranks,
 * which come an answer for some ranks each. `file` is an index in `files` everywhere.
 */

import { clean } from "../format.ts";
import type { Source } from "../source.ts";

export interface Figures {
  device: number; simulated: boolean; events: number; reserved_peak: number; allocated_peak: number;
  active_peak: number; reserved: number; active: number; rounding: number; pending: number;
  releasable: number; stranded: number; private_free: number; retries: number; oom: boolean;
  verdict: string; confidence: number; trust: string; checked: boolean; exact: boolean;
}
export interface RankFile {
  path: string; rank: number | null; use: string; why: string | null; other: number | null;
  group: number | null; differs: boolean; figures: Figures | null;
}
export interface Group {
  files: number[]; layout: string; active_peak_median: number; reserved_peak_median: number;
  largest: number; top_line: string | null; top_bytes: number;
}
export interface Finding {
  kind: string; file: number | null; group: number | null; bytes: number; usual: number; line: string | null;
}
export interface Step { step: number; ranks: number; min: number; median: number; max: number; max_file: number }
export interface Candidate {
  conf: string; label: string; verdict: string; allowed: boolean; recorded: boolean; reserved_peak: number;
  gain_bytes: number | null; gets_past: boolean;
}
export interface Fleet {
  schema: string; job: string; used: number; files: RankFile[]; groups: Group[]; findings: Finding[];
  timeline: { aligned: string; steps: Step[] }; missing: [number, number][];
  first_failure: { file: number; by_clock: boolean; request_bytes: number; device_free_bytes: number;
    short_bytes: number; pass: string; steps_done: number; line: string | null } | null;
  settings: { decision: string; conf: string | null; since: string | null; helped: number; judged: number;
    gain_min: number | null; gain_max: number | null;
    files: { file: number; why: string | null; outcome: string; candidates: Candidate[] }[] } | null;
  advice: { kind: string; finding: Finding | null; short_bytes: number };
}
export interface About {
  schema: string; version: string; ranks_an_answer: number; compared: boolean; order: number[]; places: string[];
  findings: string[]; group_ranks: string[]; left_out: string[];
  sentences: { layout: string | null; failure: string | null; settings: string | null; advice: string;
    nothing: string | null };
}

/* The bytes of a rank at a place, and its allocations; of a group the median, and how many ranks hold some. */
export type Held = [place: number, bytes: number, count: number];
export interface Lines {
  lines: Held[]; rest_bytes: number; conf: string; steps: number;
  growth: { line: string; bytes_per_step: number; percent: number } | null;
}
/* A line of a rank beside its group. */
export interface Beside { line: string; bytes: number; usual: number | null }

async function askJson<T>(source: Source, key: string): Promise<T | null> {
  const answer = await source.ask(key);
  return answer === null ? null : (JSON.parse(new TextDecoder().decode(answer)) as T);
}

export class Job {
  private readonly places: Map<number, number>; // of a file, in the order of worth
  readonly findingsOf = new Map<number, number[]>();
  /* Files that count, by their ranks. */
  readonly used: number[];

  constructor(readonly source: Source, readonly fleet: Fleet, readonly about: About) {
    this.places = new Map(about.order.map((file, i) => [file, i]));
    this.used = fleet.files.flatMap((f, i) => (f.use === "used" && f.figures !== null ? [i] : []));
    fleet.findings.forEach((f, i) => {
      if (f.file !== null) this.findingsOf.set(f.file, [...(this.findingsOf.get(f.file) ?? []), i]);
    });
  }

  /* Return "rank 17", or the name of a file whose rank is not known. */
  who(file: number): string {
    const f = this.fleet.files[file];
    if (f === undefined) return "–";
    return f.rank !== null ? `rank ${f.rank}` : clean(f.path.slice(f.path.lastIndexOf("/") + 1), 60);
  }

  figures(file: number): Figures { return this.fleet.files[file].figures as Figures; }

  private async ofFile<T>(name: string, file: number): Promise<T | null> {
    const place = this.places.get(file), n = this.about.ranks_an_answer;
    if (place === undefined) return null;
    const list = await askJson<T[]>(this.source, `${name}/${Math.floor(place / n)}`);
    return list?.[place % n] ?? null;
  }

  lines(file: number): Promise<Lines | null> { return this.ofFile("lines", file); }

  /* Return the peaks of a rank's steps behind the job's number of the first one. */
  peaks(file: number): Promise<number[] | null> { return this.ofFile("peaks", file); }

  async groupLines(group: number | null): Promise<Held[] | null> {
    const all = group === null ? null : await askJson<(Held[] | null)[]>(this.source, "groups");
    return all?.[group as number] ?? null;
  }

  /* Put a rank's lines beside those of its group: what differs most first, without a group the largest. */
  beside(lines: Held[], group: Held[] | null): Beside[] {
    const usual = new Map((group ?? []).map(([place, bytes]) => [place, bytes]));
    const rows: Beside[] = lines.map(([place, bytes]) =>
      ({ line: this.about.places[place] ?? "", bytes, usual: group === null ? null : usual.get(place) ?? 0 }));
    const known = new Set(lines.map(([place]) => place));
    for (const [place, bytes] of usual)
      if (!known.has(place)) rows.push({ line: this.about.places[place] ?? "", bytes: 0, usual: bytes });
    return rows.sort((x, y) => Math.abs(y.bytes - (y.usual ?? 0)) - Math.abs(x.bytes - (x.usual ?? 0)) || y.bytes - x.bytes);
  }
}

/* Read the job out of the page's answers. Rejects what is none. */
export async function openJob(source: Source): Promise<Job> {
  const fleet = await askJson<Fleet>(source, "fleet"), about = await askJson<About>(source, "about");
  if (fleet?.schema !== "drystone.fleet/1" || about?.schema !== "drystone.fleet.page/1")
    throw new Error("this page holds no job");
  return new Job(source, fleet, about);
}
