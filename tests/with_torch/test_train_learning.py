"""What needs PyTorch, which only `make model-test` installs: so it stands here and not with the other tests."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from router.runtime.artifact import builtin_directory
from train import training
from train.collecting import Data, Text
from train.drawing import Drawer
from train.encoder import Encoder, pooled
from train.examples import Example
from train.export import export
from train.layout import HEADS, WIDTH, head_slice
from train.learning import FROZEN, Lesson
from train.net import Net
from train.quantise import quantise
from train.rows import open_tokenizer
from train.training import Plan, train

TOKENIZER = open_tokenizer(Path(builtin_directory()) / "tokenizer.json")


def encoder(seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    return Encoder()


def data() -> Data:
    rows = [Text(f"sort list {n}", "own", {"domains": "computer science", "jailbreak": "false"}) for n in range(20)]
    spans = [Text(f"Ann Lee {n}", "own", {"pii_present": "true"}, ((0, 7, "PERSON"),)) for n in range(9)]
    harm = [Text(f"a knife {n}", "own", {"hazard": "violence", "safety": "true"}) for n in range(9)]
    pairs = [Example("b", "relevance", "true", "own", previous="a")]
    return Data({"domains": rows, "jailbreak": rows, "pii": spans, "hazard": harm}, {"relevance": pairs})


def test_padding_changes_nothing() -> None:
    net = Net(encoder()).eval()
    ids = torch.tensor([[101, 2054, 2003, 102]])
    wide = torch.nn.functional.pad(ids, (0, 5))
    with torch.no_grad():
        short = net(ids, torch.ones_like(ids))
        long = net(wide, (wide != 0).long())
    assert torch.allclose(short.pooled, long.pooled, atol=1e-5)
    assert torch.allclose(short.heads, long.heads, atol=1e-4)
    assert short.heads.shape == (1, len(HEADS) * WIDTH)
    assert short.pooled.norm() == pytest.approx(1, abs=1e-5)


def test_both_ways_of_attention_agree() -> None:
    one = encoder()
    ids = torch.randint(1000, 2000, (2, 9))
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    with torch.no_grad():
        exact = pooled(one.eval()(ids, mask), mask)
        quick = pooled(one.train()(ids, mask), mask)
    assert torch.allclose(exact, quick, atol=1e-5)


def test_a_step_has_a_loss_for_all_that_it_holds() -> None:
    lesson = Lesson(Net(encoder()), encoder(), TOKENIZER, lambda vectors: torch.full((len(vectors),), 0.5))
    drawer = Drawer(data(), 1)
    parts = [lesson.losses(drawer.draw()).parts for _ in range(3)]
    names = {name for part in parts for name in part}
    assert {"domains", "jailbreak", "safety", "hazard", "pii", "pii_present", "relevance", "near", "taught"} <= names
    assert "complexity" not in names
    assert all(torch.isfinite(value) for part in parts for value in part.values())


def test_training_learns_leaves_the_lower_layers_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_SAVED", 2)
    before = {name: weight.clone() for name, weight in encoder().state_dict().items()}
    kept = tmp_path / "kept.pt"
    whole = train(encoder(), encoder(), TOKENIZER, data(), Plan(4, 5, 1, kept))
    again = tmp_path / "again.pt"
    with monkeypatch.context() as stopped:
        stopped.setattr(Lesson, "losses", _until(3))
        with pytest.raises(KeyboardInterrupt):
            train(encoder(), encoder(), TOKENIZER, data(), Plan(4, 5, 1, again))
    resumed = train(encoder(), encoder(), TOKENIZER, data(), Plan(4, 5, 1, again))
    for name, weight in whole.state_dict().items():
        assert torch.allclose(weight, resumed.state_dict()[name], atol=1e-6), name
    after = whole.encoder.state_dict()
    assert torch.equal(after["layers.0.query.weight"], before["layers.0.query.weight"])
    assert not torch.equal(after[f"layers.{FROZEN}.query.weight"], before[f"layers.{FROZEN}.query.weight"])


def _until(step: int) -> object:
    """The loss as it is, until the step at which somebody ends the run."""
    real = Lesson.losses
    seen = []

    def losses(self: Lesson, draw: object) -> object:
        seen.append(draw)
        if len(seen) == step:
            raise KeyboardInterrupt
        return real(self, draw)  # type: ignore[arg-type]

    return losses


def test_pairs_answer_the_same_as_a_graph(tmp_path: Path) -> None:
    torch.manual_seed(1)
    net = Net(encoder()).eval()
    u, v = (torch.nn.functional.normalize(torch.randn(5, 384), dim=-1) for _ in range(2))
    _, file = export(net, tmp_path)
    quantise(file, tmp_path / "q.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "q.onnx"))
    (told,) = session.run(None, {"u": u[:2].numpy(), "v": v[:2].numpy()})
    assert np.abs(told - net.pair(u[:2], v[:2]).detach().numpy()).max() < 0.05


def test_heads_have_places_of_their_own() -> None:
    places = [head_slice(task) for task in HEADS]
    assert all(last <= after for (_, last), (after, _) in pairwise(places))
