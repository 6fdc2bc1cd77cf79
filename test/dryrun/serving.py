#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real vLLM and SGLang serve a model without weights or a GPU: serving.py TOOL [NAME...]

$DRY_TEST_VLLM is a folder with vLLM, its PyTorch and the packages that it imports, without those of
NVIDIA, $DRY_TEST_SGLANG one with SGLang; without them the test is skipped, aloud. The model is a small Llama whose configuration and
tokenizer are written here. Each figure that arithmetic gives is held against vLLM's. A flag that it
refuses is told by its own words, once.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
LAYERS, HIDDEN, INNER, HEADS, SHARED, WORDS = 2, 512, 1024, 8, 4, 32000
TOTAL = 24 << 30
PROMPT = 300
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
          "hidden_size": HIDDEN, "intermediate_size": INNER, "num_attention_heads": HEADS,
          "num_hidden_layers": LAYERS, "num_key_value_heads": SHARED, "vocab_size": WORDS,
          "max_position_embeddings": 65536, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
          "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1,
          "eos_token_id": 2}
VOCABULARY = {"<unk>": 0, "<s>": 1, "</s>": 2, **{f"w{i}": i for i in range(3, 50)}}
TOKENIZER = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
             "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None,
             "decoder": None,
             "model": {"type": "WordLevel", "vocab": VOCABULARY, "unk_token": "<unk>"}}
ABOUT = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>",
         "unk_token": "<unk>"}
SCRIPT = """
import sys
from vllm import LLM
if __name__ == "__main__":
    LLM(sys.argv[1], enforce_eager=True, max_model_len=2048)
    raise SystemExit("it goes on")
"""
TOKEN_BYTES = 2 * LAYERS * SHARED * (HIDDEN // HEADS) * 2  # keys and values, two bytes each


def make_model(folder):
    for name, content in {"config.json": CONFIG, "tokenizer.json": TOKENIZER,
                          "tokenizer_config.json": ABOUT}.items():
        (folder / name).write_text(json.dumps(content))


def run(tool, folder, packages, words, options=()):
    """Return (status, the report, the end of what the program wrote)."""
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD")}
    env.update(PYTHONPATH=str(packages), HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1",
               OMP_NUM_THREADS="1", HOME=str(folder))
    done = subprocess.run(
        [tool, "dry-run", "--json", "--memory", str(TOTAL), "-o", folder / "out.pickle", *options,
         "--", sys.executable, *words], env=env, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return done.returncode, report, "\n".join(done.stderr.splitlines()[-20:])


def judge_engine(report):
    """None, or what is wrong with the figures of an engine that is ready."""
    engine, check = report["engine"], report["self_check"]
    rest = engine["utilization"] * TOTAL - sum(
        engine[key] for key in ("weights_bytes", "activation_bytes", "outside_bytes"))
    weights = 2 * (2 * WORDS * HIDDEN + HIDDEN + LAYERS * (
        2 * HIDDEN * HIDDEN + 2 * HIDDEN * HIDDEN // HEADS * SHARED + 3 * HIDDEN * INNER +
        2 * HIDDEN)) + 2 * CONFIG["max_position_embeddings"] * HIDDEN // HEADS  # and its angles
    facts = {
        "it fits": report["fits"] is True,
        "its weights are said to be dummies": "dummies" in str(report["processes"][0]["notes"]),
        "its snapshot replays": check["exact"] and check["addresses"] > 0,
        "what was not run is told": "start" in (report["unseen"] or ""),
        "the weights are the model's": 0 <= engine["weights_bytes"] - weights < 4 << 20,
        "the KV cache has its tokens": engine["kv_bytes"] == engine["kv_tokens"] * TOKEN_BYTES,
        "the KV cache takes the rest": 0 <= rest - engine["kv_bytes"] < 16 * TOKEN_BYTES + 1,
        "requests are told": engine["requests"] > 1 and engine["length"] == 2048,
        "the card is the one given": engine["total_bytes"] == TOTAL}
    wrong = [fact for fact, is_so in facts.items() if not is_so]
    return f"not so: {wrong}, {engine}, {check}" if wrong else None


def judge_launcher(report):
    """SGLang's pool has a page more than its tokens."""
    engine = report["engine"]
    facts = {"it fits": report["fits"] is True, "requests are told": engine["requests"] > 1,
             "the pool is its tokens": engine["kv_bytes"] == (engine["kv_tokens"] + 1) * TOKEN_BYTES,
             "its weights are said to be dummies": "dummies" in str(report["processes"][0]["notes"]),
             "the request is told": engine["request_bytes"] > 2 * PROMPT * HIDDEN * 2}
    wrong = [fact for fact, is_so in facts.items() if not is_so]
    return f"not so: {wrong}, {engine}" if wrong else None


def judge_request(report):
    engine = report["engine"]
    rows = PROMPT * HIDDEN * 2
    is_told = report["fits"] is True and "request" in report["unseen"] and \
        2 * rows < engine["request_bytes"] < 64 * rows + (64 << 20)
    return None if is_told else f"{report['unseen']}, {engine}"


def judge_refusal(report):
    texts = [one["refusal"] for one in report["processes"] if one["refusal"]]
    is_told = report["fits"] is False and texts and "cache" in texts[0]
    return None if is_told else f"fits is {report['fits']}, refusals {texts}"


def judge_flag(end):
    told = end.count("unrecognized arguments: --no-such-flag")
    return None if told == 1 and "Traceback" not in end else f"told {told} times\n{end}"


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    places = {name: pathlib.Path(os.environ.get(f"DRY_TEST_{name.upper()}") or "nowhere").resolve()
              for name in ("vllm", "sglang")}
    there = [name for name, place in places.items() if (place / name / "version.py").is_file()]
    for name in places.keys() - set(there):
        print(f"SKIPPED: no {name} in DRY_TEST_{name.upper()}, a folder of pip's --target")
    if not there:
        sys.exit(SKIPPED)
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        make_model(folder)
        (folder / "llm.py").write_text(SCRIPT)
        serve = ["-m", "vllm.entrypoints.cli.main", "serve", str(folder), "--enforce-eager"]
        script = [folder / "llm.py", folder]
        cases = {"script": (script, 0, judge_engine, []),
                 "server": ([*serve, "--max-model-len", "2048"], 0, judge_engine, []),
                 "refusal": ([*serve, "--max-model-len", "65536", "--gpu-memory-utilization",
                              "0.022"], 1, judge_refusal, []),
                 "request": (script, 0, judge_request, ["--request", f"{PROMPT},8"]),
                 "flag": ([*serve, "--no-such-flag"], 3, judge_flag, [])}
        cases = {name: ("vllm", *case) for name, case in cases.items()}
        cases["launcher"] = ("sglang", ["-m", "sglang.launch_server", "--model-path", folder,
                                        "--disable-cuda-graph", "--disable-piecewise-cuda-graph"],
                             0, judge_launcher, ["--request", f"{PROMPT},8"])
        cases = {name: case for name, case in cases.items()
                 if case[0] in there and (name in sys.argv[2:] or not sys.argv[2:])}
        for name, (engine, words, status, judge, options) in cases.items():
            code, report, end = run(tool, folder, places[engine], words, options)
            is_run = code == status and (report or judge is judge_flag)
            wrong = judge(end if judge is judge_flag else report) if is_run else \
                f"exit status {code}, expected {status}\n{end}"
            print(f"{name}: {wrong or 'ok'}", flush=True)
            failed += wrong is not None
    print(f"{len(cases)} passed, 0 failed" if not failed else f"{failed} of {len(cases)} failed")
    sys.exit(1 if failed else 0)


main()
