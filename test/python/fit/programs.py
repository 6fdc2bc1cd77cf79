#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training loops as people write them. programs.py FOLDER NAME: run one, keep what it did.

Each makes three steps or more. Gradients are kept as each step leaves them, weights at the end.
"""
import contextlib
import gc
import json
import os
import pathlib
import sys
import tempfile

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, Dataset

kept, models = [], []
WIDTH, CLASSES, ROWS = 16, 8, 12


def join(tensor):
    """Return all of a tensor of which each rank may have a part."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def keep_gradients(optimizer, *_):
    kept.append([join(weight.grad).clone() for group in optimizer.param_groups
                 for weight in group["params"] if weight.grad is not None])


class Rows(Dataset):
    def __init__(self, kind, count=3 * ROWS):
        self.kind = kind
        self.x, self.y = torch.randn(count, WIDTH), torch.randint(CLASSES, (count,))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        if self.kind == "dict":
            return {"x": self.x[i], "labels": self.y[i], "name": f"row {i}"}
        if self.kind == "nested":
            return (self.x[i], {"y": self.y[i]}), [self.x[i], "word"]
        return self.x[i], self.y[i]


class Block(nn.Module):
    def __init__(self, norm=nn.LayerNorm, dropout=0.0, is_inplace=False):
        super().__init__()
        self.norm, self.up, self.down = norm(WIDTH), nn.Linear(WIDTH, 32), nn.Linear(32, WIDTH)
        self.drop, self.is_inplace = nn.Dropout(dropout), is_inplace

    def forward(self, x, scale=1.0):
        if self.is_inplace:
            x = x.add_(1)
        return (x + self.drop(self.down(F.gelu(self.up(self.norm(x))))) * scale,)


class Net(nn.Module):
    """Layers that return tuples and take arguments by name; with labels, a loss, as models of
    transformers do."""

    def __init__(self, **words):
        super().__init__()
        self.layers = nn.ModuleList(Block(**words) for _ in range(4))
        self.head = nn.Linear(WIDTH, CLASSES)
        models.append(self)

    def forward(self, x, labels=None):
        for layer in self.layers:
            x = layer(x, scale=0.5)[0]
        logits = self.head(x)
        return logits if labels is None else (F.cross_entropy(logits, labels), logits)


def loader(kind="tuple", **words):
    return DataLoader(Rows(kind), batch_size=words.pop("rows", ROWS), **words)


def plain(net=None, kind="SGD", **words):
    net = net or Net(**words)
    optimizer = getattr(torch.optim, kind)(net.parameters(), lr=0.1)
    for x, y in loader():
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(net(x), y)
        loss.backward()
        optimizer.step()


def types():
    """A net that tells the types of its logits and gradients."""
    net = Net()
    net.head.register_forward_hook(lambda head, given, result: print("logits", result.dtype))
    plain(net)
    print("gradients", net.head.weight.grad.dtype, torch.ones(2, 2).matmul(torch.ones(2)).dtype)


def named_inputs():
    """A net that is evaluated first, and takes its floats by name."""
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for x, y in loader():
        net.eval()
        print("logits", net(x=x).dtype)
        net.train()
        loss = F.cross_entropy(net(x=x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    states = [one["exp_avg"].dtype for one in optimizer.state.values()]
    print("states", *{*states})


def half():
    plain(Net().bfloat16())


def casts():
    with torch.autocast("cpu", torch.bfloat16):
        plain()


def adam():
    plain(kind="AdamW")


def adamw():
    plain(kind="AdamW", dropout=0.1)


def capturable():
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), capturable=True)
    net(torch.ones(ROWS, WIDTH)).sum().backward()
    with contextlib.suppress(Exception):  # without a GPU it is not
        optimizer.step()


def closure():
    """A step that computes the loss itself, twice."""
    net = Net()
    optimizer = torch.optim.Adam([{"params": net.layers.parameters()},
                                  {"params": net.head.parameters(), "lr": 0.1}], lr=0.01)
    for x, y in loader():
        def loss():
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            return loss

        kept.append([optimizer.step(loss).detach()])


