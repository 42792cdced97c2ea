"""The loop of training: a fixed number of steps, so that a machine that is busy, or paused, trains the same model."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from tokenizers import Tokenizer
from torch import nn

from train.collecting import Data
from train.drawing import Drawer
from train.encoder import Encoder
from train.learning import FROZEN, Lesson, Teacher
from train.net import Net

log = logging.getLogger(__name__)

_ENCODER_RATE: Final = 6e-5
_HEAD_RATE: Final = 1e-3
_LEAST_RATE: Final = 0.02
_WARM_UP: Final = 60
_DECAY: Final = 0.01
_CLIP: Final = 1.0
_TOLD: Final = 25
_SAVED: Final = 100
_FADING: Final = 0.95


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and from which seed. `checkpoint` is written every so many steps; one that is there is gone on from.

    A checkpoint of another plan or recipe is not looked for: give each its own file.
    """

    steps: int
    seed: int
    threads: int
    checkpoint: Path | None = None


def train(
    encoder: Encoder, published: Encoder, tokenizer: Tokenizer, data: Data, plan: Plan, teacher: Teacher | None = None
) -> Net:
    """Train heads and the upper layers of `encoder`, which belongs to the model from then on. `published` stays."""
    torch.manual_seed(plan.seed)
    torch.set_num_threads(plan.threads)
    net = Net(encoder)
    frozen = [encoder.words, encoder.places, encoder.kinds, encoder.norm, *list(encoder.layers)[:FROZEN]]
    for part in frozen:
        part.requires_grad_(False)
    optimizer = _optimizer(net)
    lesson = Lesson(net, published, tokenizer, teacher)
    drawer = Drawer(data, plan.seed)
    done = _resumed(plan, net, optimizer)
    for _ in range(done):
        lesson.skip(drawer.draw())
    published.train()  # the faster attention; neither has dropout
    net.train()
    tell = _teller(plan.steps)
    for step in range(done + 1, plan.steps + 1):
        share = max(_LEAST_RATE, min(1.0, step / _WARM_UP) * (1 - (step - 1) / plan.steps))
        for group in optimizer.param_groups:
            group["lr"] = group["top"] * share
        losses = lesson.losses(drawer.draw())
        optimizer.zero_grad()
        losses.total.backward()
        nn.utils.clip_grad_norm_(net.parameters(), _CLIP)
        optimizer.step()
        tell(step, {name: float(value.detach()) for name, value in losses.parts.items()})
        if plan.checkpoint is not None and step % _SAVED == 0:
            _save(plan.checkpoint, step, net, optimizer)
    net.eval()
    return net


def _save(file: Path, step: int, net: Net, optimizer: torch.optim.AdamW) -> None:
    part = file.with_suffix(".part")
    kept = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "chance": torch.get_rng_state()}
    torch.save(kept, part)
    part.replace(file)


def _resumed(plan: Plan, net: Net, optimizer: torch.optim.AdamW) -> int:
    """Steps that were done before."""
    if plan.checkpoint is None or not plan.checkpoint.exists():
        return 0
    kept = torch.load(plan.checkpoint, weights_only=True)
    net.load_state_dict(kept["net"])
    optimizer.load_state_dict(kept["optimizer"])
    torch.set_rng_state(kept["chance"])
    log.info("goes on after step %d", kept["step"])
    return int(kept["step"])


def _optimizer(net: Net) -> torch.optim.AdamW:
    upper = [part for part in net.encoder.parameters() if part.requires_grad]
    heads = [part for name, part in net.named_parameters() if not name.startswith("encoder.")]
    groups = [{"params": upper, "top": _ENCODER_RATE}, {"params": heads, "top": _HEAD_RATE}]
    return torch.optim.AdamW(groups, lr=_HEAD_RATE, weight_decay=_DECAY)


def _teller(steps: int) -> Callable[[int, dict[str, float]], None]:
    faded: dict[str, float] = {}
    start = time.monotonic()

    def tell(step: int, parts: dict[str, float]) -> None:
        for name, value in parts.items():
            faded[name] = _FADING * faded.get(name, value) + (1 - _FADING) * value
        if step % _TOLD == 0 or step == steps:
            shown = " ".join(f"{name}={value:.3f}" for name, value in faded.items())
            log.info("step %d of %d, %.0f s: %s", step, steps, time.monotonic() - start, shown)

    return tell
