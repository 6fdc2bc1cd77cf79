"""Files of weights say which layers GPTQ quantized. Where there is none, all linear ones are taken to be.

notes: all linear ones
assumes: all linear layers are quantized
unseen: what follows the engine's start was not run
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "engine"))

if __name__ == "__main__":
    from vllm.v1.engine.core import EngineCore
    EngineCore(0.95, 4096, quantized=True)
    raise AssertionError("it goes on")
