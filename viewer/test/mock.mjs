// SPDX-License-Identifier: Apache-2.0
/*
 * Answers of a program that never ran: steps of allocations with known lives, so a test knows what the
 * page must show. Names are hostile. The shapes are those of doc/design/viewer.md.
 */
import { deflateSync } from "node:zlib";

export const NONE = 0xffffffff;
export const HOSTILE = "<script>window.broken=1</script>\u001b[31m\u202Egnp.exe";
const MIB = 2 ** 20;
const CATEGORIES = ["unknown", "weights", "optimizer", "gradients", "activations", "temporaries", "inputs"];
const ACTIONS = ["alloc", "free_requested", "free_completed", "segment_alloc", "oom"];
const COLUMNS = 64;

const TYPES = { u8: [1, Uint8Array], u32: [2, Uint32Array], f64: [3, Float64Array], u64: [4, BigUint64Array] };

/* Write a pack. `columns` gives name: [type, numbers]. */
export function writePack(columns) {
  const rows = Object.entries(columns).map(([name, [type, values]]) => {
    const [number, Kind] = TYPES[type];
    return { name, number, bytes: new Uint8Array(Kind.from(values).buffer), count: values.length };
  });
  let at = 8 + 32 * rows.length;
  for (const r of rows) { r.at = at; at += Math.ceil(r.bytes.length / 8) * 8; }
  const out = Buffer.alloc(at);
  out.write("DSV1", 0, "latin1");
  out.writeUInt32LE(rows.length, 4);
  rows.forEach((r, i) => {
    const row = 8 + 32 * i;
    out.write(r.name, row, "latin1");
    out.writeUInt32LE(r.number, row + 16);
    out.writeUInt32LE(r.at, row + 24);
    out.writeUInt32LE(r.count, row + 28);
    Buffer.from(r.bytes).copy(out, r.at);
  });
  return new Uint8Array(out);
}

/* Make the lives: weights, then steps of activations that are freed in reverse. */
export function makeLives(steps = 6, layers = 40) {
  const lives = [], events = [];
  const alloc = (size, category, stack) => {
    events.push({ action: 0, life: lives.length });
    lives.push({ id: lives.length, size, category, stack, begin: events.length, end: NONE, addr: 0x7f0000000000n + BigInt(lives.length) * 0x4000000n });
    return lives.length - 1;
  };
  const free = (id) => {
    events.push({ action: 1, life: id }, { action: 2, life: id });
    lives[id].end = events.length;
  };
  for (let i = 0; i < 8; i++) alloc(64 * MIB, 1, 0);
  for (let s = 0; s < steps; s++) {
    const kept = [];
    for (let i = 0; i < layers; i++) {
      kept.push(alloc((8 + (i % 5)) * MIB, 4, 1 + (i % 3)));
      free(alloc(20 * MIB, 5, 4));
    }
    while (kept.length > 0) free(kept.pop());
    alloc(2 * MIB, 0, 5);
  }
  return { lives, events };
}

const aliveAt = (lives, m) => lives.filter((l) => l.begin <= m && m < l.end);

/* Return the active bytes at a moment; the curve is made once. */
function activeAt(lives, m) {
  if (lives.curve === undefined) {
    lives.curve = [];
    for (const l of lives) {
      lives.curve[l.begin] = (lives.curve[l.begin] ?? 0) + l.size;
      if (l.end !== NONE) lives.curve[l.end] = (lives.curve[l.end] ?? 0) - l.size;
    }
    for (let i = 0, sum = 0; i < lives.curve.length; i++) lives.curve[i] = sum += lives.curve[i] ?? 0;
  }
  return lives.curve[Math.min(m, lives.curve.length - 1)];
}

export function allocColumns(rows) {
  return {
    alloc_id: ["u32", rows.map((l) => l.id)], alloc_addr: ["u64", rows.map((l) => l.addr)],
    alloc_size: ["f64", rows.map((l) => l.size)], alloc_req: ["f64", rows.map((l) => l.size - 100)],
    alloc_begin: ["u32", rows.map((l) => l.begin)], alloc_freed: ["u32", rows.map((l) => l.freed ?? l.end)],
    alloc_end: ["u32", rows.map((l) => l.end)], alloc_lane: ["u32", rows.map(() => 0)],
    alloc_stack: ["u32", rows.map((l) => l.stack)], alloc_flags: ["u32", rows.map(() => 0)],
    alloc_category: ["u8", rows.map((l) => l.category)],
  };
}

