# SPDX-License-Identifier: Apache-2.0
"""One layer of eight architectures, in plain torch.nn, each with its configuration file."""
import math

import torch
from torch import nn
from torch.nn import functional as F

BATCH, LENGTH, WIDTH, HEADS, INNER = 2, 96, 64, 4, 256
TRANSFORMER = {"vocab_size": 1000, "max_position_embeddings": 128}


def new_gelu(x):
    """As Transformers writes it for GPT-2: of single operations."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) *
                                       (x + 0.044715 * torch.pow(x, 3.0))))


class Attention(nn.Module):
    def __init__(self, groups=HEADS, bias=True, dropout=0.0, is_flash=False, lora=0):
        super().__init__()
        self.head = WIDTH // HEADS
        self.groups, self.dropout, self.is_flash = groups, dropout, is_flash
        self.query = adapted(nn.Linear(WIDTH, WIDTH, bias), lora)
        self.key = nn.Linear(WIDTH, groups * self.head, bias)
        self.value = adapted(nn.Linear(WIDTH, groups * self.head, bias), lora)
        self.out = nn.Linear(WIDTH, WIDTH, bias)

    def split(self, x, heads):
        return x.view(*x.shape[:2], heads, self.head).transpose(1, 2)

    def eager(self, q, k, v):
        weights = (q @ k.transpose(2, 3) / math.sqrt(self.head)).softmax(-1)
        return F.dropout(weights, self.dropout, self.training) @ v

    def forward(self, x):
        q = self.split(self.query(x), HEADS)
        k, v = (self.split(layer(x), self.groups) for layer in (self.key, self.value))
        if self.is_flash:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                               enable_gqa=self.groups != HEADS)
        else:
            each = HEADS // self.groups
            if each > 1:
                k, v = k.repeat_interleave(each, 1), v.repeat_interleave(each, 1)
            y = self.eager(q, k, v)
        return self.out(y.transpose(1, 2).flatten(2))


class Lora(nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x)) * 2.0


def adapted(layer, rank):
    return Lora(layer, rank) if rank else layer


class PreNorm(nn.Module):
    """GPT-2's."""

    def __init__(self, activation, dropout=0.0, is_flash=False):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention(dropout=dropout, is_flash=is_flash)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.activation, self.dropout = activation, dropout

    def forward(self, x):
        x = x + F.dropout(self.attention(self.first(x)), self.dropout)
        y = self.down(self.activation(self.up(self.second(x))))
        return x + F.dropout(y, self.dropout)


class PostNorm(nn.Module):
    """BERT's."""

    def __init__(self, dropout):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention(dropout=dropout)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.dropout = dropout

    def forward(self, x):
        x = self.first(x + F.dropout(self.attention(x), self.dropout))
        return self.second(x + F.dropout(self.down(F.gelu(self.up(x))), self.dropout))


