"""A notebook: its kernel is a process that jupyter starts, and cells share what they make.

needs: nbclient, nbformat, ipykernel
"""
import nbclient
import nbformat

cells = ["import torch\nmodel = torch.nn.Linear(512, 512).cuda()",
         "optimizer = torch.optim.AdamW(model.parameters())",
         "for _ in range(6):\n    model(torch.randn(64, 512, device='cuda')).sum().backward()\n"
         "    optimizer.step()\n    optimizer.zero_grad()",
         "assert torch.cuda.memory_allocated() > 0"]
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
nbclient.NotebookClient(book, kernel_name="python3").execute()
