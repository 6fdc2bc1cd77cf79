# SPDX-License-Identifier: Apache-2.0
"""A runner that loads a model, takes a share of what is free for its KV cache, and captures graphs.
All that it knows of memory is what the driver says is free."""
import types

import torch

HIDDEN, LAYERS = 1024, 8
GIB = 1 << 30
CELL = 2 * 2 * HIDDEN * LAYERS  # bytes of a token: keys and values, two bytes each


def measure():
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0] / GIB


class ModelRunner:
    def __init__(self, server_args, rank):
        torch.cuda.set_device(rank)
        self.server_args, self.graphs = server_args, []
        self.model_config = types.SimpleNamespace(context_len=server_args.context_length)
        self.initialize(measure())

    def initialize(self, before):
        self.load_model()
        self.init_memory_pool(before)
        before = measure()
        self.capture((256, 64, 8, 1))
        self.graph_mem_usage = before - measure()
        self.init_piecewise_cuda_graphs()

    def load_model(self):
        before = measure()
        if self.server_args.load_format != "dummy":
            raise RuntimeError(f"Cannot find any model weights with {self.server_args.model_path}")
        self.model = torch.nn.Sequential(
            *(torch.nn.Linear(HIDDEN, HIDDEN, bias=False, dtype=torch.bfloat16, device="cuda")
              for _ in range(LAYERS)))
        self.weight_load_mem_usage = before - measure()

    def init_memory_pool(self, before):
        rest = measure() - before * (1 - self.server_args.mem_fraction_static)
        self.max_total_num_tokens = int(rest * GIB) // CELL
        if self.max_total_num_tokens <= 0:
            raise RuntimeError("Not enough memory. Please try to increase --mem-fraction-static.")
        self.max_running_requests = 100
        size = self.max_total_num_tokens * CELL // LAYERS
        self.caches = [torch.zeros(size, dtype=torch.int8, device="cuda") for _ in range(LAYERS)]
        self.token_to_kv_pool = types.SimpleNamespace(mem_usage=size * LAYERS / GIB)

    @torch.inference_mode()
    def run(self, tokens):
        return self.model(torch.ones(tokens, HIDDEN, dtype=torch.bfloat16, device="cuda"))

    def init_piecewise_cuda_graphs(self):
        self.capture((8192, 2048))

    def capture(self, sizes):
        pool = torch.cuda.graph_pool_handle()
        for tokens in sizes:
            self.run(tokens)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                self.run(tokens)
            self.graphs.append(graph)
        torch.cuda.empty_cache()
