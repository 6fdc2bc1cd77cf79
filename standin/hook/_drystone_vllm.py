# SPDX-License-Identifier: Apache-2.0
"""vLLM, 0.8 and later (its engine V1): see _drystone_engines.py.

The figures are attributes of its worker; those that a release lacks stay unknown.
"""
import functools
import importlib
import sys
import time

NAME = "vllm"
REFUSALS = ("No available memory for the cache blocks",
            "larger than the available KV cache memory",
            "less than desired GPU memory utilization",
            "Cannot auto-fit max_model_len",
            "larger than the maximum number of tokens that can be stored in KV cache")
MIB = 1 << 20
# Start logs of H100 (9.0) and cards of 24 GiB (8.9) have these beside PyTorch's memory.
OUTSIDE = {((0, 0), (9, 0)): 133 * MIB, ((0, 0), (8, 9)): 20 * MIB,
           ((0, 18), (9, 0)): 256 * MIB, ((0, 18), (8, 9)): 20 * MIB}
# Logs of 2 and of 4 H100 with tensor parallelism have that much more beside them, beyond the
# stand-in's account of NCCL: its own all-reduce, and links.
PEERS = {((0, 0), (9, 0)): 1360 * MIB}

BLOCKS, EACH = "modules_in_block_to_quantize", ["."]  # GPTQ's list: parts of names


def get_version():
    return getattr(sys.modules.get("vllm"), "__version__", "0.0")


def on_load(engine, config):
    engine.use_dummies(config.load_config, config.model_config.model)
    if getattr(getattr(config, "quant_config", None), BLOCKS, None) == EACH:
        engine.hook.note("which layers are quantized is in the files of weights: all linear ones "
                         "are taken to be")
        engine.tell(assumed="all linear layers are quantized")


def watch_quantized(name, module, engine):
    """Have GPTQ's layers quantized although no file of weights says which are."""
    def on_update(_, config, *__, **___):
        if not getattr(config, BLOCKS, EACH):
            setattr(config, BLOCKS, EACH)
    engine.wrap(getattr(module, name), "maybe_update_config", on_update)


def on_device(engine, _, worker, *__, **___):
    """The worker has measured what is free; what is taken from now on counts as its own."""
    has_peers = getattr(worker.vllm_config.parallel_config, "tensor_parallel_size", 1) > 1
    engine.take_outside(get_version(), OUTSIDE, *[PEERS] * has_peers)


def on_profile(engine, _, worker, *__, **___):
    snapshot = getattr(worker, "init_snapshot", None)
    engine.tell(version=get_version(),
                weights_bytes=getattr(worker.model_runner, "model_memory_usage", None),
                activation_bytes=getattr(worker, "peak_activation_memory", None),
                outside_bytes=getattr(worker, "non_torch_memory", None),
                total_bytes=getattr(snapshot, "total_memory", None),
                utilization=worker.vllm_config.cache_config.gpu_memory_utilization)


def count_tokens(config, cache):
    """Return the tokens that a KV cache holds, as vLLM's log has them."""
    sizes = [group.kv_cache_spec.block_size for group in cache.kv_cache_groups]
    ways = 1
    for name in ("decode_context_parallel_size", "prefill_context_parallel_size"):
        ways *= getattr(config.parallel_config, name, 1)
    return cache.num_blocks // len(sizes) * min(sizes) * ways if sizes else None


def on_cache(engine, _, worker, cache, *__, **___):
    config = worker.vllm_config
    tokens, length = count_tokens(config, cache), config.model_config.max_model_len
    count = getattr(sys.modules.get("vllm.v1.core.kv_cache_utils"),
                    "get_max_concurrency_for_kv_cache_config", None)
    tensors = getattr(cache, "kv_cache_tensors", None)
    requests = count(config, cache) if count and tokens else tokens and tokens / length
    engine.tell(kv_bytes=sum(one.size for one in tensors) if tensors else None, kv_tokens=tokens,
                length=length, requests=requests)


def sleep(engine, worker):
    """Tell what the card keeps while the engine sleeps. Level 2 copies no weights to the host."""
    worker.sleep(2)
    free, total = sys.modules["torch"].cuda.mem_get_info()
    worker.wake_up()
    engine.tell(asleep_bytes=total - free)


