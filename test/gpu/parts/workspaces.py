# SPDX-License-Identifier: Apache-2.0
"""cuDNN's workspaces in the convolutions of ResNet-50, by layer, in bf16 and fp32.

A workspace is what a convolution asks of the allocator beside its outputs: PyTorch's history of
memory has them. The layers are those of the network at 224 x 224, each shape once.
"""
import part

BATCH = 64


def layers():
    """(channels in, out, kernel, stride, size of the image) of each shape."""
    found, width, size = [(3, 64, 7, 2, 224)], 64, 56
    for stage in range(4):
        inner, stride = 64 << stage, 1 if stage == 0 else 2
        small = size // stride
        for layer in ((width, inner, 1, 1, size), (inner, inner, 3, stride, size),
                      (inner, 4 * inner, 1, 1, small), (width, 4 * inner, 1, stride, size),
                      (4 * inner, inner, 1, 1, small), (inner, inner, 3, 1, small)):
            if layer not in found:
                found.append(layer)
        width, size = 4 * inner, small
    return found


def asked(torch, work):
    """The sizes of requests while `work` runs, but for the tensors that it returns."""
    def events():
        return torch.cuda.memory._snapshot()["device_traces"][0]

    count = len(events())
    kept = {tensor.data_ptr() for tensor in work()}
    torch.cuda.synchronize()
    sizes = []
    for event in reversed(events()[count:]):
        if event["action"] != "alloc":
            continue
        if event["addr"] in kept:
            kept.remove(event["addr"])
        else:
            sizes.append(event["size"])
    return sorted(sizes, reverse=True)


def measure(torch, layer, dtype):
    into, out, kernel, stride, size = layer
    conv = torch.nn.Conv2d(into, out, kernel, stride, kernel // 2, bias=False)
    conv = conv.to("cuda", dtype, memory_format=torch.channels_last)
    x = torch.zeros(BATCH, into, size, size, device="cuda", dtype=dtype)
    x = x.to(memory_format=torch.channels_last).requires_grad_(True)
    outputs = []

    def forward():
        outputs.append(conv(x))
        return outputs

    def backward():
        return torch.autograd.grad(outputs[0], (x, conv.weight), torch.ones_like(outputs[0]))

    forward_sizes = asked(torch, forward)
    ones = outputs[0].untyped_storage().nbytes()
    backward_sizes = asked(torch, backward)
    if ones in backward_sizes:
        backward_sizes.remove(ones)  # the gradient that is put in
    return {"layer": layer, "dtype": str(dtype).replace("torch.", ""),
            "forward": forward_sizes, "backward": backward_sizes}


def main():
    given = part.begin(__doc__)
    import torch
    torch.cuda.memory._record_memory_history("all", context=None, max_entries=1000000)
    shapes = layers()[:2] if given.quick else layers()
    largest = {}
    for dtype in (torch.bfloat16, torch.float32):
        rows = [measure(torch, layer, dtype) for layer in shapes]
        for row in rows:
            part.put(**row)
        largest[rows[0]["dtype"]] = max(sum(row["forward"] + row["backward"][:1]) for row in rows)
    part.say(f"{len(shapes)} layers, most MiB: " + ", ".join(
        f"{size / part.MIB:.0f} {name}" for name, size in largest.items()))


main()
