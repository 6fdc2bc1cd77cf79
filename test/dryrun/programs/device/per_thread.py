"""Threads that each have a stream and a device of their own at the same time.

gpus: 2
"""
import threading

import torch

wrong = []


def work(device):
    try:
        torch.cuda.set_device(device)
        with torch.cuda.stream(torch.cuda.Stream()):
            model = torch.nn.Linear(256, 256).cuda()
            for _ in range(10):
                model(torch.zeros(64, 256, device="cuda")).sum().backward()
            assert model.weight.device.index == device == torch.cuda.current_device()
    except BaseException as error:
        wrong.append(error)


threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
assert torch.cuda.current_device() == 0
assert all(torch.cuda.max_memory_allocated(i) > 0 for i in range(2))
