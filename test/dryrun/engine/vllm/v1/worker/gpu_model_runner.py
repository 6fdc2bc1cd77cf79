# SPDX-License-Identifier: Apache-2.0
"""The model of gpu_worker.py, and its graphs."""
import torch


class GPUModelRunner:
    def __init__(self, hidden, layers):
        self.hidden, self.layers, self.graphs = hidden, layers, []

    def load(self):
        before = torch.cuda.memory_allocated()
        self.model = torch.nn.Sequential(
            *(torch.nn.Linear(self.hidden, self.hidden, bias=False, dtype=torch.bfloat16,
                              device="cuda") for _ in range(self.layers)))
        self.model_memory_usage = torch.cuda.memory_allocated() - before

    @torch.inference_mode()
    def run(self, tokens):
        return self.model(torch.ones(tokens, self.hidden, dtype=torch.bfloat16, device="cuda"))

    def capture_model(self):
        free = torch.cuda.mem_get_info()[0]
        pool = torch.cuda.graph_pool_handle()
        for tokens in (512, 256, 64, 8, 1):
            self.run(tokens)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                self.run(tokens)
            self.graphs.append(graph)
        return free - torch.cuda.mem_get_info()[0]
