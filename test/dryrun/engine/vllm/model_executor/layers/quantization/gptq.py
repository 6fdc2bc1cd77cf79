# SPDX-License-Identifier: Apache-2.0
"""Which layers are quantized: those that the files of weights have so."""
import pathlib


class GPTQConfig:
    modules_in_block_to_quantize = None

    def maybe_update_config(self, folder):
        files = pathlib.Path(folder).glob("*.safetensors")
        self.modules_in_block_to_quantize = [one.stem for one in files]

    def quantizes(self, layer):
        return any(part in layer for part in self.modules_in_block_to_quantize)
