# SPDX-License-Identifier: Apache-2.0
"""Free memory after each of twenty out-of-memory errors; a part of the card is held."""
import part

TIMES = 20


def main():
    given = part.begin(__doc__)
    import torch
    total = torch.cuda.mem_get_info()[1]
    held = [torch.empty(total // 40, dtype=torch.uint8, device="cuda") for _ in range(16)]
    del held[1::2]  # 20 % is in use, 20 % is free between
    rows = []
    for _ in range(TIMES):
        try:
            torch.empty(total, dtype=torch.uint8, device="cuda")
            raise SystemExit("all of the card was to be had")
        except torch.OutOfMemoryError:
            pass
        rows.append({"free": torch.cuda.mem_get_info()[0],
                     "reserved": torch.cuda.memory_reserved(),
                     "allocated": torch.cuda.memory_allocated()})
    part.put(allocator=given.allocator, total=total, after=rows)
    lost = rows[0]["free"] - rows[-1]["free"]
    part.say(f"{rows[-1]['free'] / part.MIB:.0f} MiB free after {TIMES}, {lost} bytes less "
             "than after 1")


main()
