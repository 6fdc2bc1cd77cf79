// SPDX-License-Identifier: Apache-2.0
/*
 * Answers of a job that never ran: two groups by halves, of which rank 3 leaks, rank 5 ran out of memory and
 * the last file is broken. Names are hostile. The shapes are those of doc/design/viewer.md.
 */
import { HOSTILE } from "./mock.mjs";

const MIB = 2 ** 20, AN_ANSWER = 64, STEPS = 12;
export const LEAK = 3, OOM = 5;

const figures = (i, reserved) => ({ device: i % 8, simulated: false, events: 1000 + i, reserved_peak: reserved, allocated_peak: reserved - 40 * MIB,
  active_peak: reserved - 30 * MIB, reserved, active: reserved - 30 * MIB, rounding: MIB, pending: 0, releasable: 10 * MIB,
  stranded: (i % 7) * MIB, private_free: 0, retries: i === 4 ? 2 : 0, oom: i === OOM, verdict: i === OOM ? "fragmentation" : i === LEAK ? "leak" : "none",
  confidence: 90, trust: i === 6 ? "low" : "high", checked: true, exact: true });

const reservedOf = (i, count) => (i < count / 2 ? 500 : 900) * MIB + (i % 5) * MIB;

function makeFleet(count) {
  const files = Array.from({ length: count }, (_, i) => ({ path: `job/rank${i}.pickle`, rank: i, use: "used", why: null, other: null,
    group: i < count / 2 ? 0 : 1, differs: i === LEAK || i === OOM, figures: figures(i, reservedOf(i, count)) }));
  files[1].path = `job/${HOSTILE}/rank1.pickle`;
  files.push({ path: `job/${HOSTILE}`, rank: count, use: "broken", why: `byte 3: ${HOSTILE}`, other: null, group: null, differs: false, figures: null });
  const group = (from, to) => ({ files: Array.from({ length: to - from }, (_, k) => from + k), layout: "run", stride: 0,
    active_peak_median: reservedOf(from, count) - 30 * MIB, active_peak_mad: 0, reserved_peak_median: reservedOf(from, count),
    reserved_peak_mad: 0, largest: from, top_line: "model.py:1 f", top_bytes: 1 });
  const findings = [
    { kind: "oom", file: OOM, group: 0, bytes: 96 * MIB, usual: 0, line: `model.py:66 ${HOSTILE}` },
    { kind: "leak", file: LEAK, group: 0, bytes: 9 * MIB, usual: 0, line: "train.py:74 append" },
    { kind: "group", file: null, group: 1, bytes: 900 * MIB, usual: 500 * MIB, line: null }];
  const candidate = (conf, peak, more) => ({ conf, label: conf, verdict: "good", allowed: true, recorded: false, reserved_peak: peak, gain_bytes: null,
    gets_past: true, ...more });
  return { schema: "drystone.fleet/1", job: `job-${HOSTILE}`, used: count, files, groups: [group(0, Math.ceil(count / 2)), group(Math.ceil(count / 2), count)],
    findings, timeline: { aligned: "first", steps: Array.from({ length: STEPS }, (_, s) => ({ step: s, ranks: count, min: (400 + s) * MIB,
      median: (500 + s) * MIB, max: (870 + 4 * s) * MIB, max_file: count - 1 - s })) }, missing: [[count + 1, count + 2]],
    first_failure: { file: OOM, by_clock: true, time_us: 1, request_bytes: 96 * MIB, device_free_bytes: 16 * MIB, short_bytes: 0, pass: "forward",
      steps_done: 1, line: `model.py:66 ${HOSTILE}` },
    settings: { decision: "change", conf: "expandable_segments:True", since: null, helped: 1, judged: 2, gain_min: MIB, gain_max: MIB, files: [
      { file: OOM, why: null, outcome: "change", candidates: [candidate("expandable_segments:True", 480 * MIB, { verdict: "best", gain_bytes: 20 * MIB }),
        candidate("", 500 * MIB, { verdict: "fails", recorded: true, gets_past: false })] },
      { file: count - 1, why: null, outcome: "keep", candidates: [candidate("expandable_segments:True", 901 * MIB)] }] },
    advice: { kind: "setting", finding: null, short_bytes: 0 } };
}

/* Make the answers of a job of `count` ranks, the lines of the first `known` of them. */
export function makeJob(count = 64, known = count) {
  const json = (value) => new TextEncoder().encode(JSON.stringify(value)), answers = new Map(), fleet = makeFleet(count);
  const order = [OOM, LEAK, ...fleet.files.flatMap((f, i) => (f.use === "used" && i !== OOM && i !== LEAK ? [i] : []))];
  answers.set("fleet", json(fleet));
  answers.set("about", json({ schema: "drystone.fleet.page/1", version: "0", ranks_an_answer: AN_ANSWER, compared: true, order,
    places: ["model.py:1 f", "train.py:74 append", `model.py:66 ${HOSTILE}`, "never.py:1 g"],
    findings: ["ran out of memory: asked for 96.00 MiB; the verdict is fragmentation", "grows by 9.00 MiB a step, most of its group does not",
      "reserves 900.00 MiB at its peak, the median of the groups 500.00 MiB"],
    group_ranks: [`0-${Math.ceil(count / 2) - 1}`, `${Math.ceil(count / 2)}-${count - 1}`], left_out: known < count ? [`the lines of ${count - known} of ${count} ranks`] : [],
    sentences: { layout: null, failure: "in the forward, after 1 whole step: asked for 96.00 MiB, at",
      settings: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps 1 of 2 ranks that it was replayed on, by 1.00 MiB, and harms none",
      advice: "set it, for all ranks", nothing: null } }));
  const held = (i) => [[0, 300 * MIB + i * 1024, 4], ...(i === LEAK ? [[1, 45 * MIB, 5]] : []), [2, 100 * MIB, 2]];
  answers.set("groups", json([[[0, 300 * MIB, 32], [2, 90 * MIB, 32]], [[0, 300 * MIB, 32], [2, 100 * MIB, 32]]]));
  for (let at = 0; at < known; at += AN_ANSWER) {
    const files = order.slice(at, at + AN_ANSWER);
    answers.set(`lines/${at / AN_ANSWER}`, json(files.map((i) => ({ lines: held(i), rest_bytes: MIB, conf: i === 1 ? HOSTILE : "", steps: STEPS,
      growth: i === LEAK ? { line: "train.py:74 append", bytes_per_step: 9 * MIB, percent: 99 } : null }))));
    answers.set(`peaks/${at / AN_ANSWER}`, json(files.map((i) => [0, ...Array.from({ length: STEPS }, (_, s) => (450 + (i % 9) + s) * MIB)])));
  }
  return { answers, fleet };
}
