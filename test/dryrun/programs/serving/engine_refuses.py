"""An engine that has no memory left for its KV cache says so in its own words, and does not fit.

options: --memory 2000MiB
expect: refused
notes: the weights are dummies
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "engine"))

if __name__ == "__main__":
    from vllm.v1.engine.core import EngineCore
    EngineCore(0.15, 4096)
