# SPDX-License-Identifier: Apache-2.0
"""How a request's answer is chosen."""
import types


class SamplingParams(types.SimpleNamespace):
    def normalize(self, tokenizer):
        assert tokenizer is None and self.ignore_eos