class Living(TorchDispatchMode):
    """Knows what memory operations made, and who still lives."""

    def __init__(self):
        super().__init__()
        self.made = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(one, torch.Tensor):
                storage = one.untyped_storage()
                self.made[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        return result

    def count(self):
        return sum(size for one, size in self.made.values() if not one.expired())


def tells_kept():
    """A net that tells the bytes that wait for its backward pass."""
    net, x, living = Net(), torch.randn(256, WIDTH), Living()
    with living:
        result = net(x)
    print(living.count())
    del result


def hooks():
    plain(kind="AdamW")
    print("hooks", len(nn.modules.module._global_forward_pre_hooks))


def dropout():
    plain(dropout=0.3)


def batch_norm():
    plain(norm=nn.BatchNorm1d)
    kept.append([buffer.float() for buffer in models[0].buffers()])


def in_place():
    plain(is_inplace=True)


def no_layers():
    net = nn.Linear(WIDTH, CLASSES)
    models.append(net)
    plain(net)


def whole():
    """Everything a loop has: a scaler that is off, clipping, a scheduler, an evaluation."""
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    scaler = torch.amp.GradScaler("cpu", enabled=False) if hasattr(torch.amp, "GradScaler") else \
        torch.cuda.amp.GradScaler(enabled=False)
    for _ in range(2):
        net.train()
        for x, y in loader():
            loss = F.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            optimizer.zero_grad()
        net.eval()
        print("evaluated", sum(len(x) for x, _ in loader()), len([*loader()]))
    print("rate", optimizer.param_groups[0]["lr"])


def dicts():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for batch in loader("dict", rows=9):
        assert len(batch["name"]) == len(batch["x"])
        loss = net(batch["x"], labels=batch["labels"])[0]
        loss.backward()
        optimizer.step()
        net.zero_grad()


def nested():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for (x, named), (again, words) in loader("nested"):
        assert len(x) == len(again) == len(words)

        def closure(x=x, y=named["y"]):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)


class Pairs(nn.Module):
    """Layers are pairs, whose parts the model calls itself."""

    def __init__(self):
        super().__init__()
        def part():
            return nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU())
        self.layers = nn.ModuleList(nn.ModuleList([part(), part()]) for _ in range(3))
        self.head = nn.Linear(WIDTH, CLASSES)
        models.append(self)

    def forward(self, x):
        for mixes, feeds in self.layers:
            x = x + mixes(x)
            x = x + feeds(x)
        return self.head(x)


class Careful(Block):
    """A layer that tells of exceptions in its own way, as compilers of operations do."""

    def forward(self, x, scale=1.0):
        try:
            return super().forward(x, scale)
        except Exception as error:
            raise ValueError(f"this layer failed: {error}") from error


def careful():
    net = Net()
    net.layers = nn.ModuleList(Careful() for _ in range(4))
    plain(net)


def uncollected(kind=Block):
    """Count what is alive behind a step without a collector: no cycle holds a tensor."""
    gc.disable()
    net = Net()
    net.layers = nn.ModuleList(kind() for _ in range(4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader():
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        print("alive", sum(isinstance(one, torch.Tensor) for one in gc.get_objects()))


def uncollected_careful():
    uncollected(Careful)


class Named(nn.Module):
    """Parts in attributes, as a U-Net has."""

    def __init__(self):
        super().__init__()
        self.down, self.up = Block(), Block()
        self.up.up = nn.Sequential(self.up.up, nn.ReLU())  # a list, too short to be worth runs
        self.head = nn.Linear(WIDTH, CLASSES)
        models.append(self)

    def forward(self, x):
        x = self.down(x)[0]
        return self.head(self.up(x)[0] + x)


class Chained(nn.Module):
    """A Sequential of single modules, as VGG has, with a hook on it."""

    def __init__(self):
        super().__init__()
        rows = [[nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(inplace=True)]
                for _ in range(4)]
        self.features = nn.Sequential(*sum(rows, []))
        self.head = nn.Linear(WIDTH, CLASSES)
        self.features.register_forward_hook(lambda *_: print("hook"))
        models.append(self)

    def forward(self, x):
        return self.head(self.features(x))


def pairs():
    plain(Pairs())


def named():
    plain(Named())


def chained():
    plain(Chained())
    kept.append([buffer.float() for buffer in models[0].buffers()])


def not_called():
    net = Net()
    net.forward = lambda x: net.head(x)
    plain(net)


def accumulates():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader(rows=4)):
        (F.cross_entropy(net(x), y) / 3).backward()
        if i % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()


def no_loader():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(net(torch.randn(ROWS, WIDTH)), torch.arange(ROWS) % CLASSES).backward()
        optimizer.step()


def one_row():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader(rows=1):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()


def two_steps():
    first, second = Net(), Net()
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (first, second)]
    for x, y in loader():
        for net, optimizer in zip((first, second), optimizers):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()


