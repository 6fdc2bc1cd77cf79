# SPDX-License-Identifier: Apache-2.0
"""A draft shares the model's head unless the files of its weights have one."""
import types

import torch


class SpecDecodeBaseProposer:
    def __init__(self, words):
        head = torch.nn.Linear(64, words, bias=False, device="cuda")
        self.model = types.SimpleNamespace(has_own_lm_head=False, lm_head=head)

    def _maybe_share_lm_head(self, target_language_model):
        if not self.model.has_own_lm_head:
            self.model.lm_head = target_language_model.lm_head
