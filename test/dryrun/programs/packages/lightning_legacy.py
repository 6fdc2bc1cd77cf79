"""Lightning under its older name, by hand: manual optimisation of two networks.

needs: pytorch_lightning
"""
import pytorch_lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Module(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.make, self.judge = nn.Linear(16, 64), nn.Linear(64, 1)

    def training_step(self, batch, _):
        for optimizer, sign in zip(self.optimizers(), (1, -1)):
            self.toggle_optimizer(optimizer)
            self.manual_backward(sign * self.judge(self.make(batch[0])).mean())
            optimizer.step()
            optimizer.zero_grad()
            self.untoggle_optimizer(optimizer)

    def configure_optimizers(self):
        return [torch.optim.Adam(self.make.parameters()), torch.optim.Adam(self.judge.parameters())]


if __name__ == "__main__":
    data = DataLoader(TensorDataset(torch.randn(64, 16)), batch_size=16)
    trainer = pytorch_lightning.Trainer(max_epochs=2, precision="bf16-mixed", logger=False,
                                        accelerator="gpu", devices=1, enable_checkpointing=False)
    trainer.fit(Module(), data)