def by_hand():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader():
        for weight in net.parameters():
            weight.grad = None
        F.cross_entropy(net(x), y).backward()
        optimizer.step()


def sums():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for x, y in loader():
        optimizer.zero_grad()
        F.cross_entropy(net(x), y, reduction="sum").backward()
        optimizer.step()


def zeros():
    """Gradients that are set to zero move a weight on that has no part in a step."""
    net = Net()
    net.spare = nn.Parameter(torch.ones(WIDTH))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    for i, (x, y) in enumerate(loader()):
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(net(x), y) + (net.spare.sum() if i == 0 else 0)
        loss.backward()
        optimizer.step()
        print("freed", net.spare.grad is None)


def lists():
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1, foreach=True)
    for x, y in loader():
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    print("foreach", optimizer.param_groups[0]["foreach"])


def evaluates():
    plain()
    net = models[0].eval()
    losses = [F.cross_entropy(net(x), y) for x, y in loader()]
    kept.append([loss.detach() for loss in losses])
    print("graphs", sum(loss.requires_grad for loss in losses))


class Tables(nn.Module):
    """A list of single modules that the model calls itself, and two parts."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.one, self.two = (nn.Sequential(nn.Linear(WIDTH, width), nn.ReLU())
                              for width in (WIDTH, CLASSES))
        models.append(self)

    def forward(self, x):
        return self.two(self.one(sum(table(x) for table in self.tables)))


def tables():
    plain(Tables())


def samples():
    """Between its steps a net is called for what it makes."""
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader():
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            [net.eval()(x) for _ in range(9)]
        net.train()


def in_a_mode():
    """A mode of dispatch is on all the time, as that of values in a dry run is."""
    with Mode():
        plain()


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, operation, types, given=(), named=None):
        return operation(*given, **(named or {}))


def two_nets():
    """One after the other takes a step, each by an optimizer of its own."""
    nets = Net(), nn.Linear(WIDTH, CLASSES)
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    for x, y in loader():
        for net, optimizer in zip(nets, optimizers):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()


def teacher():
    """A frozen net in evaluation mode, through which gradients go."""
    net, other = Net(), Net().eval()
    optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)
    for x, y in loader():
        optimizer.zero_grad()
        F.cross_entropy(other(torch.cat([net(x)] * 2, 1)), y).backward()
        optimizer.step()


def keeps_losses():
    net, losses = Net(), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        for x, y in loader(rows=4):
            optimizer.zero_grad()
            losses.append(F.cross_entropy(net(x), y))
            losses[-1].backward()
            optimizer.step()
    kept.append([torch.stack(losses).mean().detach()])
    print("graphs", sum(loss.grad_fn is not None for loss in losses))


def large_losses():
    """Cross-entropy of 16 MiB of logits and more, with all its options."""
    rows, classes = 520, 8192
    logits = torch.randn(rows, classes, requires_grad=True)
    target, weight = torch.randint(classes, (rows,)), torch.rand(classes)
    target[::5] = -100
    images = torch.randn(3, 22, 256, 256, requires_grad=True)
    for words in ({}, {"reduction": "sum"}, {"weight": weight}, {"label_smoothing": 0.1},
                  {"weight": weight, "label_smoothing": 0.2}, {"ignore_index": 3}):
        used = target.clamp(min=0) if "ignore_index" in words else target
        loss = nn.CrossEntropyLoss(**words)(logits, used)
        loss.backward()
        kept.append([loss.detach(), logits.grad])
        logits.grad = None
    each = F.cross_entropy(logits, target, reduction="none")
    each.square().mean().backward()
    loss = F.cross_entropy(images, torch.randint(22, (3, 256, 256)))
    loss.backward()
    kept.append([each.detach(), logits.grad, loss.detach(), images.grad])
    with torch.autocast("cpu", torch.bfloat16):
        F.cross_entropy(logits.to(torch.bfloat16), target).backward()
    kept.append([logits.grad])
    likely = logits.detach().softmax(1)
    F.cross_entropy(logits, likely).backward()


def compiles():
    net = Net()
    compiled = torch.compile(net, backend="eager")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader():
        optimizer.zero_grad()
        F.cross_entropy(compiled(x), y).backward()
        optimizer.step()
    print("budget", torch._functorch.config.activation_memory_budget)


class Ahead(DataLoader):
    """Reads one batch ahead of the one it gives, as loaders of Accelerate do."""

    def __iter__(self):
        batches = super().__iter__()
        batch = next(batches)
        for following in batches:
            yield batch
            batch = following
        yield batch


def reads_ahead():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in Ahead(Rows("tuple"), batch_size=ROWS):
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


class TrainingArguments:
    """Has the arguments of transformers' trainer."""

    def __init__(self):
        self.per_device_train_batch_size, self.gradient_accumulation_steps = ROWS, 1
        self.__post_init__()

    def __post_init__(self):
        pass


