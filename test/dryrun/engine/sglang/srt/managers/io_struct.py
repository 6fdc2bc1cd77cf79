# SPDX-License-Identifier: Apache-2.0
"""What a scheduler is asked."""
import types


class TokenizedGenerateReqInput(types.SimpleNamespace):
    pass
