"""An engine that may sleep does so when it is ready: the report has what the card keeps then. Beside CUDA's
767 MiB and what is outside of PyTorch, these are graphs and a workspace.

options: --memory 79.19GiB
engine: 2453888 tokens, 599.1 requests, 16777216 weights, 83886080 activation, 268435456 outside, 37748736 graphs, None request, 1110441984 asleep
notes: the weights are dummies
unseen: what follows the engine's start was not run
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "engine"))

if __name__ == "__main__":
    from vllm.v1.engine.core import EngineCore
    EngineCore(0.95, 4096, sleeps=True)
    raise AssertionError("it goes on")