def watch_worker(module, engine):
    worker = module.Worker

    def after(then):
        return lambda *args, **kwargs: then(engine, *args, **kwargs)

    def finish(one):
        if getattr(one.vllm_config.model_config, "enable_sleep_mode", False):
            engine.guard(sleep, engine, one)
        engine.end_worker()

    def on_ready(engine, _, one, *__, **___):
        if engine.request:
            engine.begin_request()
        else:
            finish(one)

    engine.wrap(worker, "init_device", after(on_device))
    engine.wrap(worker, "load_model", first=lambda one, *_, **__: on_load(engine, one.vllm_config))
    engine.wrap(worker, "determine_available_memory", after(on_profile))
    engine.wrap(worker, "initialize_from_config", after(on_cache))
    engine.wrap(worker, "compile_or_warm_up_model", after(on_ready))
    engine.wrap(worker, "execute_model", lambda *_, **__: engine.turn())
    # The core asks for the health of its workers when they have served the request.
    engine.wrap(worker, "check_health", lambda _, one, *__, **___: engine.request and finish(one))


def watch_runner(module, engine):
    """What the capture of graphs takes, in PyTorch's pools and beside them."""
    engine.wrap(module.GPUModelRunner, "capture_model",
                lambda size, *_, **__: engine.tell(graph_bytes=size))


def watch_draft(module, engine):
    """Have a draft keep its head where the model's has another size. Its files of weights would
    say that the head is its own; without them, it is not."""
    def on_head(drafter, model):
        own, whole = (getattr(getattr(one, "lm_head", None), "weight", None)
                      for one in (drafter.model, model))
        if own is not None and whole is not None and own.shape != whole.shape:
            drafter.model.has_own_lm_head = True

    engine.wrap(getattr(module, "SpecDecodeBaseProposer", None), "_maybe_share_lm_head",
                first=on_head)


def make_request(prompt, answer):
    """Return a request of these lengths that does not stop early; None for what it need not say."""
    source = importlib.import_module("vllm.v1.engine").EngineCoreRequest
    sampling = importlib.import_module("vllm.sampling_params").SamplingParams
    values = {"request_id": "drystone", "prompt_token_ids": [0] * prompt,
              "sampling_params": sampling(max_tokens=answer, ignore_eos=True, temperature=0.0),
              "arrival_time": time.time()}
    names = source.__struct_fields__
    wanted = names[:len(names) - len(source.__struct_defaults__)]
    return source(**{**dict.fromkeys(wanted), **values})


def serve(core, engine):
    """Serve one request as the core's own loop does, but in this thread."""
    prompt, answer = engine.request
    length = core.vllm_config.model_config.max_model_len
    if prompt + answer > length:
        raise ValueError(f"a request of {prompt} and {answer} tokens is longer than the engine's "
                         f"greatest length, {length}")
    request = make_request(prompt, answer)
    ready = getattr(core, "preprocess_add_request", lambda one: (one,))(request)
    core.add_request(*ready)
    queue = getattr(core, "batch_queue", None)
    step = getattr(core, "step_fn", core.step if queue is None else core.step_with_batch_queue)
    while core.scheduler.has_requests() or getattr(core, "batch_queue", None):
        _, is_executed = step()
        if hasattr(core, "post_step"):
            core.post_step(is_executed)
        engine.turn()
    core.model_executor.collective_rpc("check_health")


def watch_core(module, engine):
    def on_ready(_, core, *__, **___):
        try:
            if engine.request:
                serve(core, engine)
        except Exception as error:
            engine.fail(error)
        engine.end()

    engine.wrap(module.EngineCore, "__init__", on_ready)
    process = getattr(module, "EngineCoreProc", None)
    run = getattr(process, "run_engine_core", None)
    if run is None:
        return

    @functools.wraps(run)
    def run_one(*args, **kwargs):
        # The core of a dense model forgets later how many engines there are.
        engine.engines = getattr(getattr(kwargs.get("vllm_config"), "parallel_config", None),
                                 "data_parallel_size_local", 1) or 1
        return run(*args, **kwargs)

    process.run_engine_core = staticmethod(run_one)


LAYERS = "vllm.model_executor.layers.quantization."
WATCHED = {LAYERS + "gptq": functools.partial(watch_quantized, "GPTQConfig"),
           LAYERS + "gptq_marlin": functools.partial(watch_quantized, "GPTQMarlinConfig"),
           "vllm.v1.spec_decode.eagle": watch_draft,
           "vllm.v1.worker.gpu_worker": watch_worker,
           "vllm.v1.worker.gpu_model_runner": watch_runner,
           "vllm.v1.engine.core": watch_core}
