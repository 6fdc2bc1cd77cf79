"""A launcher as SGLang is one: a scheduler for each rank takes a share of what is free for its KV cache.
There is no file of weights, and dummies have their place. The run ends when all ranks are ready.

options: --memory 79.19GiB --gpus 2
engine: 2312678 tokens, 100.0 requests, 20971520 weights, None activation, None outside, 136314880 graphs, None request, None asleep
notes: the weights are dummies
unseen: what follows the engine's start was not run
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(HERE / "engine"))

if __name__ == "__main__":
    from sglang.launch_server import launch
    launch(model_path=str(HERE / "engine"), mem_fraction_static=0.9, tp_size=2)
    raise AssertionError("it goes on")
