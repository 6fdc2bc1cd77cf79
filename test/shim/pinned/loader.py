# SPDX-License-Identifier: Apache-2.0
"""A DataLoader that pins, without and with workers: right numbers, memory used again."""
from pinned_here import check, enable_pinned, pinned_clear, pinned_stats, torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return {"x": torch.full((3, 100 + index % 3), float(index))[:, :100], "y": index}


def main():
    enable_pinned(block_size_mb=16, block_count=2)
    for workers in (0, 2):
        seen, arenas = [], pinned_stats()["num_host_alloc"]
        for _ in range(3):
            loader = DataLoader(Numbers(), batch_size=8, num_workers=workers, pin_memory=True)
            for batch in loader:
                assert batch["x"].is_pinned() and batch["y"].is_pinned()
                device = batch["x"].to("cuda", non_blocking=True)
                assert torch.equal(device.cpu()[:, 0, 0], batch["y"].float())
                seen += batch["y"].tolist()
        assert sorted(seen) == sorted(3 * list(range(64))), workers
        assert pinned_stats()["num_host_alloc"] - arenas <= 4, "batches' memory is used again"
    del batch, device, loader
    torch.cuda.synchronize()
    pinned_clear()
    assert pinned_stats()["allocated_bytes.current"] == 0, pinned_stats()
    check()


if __name__ == "__main__":
    main()
