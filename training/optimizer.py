"""Muon for the matrices inside the network, AdamW for everything else, one learning rate for both.

Muon (Jordan et al. 2024) replaces a matrix's momentum by the nearest matrix whose singular values
are all about one, so that rare directions are learned as fast as frequent ones. Its updates are
scaled to the size of AdamW's (Liu et al. 2025, arXiv:2502.16982), so both share a learning rate.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

MOMENTUM = 0.95
ADAM_BETAS = (0.9, 0.95)
TABLE_DECAY = 0.1  # gentler: rare tokens have few gradients to hold against it
UPDATE_SIZE = 0.2  # root mean square of AdamW's typical update


def learning_rate(step: int, steps: int, *, peak: float, warmup: int = 300) -> float:
    """Rise in a straight line for `warmup` steps, then fall in a straight line to zero."""
    return peak * min(1.0, (step + 1) / warmup, (steps - step) / max(1, steps - warmup))


class Optimizer:
    """Updates a model that computes in bfloat16 through a float32 copy of its weights.

    `inside` is how the names of the network's blocks begin: matrices under it are Muon's.
    Embeddings, biases and norms are AdamW's. `decay` is the matrices' weight decay.
    """

    def __init__(self, model: nn.Module, *, inside: str, decay: float) -> None:
        self.decay = decay
        self.copies = {name: w.detach().clone() for name, w in model.named_parameters()}
        model.to(torch.bfloat16)
        self.weights = dict(model.named_parameters())
        names = [n for n, w in self.copies.items() if n.startswith(inside) and w.ndim == 2]
        self.stacks = _group_by_shape(names, self.copies)
        self.momenta = [torch.zeros_like(self._stack(stack, self.copies)) for stack in self.stacks]
        self.adamw = self._adamw([n for n in self.copies if n not in names])

    def step(self, rate: float) -> None:
        """One update at the learning rate `rate`; the gradients are used up."""
        gradients = {n: w.grad.float() for n, w in self.weights.items() if w.grad is not None}
        for stack, momentum in zip(self.stacks, self.momenta, strict=True):
            self._muon(stack, momentum, self._stack(stack, gradients), rate)
        for group in self.adamw.param_groups:
            group["lr"] = rate
            for name, copy in zip(group["names"], group["params"], strict=True):
                copy.grad = gradients[name]
        self.adamw.step()
        with torch.no_grad():
            weights, copies = list(self.weights.values()), list(self.copies.values())
            torch._foreach_copy_(weights, copies)  # pyright: ignore
        for weight in self.weights.values():
            weight.grad = None

    @torch.no_grad()
    def finish(self, model: nn.Module) -> None:
        """Give the model its float32 weights, rounded to what a float16 file can hold."""
        model.float()
        for name, weight in model.named_parameters():
            weight.copy_(self.copies[name].half())

    def _adamw(self, names: list[str]) -> torch.optim.AdamW:
        tables = [n for n in names if self.copies[n].ndim == 2]
        vectors = [n for n in names if self.copies[n].ndim == 1]
        groups = [
            {
                "params": [self.copies[n] for n in tables],
                "names": tables,
                "weight_decay": TABLE_DECAY,
            },
            {"params": [self.copies[n] for n in vectors], "names": vectors, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, betas=ADAM_BETAS, fused=True)

    def _stack(self, names: list[str], tensors: dict[str, Tensor]) -> Tensor:
        return torch.stack([block for name in names for block in _blocks(tensors[name])])

    def _muon(self, names: list[str], momentum: Tensor, gradient: Tensor, rate: float) -> None:
        momentum.lerp_(gradient, 1 - MOMENTUM)
        update = orthogonalise(gradient.lerp(momentum, MOMENTUM))  # Nesterov's momentum
        scale = rate * UPDATE_SIZE * math.sqrt(max(update.shape[-2:]))
        copies = [block for name in names for block in _blocks(self.copies[name])]
        torch._foreach_mul_(copies, 1 - rate * self.decay)  # pyright: ignore[reportPrivateImportUsage]
        updates = list(update.unbind())
        torch._foreach_add_(copies, updates, alpha=-scale)  # pyright: ignore[reportPrivateImportUsage]


def orthogonalise(matrices: Tensor, iterations: int = 5) -> Tensor:
    """Bring all singular values of every (wide) matrix close to one, by Newton–Schulz iteration.

    The coefficients of x ↦ ax + bx³ + cx⁵ are Jordan's: steep at zero, so five steps are enough.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrices.bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(iterations):
        gram = x @ x.mT
        polynomial = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, polynomial, x, beta=a)
    return x.float()


def _group_by_shape(names: list[str], tensors: dict[str, Tensor]) -> list[list[str]]:
    """Matrices whose blocks have one shape are orthogonalised together, in one product."""
    groups: dict[torch.Size, list[str]] = {}
    for name in names:
        groups.setdefault(_blocks(tensors[name])[0].shape, []).append(name)
    return list(groups.values())


def _blocks(matrix: Tensor) -> list[Tensor]:
    """A matrix as wide blocks: GPT-2's fused query, key and value are three, tall ones are turned.

    The blocks are views, so changing them changes the matrix.
    """
    rows, columns = matrix.shape
    parts = matrix.chunk(3, dim=1) if columns == 3 * rows else (matrix,)
    return [part.mT if rows > columns else part for part in parts]
