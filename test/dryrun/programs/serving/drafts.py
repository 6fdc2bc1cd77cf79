"""A draft whose head has other words than the model's keeps it, as with the files of its weights.

guesses: none
"""
import pathlib
import sys
import types

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "engine"))

if __name__ == "__main__":
    from vllm.v1.spec_decode.eagle import SpecDecodeBaseProposer
    model = types.SimpleNamespace(lm_head=torch.nn.Linear(64, 128, bias=False, device="cuda"))
    for words, is_own in ((32, True), (128, False)):
        draft = SpecDecodeBaseProposer(words)
        draft._maybe_share_lm_head(model)
        assert (draft.model.lm_head is not model.lm_head) == is_own