class Trainer:
    """Accumulates as trainers do, by Lightning's argument."""

    def __init__(self, accumulate_grad_batches=1):
        self.count = accumulate_grad_batches

    def fit(self, net, batches):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for i, (x, y) in enumerate(batches):
            (F.cross_entropy(net(x), y) / self.count).backward()
            if (i + 1) % self.count == 0:
                optimizer.step()
                optimizer.zero_grad()


def has_arguments():
    words = TrainingArguments()
    Trainer(words.gradient_accumulation_steps).fit(
        Net(), loader(rows=words.per_device_train_batch_size))


def has_trainer():
    Trainer().fit(Net(), loader())


@contextlib.contextmanager
def ranks():
    """Have two processes go on here. The first waits for the other."""
    with tempfile.TemporaryDirectory() as folder:
        other = os.fork()
        torch.set_num_threads(1)  # makes a pool anew; in a fork two threads at once would not
        words = {"rank": int(not other), "world_size": 2, "init_method": f"file://{folder}/store"}
        torch.distributed.init_process_group("gloo", **words)
        yield
        torch.distributed.destroy_process_group()
        if not other:
            os._exit(0)
        assert os.waitpid(other, 0)[1] == 0


def local(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def two_ranks():
    """Data-parallel training; the first process tells how many numbers Adam keeps."""
    adams = []
    register_optimizer_step_post_hook(
        lambda adam, *_: adams.append(adam) if type(adam) is torch.optim.AdamW else None)
    with ranks():
        net = nn.parallel.DistributedDataParallel(Net())
        assert len(list(net.module.layers)) == 4
        plain(net, kind="AdamW")
        if not torch.distributed.get_rank():
            print("states", sum(local(value).numel() for state in adams[-1].state.values()
                                for value in state.values() if value.dim()))
        kept.append([join(weight.detach()) for weight in models.pop().parameters()])


def optimizer_first():
    with ranks():
        net = Net()
        optimizer = torch.optim.AdamW(net.parameters())
        nn.parallel.DistributedDataParallel(net)(torch.ones(1, WIDTH)).sum().backward()
        optimizer.step()


def settings():
    print("conf", os.environ.get("PYTORCH_CUDA_ALLOC_CONF"), os.environ.get("PYTORCH_ALLOC_CONF"))


def main(folder, name):
    torch.set_num_threads(1)
    torch.manual_seed(7)
    register_optimizer_step_post_hook(keep_gradients)
    folder = pathlib.Path(folder)
    try:
        globals()[name]()
    finally:
        kept.append([weight.detach() for model in models for weight in model.parameters()])
        torch.save(kept, folder / "kept.pt")
        if "drystone.fit" in sys.modules:
            told = sys.modules["drystone.fit"].tell()
            (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
