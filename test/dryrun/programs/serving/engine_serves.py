"""An engine that is ready serves a request, as --request asks; the report has what that took: three times
3,000 rows of 2,048 B, and cuBLAS's 32 MiB.

options: --memory 79.19GiB --request 3000,20
engine: 2453888 tokens, 599.1 requests, 16777216 weights, 83886080 activation, 268435456 outside, 37748736 graphs, 51986432 request, None asleep
unseen: what follows the request was not run
notes: the weights are dummies
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "engine"))

if __name__ == "__main__":
    from vllm.v1.engine.core import EngineCore
    EngineCore(0.95, 4096)
    raise AssertionError("it goes on")
