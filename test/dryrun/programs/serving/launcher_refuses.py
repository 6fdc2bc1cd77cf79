"""A launcher whose share leaves nothing for a KV cache says so in its own words, kills all processes, and
does not fit.

options: --memory 2000MiB
expect: refused
notes: the weights are dummies
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(HERE / "engine"))

if __name__ == "__main__":
    from sglang.launch_server import launch
    launch(model_path=str(HERE / "engine"), mem_fraction_static=0.005)