export function makeTile(lives, moments, level, index) {
  const n = 2 ** level, from = Math.floor((moments * index) / n), to = Math.floor((moments * (index + 1)) / n);
  const count = Math.min(COLUMNS, to - from), columns = [], runs = [], row = new Map();
  for (let c = 0; c < count; c++) {
    const begin = from + Math.floor(((to - from) * c) / count), end = from + Math.floor(((to - from) * (c + 1)) / count);
    let at = begin;
    for (let m = begin; m < end; m++) if (activeAt(lives, m) > activeAt(lives, at)) at = m;
    columns.push({ begin, end, at, active: activeAt(lives, at) });
    let bottom = 0;
    for (const l of aliveAt(lives, at)) {
      if (!row.has(l.id)) row.set(l.id, { ...l, row: row.size });
      runs.push({ alloc: row.get(l.id).row, from: c, to: c + 1, bottom });
      bottom += l.size;
    }
  }
  const col = (f) => columns.map(f);
  return writePack({
    col_begin: ["u32", col((c) => c.begin)], col_end: ["u32", col((c) => c.end)], col_at: ["u32", col((c) => c.at)],
    col_time: ["f64", col((c) => c.begin * 10)], reserved_min: ["f64", col((c) => c.active)],
    reserved_max: ["f64", col((c) => c.active + 32 * MIB)], active_min: ["f64", col((c) => c.active)],
    active_max: ["f64", col((c) => c.active)], allocated_max: ["f64", col((c) => c.active)],
    requested_max: ["f64", col((c) => c.active)], small_bytes: ["f64", col(() => 0)],
    small_count: ["u32", col(() => 0)], small_below: ["f64", [1]], small_by: ["f64", columns.flatMap(() => CATEGORIES.map(() => 0))],
    run_alloc: ["u32", runs.map((r) => r.alloc)], run_from: ["u32", runs.map((r) => r.from)],
    run_to: ["u32", runs.map((r) => r.to)], run_bottom: ["f64", runs.map((r) => r.bottom)],
    ...allocColumns([...row.values()]),
  });
}

export function makeMap(lives, moment) {
  const alive = aliveAt(lives, moment), segments = alive.map((l) => ({ addr: l.addr, size: 0x4000000 }));
  return writePack({
    seg_addr: ["u64", segments.map((s) => s.addr)], seg_size: ["f64", segments.map((s) => s.size)],
    seg_lane: ["u32", segments.map(() => 0)], seg_flags: ["u8", segments.map(() => 1)],
    block_seg: ["u32", alive.flatMap((_, i) => [i, i])],
    block_offset: ["f64", alive.flatMap((l) => [0, l.size])],
    block_size: ["f64", alive.flatMap((l) => [l.size, 0x4000000 - l.size])],
    block_state: ["u8", alive.flatMap(() => [1, 0])], block_alloc: ["u32", alive.flatMap((_, i) => [i, NONE])],
    pin_seg: ["u32", alive.length > 0 ? [0] : []], pin_used: ["f64", alive.length > 0 ? [1 * MIB] : []],
    pin_bytes: ["f64", alive.length > 0 ? [63 * MIB] : []],
    ...allocColumns(alive),
  });
}

function makeEvents(lives, events, page) {
  const rows = events.slice(page * 1024, page * 1024 + 1024);
  const of = (f) => rows.map((e, i) => f(lives[e.life], e, page * 1024 + i));
  return writePack({
    ev_action: ["u8", of((_, e) => e.action)], ev_addr: ["u64", of((l) => l.addr)], ev_size: ["f64", of((l) => l.size)],
    ev_time: ["f64", of((_l, _e, i) => i * 10)], ev_stack: ["u32", of((l) => l.stack)],
    ev_lane: ["u32", of(() => 0)], ev_alloc: ["u32", of((_, e) => e.life)],
  });
}

