# SPDX-License-Identifier: Apache-2.0
"""The engine, and what it is asked."""


class EngineCoreRequest:
    __struct_fields__ = ("request_id", "prompt_token_ids", "sampling_params", "arrival_time",
                         "lora_request", "priority")
    __struct_defaults__ = (0,)

    def __init__(self, *, priority=0, **fields):
        assert set(fields) == set(self.__struct_fields__[:-1]) and fields["lora_request"] is None
        self.__dict__.update(fields, priority=priority)
