// SPDX-License-Identifier: Apache-2.0
/* What `about` says: the files, their devices, peaks and marks (doc/design/viewer.md). */

export interface Peak { bytes: number; moment: number }
export interface Mark { moment: number; kind: string; text: string }
export interface Place { name: string; moment: number }
export interface Lane { stream: string; pool: string }
export interface Device {
  device: number; events: number; moments: number; levels: number;
  first_time_us: number | null;
  peaks: { reserved: Peak; active: Peak; allocated: Peak; requested: Peak };
  /* The room that PyTorch had: `low` bytes or more, and less than `high`. */
  limit?: { low: number; high: number } | null;
  ooms: Peak[]; marks: Mark[]; places: Place[]; lanes: Lane[];
}
export interface ViewFile { name: string; json: string[]; main?: number; devices: Device[] }
/* The runs of a dry run, as it told them; what a run did not tell is null. */
export interface SeriesRun {
  run: string; fits: boolean | null; unseen: string | null; reserved_peak_bytes: number | null;
  allocated_peak_bytes: number | null; room_bytes: number | null; snapshot: string | null;
}
export interface Series { card: string | null; best: string | null; runs: SeriesRun[] }
export interface About {
  schema: string; version: string; kind: string; actions: string[]; categories: string[];
  tile_columns: number; left_out: string[]; files: ViewFile[]; series?: Series | null;
}

/* Read `about`, which comes from a program of the same version. Throws if it does not. */
export function readAbout(bytes: Uint8Array): About {
  const about = JSON.parse(new TextDecoder().decode(bytes)) as About;
  if (about.schema !== "drystone.view/1")
    throw new Error(`the answers are ${String(about.schema)}, not drystone.view/1`);
  if (!Array.isArray(about.files) || about.files.length === 0)
    throw new Error("the answers speak of no file");
  about.left_out ??= [];
  return about;
}

/* Return the moment at which a failure shows: the state before the first out-of-memory. */
export function oomMoment(device: Device): number | null {
  const place = device.places.find((p) => p.name === "oom");
  if (place !== undefined) return place.moment;
  return device.ooms.length > 0 ? Math.max(0, device.ooms[0].moment - 1) : null;
}

/* Return the moment that a view shows first: the failure, else the peak. */
export function firstMoment(device: Device): number {
  return oomMoment(device) ?? device.peaks.active.moment;
}
