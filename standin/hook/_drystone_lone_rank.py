# SPDX-License-Identifier: Apache-2.0
"""One rank of a job without its other ranks: emulates their answers.

NCCL's stand-in settles operations as if every rank had this one's data. Communication that does
not use NCCL is replaced here:

    rendezvous     a store in this process; a key that another rank would set reads as zeros
    gloo           PyTorch's fake back end: tensors keep their values
    objects        every rank sends this rank's object; a broadcast keeps this rank's object;
                   one rank sends what this rank sent last, as stages of a pipeline do
    agreement      rank 0 sends what others compare with their own, as DeepSpeed does: it agrees
"""
import inspect
import pickle
import sys
import threading
from datetime import timedelta

ID_BYTES = 128  # of NCCL's unique id, the only value PyTorch's NCCL reads from another rank
TROUBLE = "exception_dump"  # a key by which a rank asks all others to dump what they did


def make_store(core):
    class LoneStore(core.Store):
        """A store that never waits: a missing key reads as zeros."""

        def __init__(self):
            super().__init__()
            self.values, self.lock = {}, threading.Lock()

        def set(self, key, value):
            with self.lock:
                self.values[key] = value.encode() if isinstance(value, str) else bytes(value)

        def get(self, key):
            with self.lock:
                return self.values.get(key, bytes(ID_BYTES))

        def add(self, key, amount):
            with self.lock:
                now = int(self.values.get(key, b"0")) + amount
                self.values[key] = str(now).encode()
                return now

        def compare_set(self, key, expected, desired):
            with self.lock:
                if self.values.get(key, b"").decode() in ("", expected):
                    self.values[key] = desired.encode()
                return self.values[key]

        def check(self, keys):
            return not any(TROUBLE in key for key in keys)

        def wait(self, keys, timeout=timedelta()):
            pass

        def delete_key(self, key):
            with self.lock:
                return self.values.pop(key, None) is not None

        def num_keys(self):
            return len(self.values)

        def set_timeout(self, timeout):
            pass

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, values):
            for key, value in zip(keys, values):
                self.set(key, value)

        def has_extended_api(self):
            return True

        def clone(self):
            return self

    return LoneStore()


def without_gloo(backend):
    return "cpu:fake,cuda:nccl" if backend is None else backend.replace("gloo", "fake")


def replace_rendezvous(core, size, rank, note):
    store = make_store(core)

    def lone(url, *_, **__):
        yield store, rank, size

    handlers = core.rendezvous.__globals__["_rendezvous_handlers"]
    for scheme in list(handlers):
        handlers[scheme] = lone
    signature, initialize = inspect.signature(core.init_process_group), core.init_process_group

    def init_process_group(*given, **named):
        bound = signature.bind(*given, **named).arguments
        bound["backend"] = without_gloo(bound.get("backend"))
        bound.pop("store", None)  # the program's store would wait for the other ranks
        for name, number in (("world_size", size), ("rank", rank)):
            if bound.pop(name, number) not in (-1, number):
                note(f"init_process_group: its {name} is not --{name.replace('_', '-')}")
        return initialize(**bound)

    return init_process_group


def replace_objects(core):
    """Return collectives of objects that work on the host, without sizes from the device."""

    def all_gather_object(object_list, obj, group=None):
        object_list[:] = [obj] * len(object_list)

    def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
        if object_gather_list is not None:
            object_gather_list[:] = [obj] * len(object_gather_list)

    def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None,
                            src=None, group=None, group_src=None):
        if scatter_object_input_list:
            scatter_object_output_list[0] = scatter_object_input_list[core.get_rank(group)]

    def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
        pass

    def send_object_list(object_list, *_, **__):
        sent[:] = [pickle.dumps(one) for one in object_list]

    def recv_object_list(object_list, src=None, *_, group_src=None, **__):
        rank = group_src if src is None else src
        if len(sent) != len(object_list):
            raise RuntimeError(f"{len(object_list)} objects of a rank: rank {rank} is not there, "
                               "and this one sent nothing like them before")
        object_list[:] = map(pickle.loads, sent)
        return rank

    sent = []
    return [all_gather_object, gather_object, scatter_object_list, broadcast_object_list,
            send_object_list, recv_object_list]


def replace_groups(core):
    signature, make_group = inspect.signature(core.new_group), core.new_group

    def new_group(*given, **named):
        bound = signature.bind(*given, **named).arguments
        if bound.get("backend") is not None:
            bound["backend"] = without_gloo(bound["backend"])
        return make_group(**bound)

    def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
        pass

    return [new_group, monitored_barrier]


def put(core, function):
    """Replace core's function, also where a module has imported it by name."""
    before = getattr(core, function.__name__)
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.distributed") and \
                vars(module).get(function.__name__) is before:
            setattr(module, function.__name__, function)


def stand_in(size, rank, note):
    """Replace the functions of torch.distributed that would wait for other ranks."""
    try:
        import torch.distributed.distributed_c10d as core
        # registers the back end "fake"
        import torch.testing._internal.distributed.fake_pg  # noqa: F401
    except ImportError as error:
        note(f"no torch.distributed: {error}")
        return
    for function in [replace_rendezvous(core, size, rank, note), *replace_objects(core),
                     *replace_groups(core)]:
        put(core, function)


def derive_gradients(module):
    """Replace what a stage of a pipeline asks the next one: its gradients are as its outputs are."""
    stage = module.PipelineStage
    receive = getattr(stage, "_recv_meta", None)

    def _recv_meta(self, src_stage):
        if src_stage < self.stage_index:
            return receive(self, src_stage)
        return module._StageBackwardMeta(module._derive_grad_metas(self._stage_meta.outputs))

    if receive:  # other releases do not ask
        stage._recv_meta = _recv_meta


def agree(module):
    """Replace DeepSpeed's checks, in which other ranks than 0 offer a number that differs."""
    if hasattr(module, "get_lst_from_rank0"):
        module.get_lst_from_rank0 = list
    if hasattr(module, "assert_lst_len_same_as_other_ranks"):
        module.assert_lst_len_same_as_other_ranks = lambda numbers: None
