"""A launcher's ranks serve the same request when they are ready; the report has what it took.

options: --memory 79.19GiB --request 3000,20
engine: 2312678 tokens, 100.0 requests, 20971520 weights, None activation, None outside, 136314880 graphs, 51986432 request, None asleep
notes: the weights are dummies
unseen: what follows the request was not run
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(HERE / "engine"))

if __name__ == "__main__":
    from sglang.launch_server import launch
    launch(model_path=str(HERE / "engine"), mem_fraction_static=0.9)
    raise AssertionError("it goes on")