class Gated(nn.Module):
    def __init__(self, inner=INNER):
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDTH, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """As Mixtral's, every token to two of four; sorted by expert, and back.

    Or added up by index_add_, an expert after the other.
    """

    def __init__(self, count=4, chosen=2, is_index_add=False):
        super().__init__()
        self.chosen, self.is_index_add = chosen, is_index_add
        self.router = nn.Linear(WIDTH, count, bias=False)
        self.experts = nn.ModuleList(Gated() for _ in range(count))

    def forward(self, x):
        flat = x.flatten(0, 1)
        weights, which = F.softmax(self.router(flat), -1, dtype=torch.float).topk(self.chosen)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        add_up = self.added if self.is_index_add else self.sorted
        return add_up(flat, weights, which).view(x.shape)

    def added(self, flat, weights, which):
        y = torch.zeros_like(flat)
        for index, expert in enumerate(self.experts):
            token, place = torch.where(which == index)
            y.index_add_(0, token, expert(flat[token]) * weights[token, place, None])
        return y

    def sorted(self, flat, weights, which):
        order = which.flatten().argsort(stable=True)
        counts = which.flatten().bincount(minlength=len(self.experts)).tolist()
        parts = flat[order // self.chosen].split(counts)
        done = torch.cat([expert(part) for expert, part in zip(self.experts, parts)])
        return (done[order.argsort()].view(*weights.shape, -1) * weights[..., None]).sum(1)


class RmsNorm(nn.Module):
    """As Transformers writes it: of single operations, in float32."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * wide.to(x.dtype)


class Llama(nn.Module):
    def __init__(self, groups=2, is_flash=True, mlp=None, lora=0, norm=RmsNorm):
        super().__init__()
        self.first, self.second = norm(), norm()
        self.attention = Attention(groups, False, 0.0, is_flash, lora)
        self.mlp = mlp or Gated()
        if lora:
            self.requires_grad_(False)
            for module in self.modules():
                if isinstance(module, Lora):
                    module.down.requires_grad_(True)
                    module.up.requires_grad_(True)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class Bottleneck(nn.Module):
    """ResNet-50's, in front of it what makes the channels fit."""

    def __init__(self, before=64, inner=64, after=256):
        super().__init__()
        self.one = nn.Conv2d(before, inner, 1, bias=False)
        self.two = nn.Conv2d(inner, inner, 3, padding=1, bias=False)
        self.three = nn.Conv2d(inner, after, 1, bias=False)
        self.side = nn.Conv2d(before, after, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in (inner, inner, after, after))

    def forward(self, x):
        y = F.relu(self.norms[0](self.one(x)))
        y = F.relu(self.norms[1](self.two(y)))
        return F.relu(self.norms[2](self.three(y)) + self.norms[3](self.side(x)))


def gpt2(activation, dropout):
    return {"model_type": "gpt2", "n_layer": 1, "n_embd": WIDTH, "n_head": HEADS,
            "n_positions": 128, "vocab_size": 1000, "activation_function": activation,
            "resid_pdrop": dropout, "attn_pdrop": dropout, "embd_pdrop": dropout}


def llama(**more):
    return {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": WIDTH,
            "num_attention_heads": HEADS, "num_key_value_heads": 2,
            "intermediate_size": INNER, "hidden_act": "silu", "rms_norm_eps": 1e-5,
            **TRANSFORMER, **more}


def bert(dropout):
    return {"model_type": "bert", "num_hidden_layers": 1, "hidden_size": WIDTH,
            "num_attention_heads": HEADS, "intermediate_size": INNER, "hidden_act": "gelu",
            "type_vocab_size": 2, "hidden_dropout_prob": dropout,
            "attention_probs_dropout_prob": dropout, **TRANSFORMER}


def conv(channels, kernel=1, **more):
    return {"type": "conv", "channels": channels, "kernel": kernel,
            "padding": kernel // 2, "bias": False, **more}


IMAGES = {"channels": 64, "height": 28, "width": 28, "layers": [
    conv(64), {"type": "norm"}, {"type": "relu"},
    conv(64, 3), {"type": "norm"}, {"type": "relu"},
    conv(256), {"type": "norm"},
    conv(256, **{"from": -1}), {"type": "norm"},
    {"type": "add", "with": 7}, {"type": "relu"}]}


RMS = ["--composed-norm"]


def new():
    """(name, layer, its configuration, words for the command)."""
    return [
        ("GPT-2, eager, dropout", PreNorm(new_gelu, 0.1), gpt2("gelu_new", 0.1),
         ["--attention", "eager"]),
        ("GPT-2, eager", PreNorm(F.gelu), gpt2("gelu", 0.0), ["--attention", "eager"]),
        ("GPT-2, flash", PreNorm(F.gelu, is_flash=True), gpt2("gelu", 0.0),
         ["--attention", "flash"]),
        ("BERT, eager, dropout", PostNorm(0.1), bert(0.1), ["--attention", "eager"]),
        ("Llama, GQA, flash", Llama(), llama(), [*RMS, "--attention", "flash"]),
        ("Llama, GQA, eager", Llama(is_flash=False), llama(),
         [*RMS, "--attention", "eager", "--repeated-kv"]),
        ("Mixtral, eager", Llama(is_flash=False, mlp=Experts()),
         llama(model_type="mixtral", num_local_experts=4, num_experts_per_tok=2),
         [*RMS, "--attention", "eager", "--repeated-kv"]),
        ("Mixtral, index_add_",
         Llama(is_flash=False, mlp=Experts(is_index_add=True)),
         llama(model_type="mixtral", num_local_experts=4, num_experts_per_tok=2),
         [*RMS, "--attention", "eager", "--repeated-kv", "--index-add"]),
        # Its norms are not trained, so what is normalized is not saved.
        ("Llama, LoRA", Llama(lora=8), llama(),
         [*RMS, "--attention", "flash", "--lora", "8"]),
        ("ResNet bottleneck", Bottleneck(), IMAGES, []),
    ]


def new_gpu():
    """The same with functions that make a layer."""
    return [
        ("GPT-2, eager, dropout", lambda: PreNorm(new_gelu, 0.1), gpt2("gelu_new", 0.1),
         ["--attention", "eager"]),
        ("BERT, eager, dropout", lambda: PostNorm(0.1), bert(0.1), ["--attention", "eager"]),
        ("Llama, GQA, eager",
         lambda: Llama(is_flash=False, norm=lambda: nn.RMSNorm(WIDTH, 1e-5)), llama(),
         ["--attention", "eager", "--repeated-kv"]),
    ]