function makeStacks() {
  const texts = ["load", "/home/someone/model.py", "forward", "linear", "/lib/torch/nn/functional.py", HOSTILE, "attend", "step"];
  texts.push("model.py", "nn/functional.py");
  const frames = [[0, 1, 12, 1], [2, 1, 39, 1], [3, 4, 88, 0], [5, 1, 66, 1], [6, 1, 71, 1], [7, 1, 7, 1]];
  const stacks = [[0], [2, 1], [2, 3], [4, 1], [2, 1], [5]], sites = [0, 1, 3, 4, 1, 5];
  const bytes = texts.map((t) => Buffer.from(t, "utf8")), from = [0];
  for (const b of bytes) from.push(from[from.length - 1] + b.length);
  const starts = [0];
  for (const s of stacks) starts.push(starts[starts.length - 1] + s.length);
  return writePack({
    text: ["u8", [...Buffer.concat(bytes)]], text_from: ["u32", from], frame_name: ["u32", frames.map((f) => f[0])],
    frame_file: ["u32", frames.map((f) => f[1])], frame_line: ["u32", frames.map((f) => f[2])],
    frame_user: ["u8", frames.map((f) => f[3])], frame_func: ["u32", frames.map((f) => f[0])],
    frame_module: ["u32", frames.map((f) => (f[1] === 4 ? 9 : 8))], stack_from: ["u32", starts], stack_frame: ["u32", stacks.flat()],
    stack_site: ["u32", sites],
  });
}

function makeExplain(active, event) {
  const state = { reserved_bytes: active + 32 * MIB, active_bytes: active, rounding_bytes: 0, pending_bytes: 0,
    releasable_bytes: 0, stranded_bytes: 32 * MIB, private_free_bytes: 0 };
  return {
    device: 0, devices: 1, simulated: false, verdict: "fragmentation", moment: { kind: "oom", event, time_us: event * 10 }, state,
    oom: { request_bytes: 96 * MIB, request_line: `model.py:66 ${HOSTILE}`, device_free_bytes: 16 * MIB,
      budget_bytes: active + 64 * MIB, short_bytes: 0, other_bytes: null, number: 1, count: 1, freed_after: 3,
      end_active_bytes: 0, end_reserved_bytes: 0 },
    findings: [{ cause: "fragmentation", confidence_percent: 100, assumed: false, bytes: 1, note: null, proofs: [
      { left: [{ name: "free", bytes: 128 * MIB }], relation: ">", right: [{ name: "asked for", bytes: 96 * MIB }],
        left_bytes: 128 * MIB, right_bytes: 96 * MIB }] }],
    owners: [{ line: "model.py:39 forward", operation: "linear", bytes: active / 2, count: 14, largest_bytes: 12 * MIB }],
    categories: { weights: { bytes: 512 * MIB, confidence_percent: 60 } }, step: null, siblings: [], projected_bytes: null,
    changes: [{ kind: "setting", setting: "expandable_segments:True", caveats: ["ipc"], removes_oom: true, bytes: 0,
      reserved_peak_bytes: active, oom_at_event: null }],
    trust: { level: "high", checked: true, exact: true, reason: null, unmatched_frees: 0, carried_over_bytes: 0,
      covered_bytes: active, unexplained_bytes: 0, time_reversals: 0 },
  };
}

