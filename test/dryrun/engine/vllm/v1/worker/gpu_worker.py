# SPDX-License-Identifier: Apache-2.0
"""A worker that profiles itself, takes what is free for its KV cache, and captures graphs."""
import math
import pathlib
import types

import torch

from ...model_executor.layers.quantization.gptq import GPTQConfig
from . import gpu_model_runner

HIDDEN, LAYERS, BLOCK = 1024, 8, 16  # numbers of a token and of layers; tokens of a block
FOLDER = str(pathlib.Path(__file__).parent)  # of the model, which has no weights
PAGE = 2 * 2 * HIDDEN * BLOCK  # bytes of a block of one layer: keys and values, two bytes each


def measure():
    """Return what is free, what there is, and what others than PyTorch have."""
    free, total = torch.cuda.mem_get_info()
    return types.SimpleNamespace(free=free, total_memory=total,
                                 others=total - free - torch.cuda.memory_reserved())


class Worker:
    def __init__(self, utilization, length, quantized=False, sleeps=False):
        config = GPTQConfig() if quantized else None
        if config:
            config.maybe_update_config(FOLDER)
        self.vllm_config = types.SimpleNamespace(
            quant_config=config,
            cache_config=types.SimpleNamespace(gpu_memory_utilization=utilization),
            load_config=types.SimpleNamespace(load_format="auto"),
            model_config=types.SimpleNamespace(max_model_len=length, model=FOLDER,
                                               enable_sleep_mode=sleeps),
            parallel_config=types.SimpleNamespace())
        self.model_runner = gpu_model_runner.GPUModelRunner(HIDDEN, LAYERS)

    def init_device(self):
        torch.cuda.set_device(0)
        self.init_snapshot = measure()
        share = self.vllm_config.cache_config.gpu_memory_utilization
        self.requested = math.ceil(self.init_snapshot.total_memory * share)

    def load_model(self):
        if self.vllm_config.load_config.load_format == "auto":
            raise RuntimeError(f"Cannot find any model weights with {FOLDER}")
        config = self.vllm_config.quant_config
        if config and not config.quantizes("model.layers.0.mlp"):
            raise RuntimeError("a model of GPTQ whose layers are not quantized")
        self.model_runner.load()

    def determine_available_memory(self):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        self.model_runner.run(8192)
        self.peak_activation_memory = torch.cuda.max_memory_allocated() - before
        torch.cuda.empty_cache()
        self.non_torch_memory = measure().others - self.init_snapshot.others
        return self.requested - self.model_runner.model_memory_usage - \
            self.peak_activation_memory - self.non_torch_memory

    def initialize_from_config(self, cache):
        self.model_runner.caches = [torch.zeros(one.size, dtype=torch.int8, device="cuda")
                                    for one in cache.kv_cache_tensors]

    def compile_or_warm_up_model(self):
        self.model_runner.capture_model()
        self.model_runner.run(256)

    def execute_model(self, tokens):
        self.model_runner.run(tokens)

    def sleep(self, level):
        assert level == 2
        self.model_runner.model, self.model_runner.caches = None, []
        torch.cuda.empty_cache()

    def wake_up(self):
        assert self.model_runner.model is None

    def check_health(self):
        pass
