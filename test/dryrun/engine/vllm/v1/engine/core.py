# SPDX-License-Identifier: Apache-2.0
"""The core of an engine, whose worker is a process of its own."""
import multiprocessing
import types

from ..worker import gpu_worker


def serve(pipe, *words):
    worker = gpu_worker.Worker(*words)
    while True:
        name, arguments = pipe.recv()
        try:
            pipe.send(getattr(worker, name)(*arguments))
        except Exception as error:
            pipe.send(RuntimeError(str(error)))


def plan(available):
    """Return the cache of a worker with so many bytes to spare."""
    count = available // (gpu_worker.PAGE * gpu_worker.LAYERS)
    if count <= 0:
        raise ValueError("No available memory for the cache blocks. Try another card.")
    spec = types.SimpleNamespace(block_size=gpu_worker.BLOCK)
    names = [str(i) for i in range(gpu_worker.LAYERS)]
    return types.SimpleNamespace(
        num_blocks=count,
        kv_cache_groups=[types.SimpleNamespace(kv_cache_spec=spec, layer_names=names)],
        kv_cache_tensors=[types.SimpleNamespace(size=count * gpu_worker.PAGE) for _ in names])


class EngineCore:
    def __init__(self, utilization, length, quantized=False, sleeps=False):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.worker = context.Process(target=serve, args=(theirs, utilization, length, quantized,
                                                                    sleeps), daemon=True)
        self.worker.start()
        theirs.close()
        self.call("init_device")
        self.call("load_model")
        cache = plan(self.call("determine_available_memory"))
        self.call("initialize_from_config", cache)
        self.call("compile_or_warm_up_model")
        self.vllm_config = types.SimpleNamespace(
            model_config=types.SimpleNamespace(max_model_len=length))
        self.waiting = []  # tokens of each step that is to come
        self.scheduler = types.SimpleNamespace(has_requests=lambda: bool(self.waiting))
        self.model_executor = types.SimpleNamespace(collective_rpc=self.call)

    def add_request(self, request):
        self.waiting = [len(request.prompt_token_ids)] + [1] * request.sampling_params.max_tokens

    def step(self):
        self.call("execute_model", self.waiting.pop(0))
        return {}, True

    def call(self, name, *arguments):
        self.pipe.send((name, arguments))
        result = self.pipe.recv()
        if isinstance(result, Exception):
            raise result
        return result