/* Make all answers of `files` files: a map of keys to bytes. */
export function makeAnswers(files = 1, series = null) {
  const answers = new Map(), json = (value) => new TextEncoder().encode(JSON.stringify(value));
  const { lives, events } = makeLives(), moments = events.length + 2;
  const levels = 1 + Math.ceil(Math.log2(moments / COLUMNS));
  let peak = 0;
  for (let m = 0; m < moments; m++) if (activeAt(lives, m) > activeAt(lives, peak)) peak = m;
  const active = activeAt(lives, peak), owners = (m) => ({ moment: m, total_bytes: activeAt(lives, m), others: 0,
    others_bytes: 0, owners: [{ line: "model.py:39 forward", operation: "linear", bytes: activeAt(lives, m) / 2, count: 3,
      largest_bytes: 12 * MIB }, { line: `model.py:66 ${HOSTILE}`, operation: null, bytes: MIB, count: 9, largest_bytes: 4096 }] });
  const device = { device: 0, events: events.length, moments, levels, first_time_us: 0,
    peaks: Object.fromEntries(["reserved", "active", "allocated", "requested"].map((n) => [n, { bytes: active + (n === "reserved" ? 32 * MIB : 0), moment: peak }])),
    ooms: [{ moment: peak + 1, bytes: 96 * MIB }], marks: [{ moment: 9, kind: "step", text: "step 0" },
      { moment: 400, kind: "annotation", text: HOSTILE }],
    places: [{ name: "oom", moment: peak }, { name: "end", moment: moments - 1 }], lanes: [{ stream: "0", pool: "default" }] };
  answers.set("about", json({ schema: "drystone.view/1", version: "0", kind: "report", actions: ACTIONS, categories: CATEGORIES,
    tile_columns: COLUMNS, left_out: ["nothing but a line of a test"], series, files: Array.from({ length: files }, (_, i) =>
      ({ name: `run${i}-<b>.pickle`, json: [], main: 0, devices: [device] })) }));
  for (let f = 0; f < files; f++) {
    answers.set(`${f}/stacks`, makeStacks());
    answers.set(`${f}/explain`, json(makeExplain(active, peak)));
    answers.set(`${f}/info`, json({ kind: "snapshot", file_bytes: 1, events: events.length, devices: [], settings: {}, trust: [],
      stacks: { stacks: 6, frames: 6, events: 1, events_with_stack: 1, live_blocks: 1, live_blocks_with_stack: 1 } }));
    answers.set(`${f}/steps`, json({ device: 0, source: "annotations", reason: null, marker: "step", growth_bytes_per_step: 2 * MIB,
      capacity_bytes: null, steps_until_full: null, growth: [], steps: [{ partial: false, first_event: 8, events: 200, begin_us: 0,
        end_us: 10, peak_bytes: active, peak_event: 30, active_end_bytes: 1, reserved_end_bytes: 1, kept_bytes: 1, alloc_bytes: 1,
        allocs: 4, temporary_bytes: 1, temporaries: 1 }] }));
    answers.set(`${f}/sweep`, json({ device: 0, goal: "peak", outcome: "change", best: 0, conf: "x", capacity_bytes: null,
      margin_bytes: null, floor_bytes: MIB, floor_event: 3, runs: 2, min_gain_bytes: MIB,
      trust: { possible: true, exact: true, approximate: false, compat: "2.11" }, candidates: [{ conf: "expandable_segments:True",
        label: "expandable_segments:True", verdict: "best", recorded: false, default: false, allowed: true, oom: false,
        oom_at_event: null, reserved_peak_bytes: active, gain_bytes: 32 * MIB, runs_on_bytes: null, runs_on_retries: null,
        num_alloc_retries: 0, num_device_alloc: 1, num_device_free: 0, driver_time_us: 9, since: null,
        caveats: [{ name: "ipc", text: "not between processes" }] }] }));
    for (let l = 0; l < levels; l++)
      for (let i = 0; i < 2 ** l; i++) answers.set(`${f}/0/tile/${l}/${i}`, makeTile(lives, moments, l, i));
    for (const m of [peak, moments - 1]) {
      answers.set(`${f}/0/map/${m}`, makeMap(lives, m));
      answers.set(`${f}/0/owners/${m}`, json(owners(m)));
    }
    for (let p = 0; p * 1024 < events.length; p++) answers.set(`${f}/0/events/${p}`, makeEvents(lives, events, p));
  }
  return { answers, peak, moments, events: events.length, active, lives, categories: CATEGORIES };
}

/* Make what `--series` adds: runs of BATCH, the last two of which do not fit; one is named by `hostile`. */
export function makeSeries(hostile = false) {
  const row = (batch, fits, gib, snapshot) => ({ run: `BATCH=${batch}`, fits, unseen: null, snapshot,
    reserved_peak_bytes: fits === null ? null : gib * 2 ** 30, allocated_peak_bytes: fits === null ? null : (gib - 1) * 2 ** 30,
    room_bytes: 22 * 2 ** 30 });
  return { card: hostile ? HOSTILE : "l4-24", best: "BATCH=16", runs: [row(8, true, 6, "run0-<b>.pickle"),
    row(16, true, 10, null), row(64, null, 0, null), row(hostile ? HOSTILE : 32, false, 21, null)] };
}

/* Put answers into the page, as `drystone view -o` does. */
export function makeReport(page, answers) {
  const packed = Object.fromEntries([...answers].map(([key, bytes]) => [key, deflateSync(bytes).toString("base64")]));
  const text = JSON.stringify(packed).replace(/</g, "\\u003c");
  return page.replace("connect-src 'self'", "connect-src 'none'")
    .replace('id="answers"></script>', () => `id="answers">${text}</script>`);
}
