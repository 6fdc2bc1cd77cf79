# SPDX-License-Identifier: Apache-2.0
"""SGLang, 0.5 and later: see _drystone_engines.py.

A scheduler is a process of each rank. Its runner loads the model, takes a share of what is free for
the KV cache, and captures graphs; the figures are its attributes. There is no profiling run.
"""
import importlib
import os
import shutil
import sys

NAME = "sglang"
REFUSALS = ("Not enough memory. Please try",)
GIB = 1 << 30
REQUEST = "drystone"


def tell_bytes(gibibytes):
    return None if gibibytes is None else round(gibibytes * GIB)


def give_toolkit(engine):
    """Name a folder as CUDA's toolkit where there is none: SGLang's kernels ask for one, and for
    its runtime, which is stood in for. It has no compiler."""
    if any(os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")) or \
            shutil.which("nvcc") or os.path.exists("/usr/local/cuda"):
        return
    home = os.path.dirname(engine.hook._settings["out"])
    libraries = os.path.join(home, "lib64")
    if not os.path.lexists(libraries):
        os.symlink(".", libraries)
    os.environ["CUDA_HOME"] = home


def on_load(engine, runner):
    engine.use_dummies(runner.server_args, runner.server_args.model_path)


def get_free():
    return sys.modules["torch"].cuda.mem_get_info()[0]


def on_memory(engine, taken, runner):
    """The model, its KV cache and its graphs are there. Those of a draft are not told."""
    if getattr(runner, "is_draft_worker", False):
        return
    tokens, length = runner.max_total_num_tokens, runner.model_config.context_len
    most = getattr(runner, "max_running_requests", None) or tokens
    engine.tell(version=getattr(sys.modules.get("sglang"), "__version__", None),
                weights_bytes=tell_bytes(getattr(runner, "weight_load_mem_usage", None)),
                kv_bytes=tell_bytes(getattr(runner.token_to_kv_pool, "mem_usage", None)),
                graph_bytes=tell_bytes(getattr(runner, "graph_mem_usage", 0)) + sum(taken),
                kv_tokens=tokens, length=length, requests=min(tokens / length, most),
                utilization=runner.server_args.mem_fraction_static,
                total_bytes=sys.modules["torch"].cuda.mem_get_info()[1])


def watch_runner(module, engine):
    runner, free, taken = module.ModelRunner, [], []  # bytes that graphs of pieces took
    engine.wrap(runner, "load_model", first=lambda one: on_load(engine, one))
    engine.wrap(runner, "init_piecewise_cuda_graphs", first=lambda _: free.append(get_free()),
                then=lambda *_: taken.append(max(free.pop() - get_free(), 0)))
    engine.wrap(runner, "initialize", lambda _, one, *__, **___: on_memory(engine, taken, one))


def make_request(prompt, answer):
    """Return a request of these lengths that does not stop early."""
    sampling = importlib.import_module("sglang.srt.sampling.sampling_params").SamplingParams(
        max_new_tokens=answer, ignore_eos=True, temperature=0.0)
    sampling.normalize(None)
    source = importlib.import_module("sglang.srt.managers.io_struct").TokenizedGenerateReqInput
    return source(rid=REQUEST, input_text="", input_ids=[0] * prompt, mm_inputs=None,
                  sampling_params=sampling, return_logprob=False, logprob_start_len=-1,
                  top_logprobs_num=0, token_ids_logprob=None, stream=False)


def on_ready(engine, scheduler):
    """Each rank is a process that is ready; replicas count as engines."""
    args = scheduler.server_args
    engine.ranks = args.tp_size * getattr(args, "pp_size", 1)
    engine.engines = 1 if getattr(args, "enable_dp_attention", False) else args.dp_size
    if engine.request:
        engine.begin_request()
    else:
        engine.end_worker()
        engine.end()


def serve(module, engine):
    """Give all ranks the same request where their loop asks for some, and end when it is done."""
    scheduler = module.Scheduler
    receive, waiting = scheduler.recv_requests, [1]

    def give(one):
        engine.turn()
        receive(one)
        return [make_request(*engine.request)] if waiting and not waiting.clear() else []

    def on_output(_, one, requests, *__, **___):
        if any(request.rid == REQUEST and request.finished() for request in requests):
            engine.end_worker()
            engine.end()

    scheduler.recv_requests = give
    engine.wrap(scheduler, "stream_output", on_output)


def watch_scheduler(module, engine):
    engine.wrap(module.Scheduler, "__init__", lambda _, one, *__, **___: on_ready(engine, one))
    if engine.request:
        serve(module, engine)


WATCHED = {"sglang": lambda _, engine: give_toolkit(engine),
           "sglang.srt.model_executor.model_runner": watch_runner,
           "sglang.srt.managers.scheduler": watch_scheduler}
