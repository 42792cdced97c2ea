from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from router.questions import QuestionType
from router.runtime.artifact import describe, open_artifact
from router.runtime.card_reader import parse_card
from router.runtime.errors import ArtifactError
from tests.support.artifacts import build_tiny_artifact, seal

DOMAINS = (
    *("biology", "business", "chemistry", "computer science", "economics", "engineering", "health", "history", "law"),
    *("math", "other", "philosophy", "physics", "psychology"),
)
Edit = Callable[[dict[str, Any]], Any]


def card() -> dict[str, Any]:
    """A card whose heads have labels of their own, which it maps to those of the presets."""
    data: dict[str, Any] = json.loads(Path("tests/data/mapped_card.json").read_text())
    return data


def test_builtin_answers_free_questions_except_span_and_its_presets() -> None:
    asked = describe("builtin")
    assert asked.question_types == {QuestionType.NOUL, QuestionType.CHOICE, QuestionType.SCORE, QuestionType.SET}
    assert asked.presets["pii"] is QuestionType.SPAN
    assert asked.presets["jailbreak"] is QuestionType.NOUL
    assert asked.preset_parts["relevance"] == ("request", "document")
    assert asked.preset_parts["refusal"] == ("answer",)
    assert asked.preset_parts["jailbreak"] == ("user",)
    assert 0.3 < asked.preset_thresholds["jailbreak"] < 1
    assert (asked.licence, asked.modalities) == ("Apache-2.0", ("text",))
    assert asked.max_input_tokens == 32768


def test_preset_labels_are_those_after_the_label_map() -> None:
    labels = parse_card(card()).capabilities().preset_labels
    assert set(labels["domains"]) == {"computer science", "math", "health", "law", "business", "other"}
    assert labels["complexity"] == ("easy", "medium", "hard")
    assert labels["pii"][:3] == ("PERSON", "STREET_ADDRESS", "DATE_TIME")
    assert {"EMAIL_ADDRESS", "IBAN_CODE", "SECRET"} < set(labels["pii"])
    assert {"URL_USER", "FINANCIAL", "ID"}.isdisjoint(labels["pii"])
    assert "jailbreak" not in labels


def test_the_builtin_gives_every_label_that_the_families_have() -> None:
    labels = describe("builtin").preset_labels
    assert labels["domains"] == DOMAINS
    assert labels["modality"] == ("AR", "DIFFUSION", "BOTH")
    assert labels["turn_relation"] == ("new", "follow_up", "repeat", "correction")
    assert len(labels["hazard"]) == 12


def test_describe_needs_no_inference_engine() -> None:
    code = (
        "import sys; from router.runtime.artifact import describe; describe('builtin'); "
        "sys.exit(any(name in sys.modules for name in ('onnxruntime', 'tokenizers', 'numpy', 'phonenumbers')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("edit", "where", "says"),
    [
        (lambda c: c.pop("adapter"), "adapter", "missing"),
        (lambda c: c.update(adapter="three_tower"), "adapter", "must be one of two_tower"),
        (lambda c: c["presets"]["pii"].update(rules="pii/2"), "presets.pii.rules", "must be one of pii/1"),
        (lambda c: c["presets"]["domains"].update(rules="pii/1"), "presets.domains.rules", "only a span or a noul"),
        (lambda c: c["presets"]["relevance"].update(rules="pii/1"), "presets.relevance.rules", "about one text"),
        (lambda c: c.update(adapter="marker_row"), "marker_row", "missing"),
        (lambda c: c.update(adapter="classifier"), "custom_questions", "has no effect with adapter classifier"),
        (lambda c: c.update(numerics="exact"), "numerics", "must be one of batch_independent"),
        (lambda c: c["calibration"].update(temperature_by_options={"choice:7": 1}), "calibration.temp", "6-10"),
        (lambda c: c["calibration"]["temperature"].update(noul=0), "calibration.temperature.noul", "above 0"),
        (lambda c: c["presets"]["jailbreak"].update(label_map={"false": "no"}), "presets.jailbreak.label_map", "true"),
        (lambda c: c["presets"]["pii"].update(classes=["B-X"]), "presets.pii.classes", "holds no 'O'"),
        (lambda c: c.pop("licence"), "licence", "missing"),
        (lambda c: c.update(format="decision-onnx/2"), "format", "must be one of decision-onnx/1"),
        (lambda c: c.update(licens="x"), "licens", 'did you mean "licence"'),
        (lambda c: c.update(released="yesterday"), "released", "date"),
        (lambda c: c["limits"].update(graph_tokens="512"), "limits.graph_tokens", "whole number"),
        (lambda c: c["limits"].update(graph_token=512), "limits.graph_token", "unknown key"),
        (lambda c: c["limits"].update(validated_input_tokens=99999), "limits.validated_input_tokens", "larger"),
        (lambda c: c["reading"]["window"].update(overlap=126), "reading.window.overlap", "smaller"),
        (lambda c: c["reading"]["window"].update(tokens=511), "reading.window.tokens", "does not fit"),
        (lambda c: c["presets"]["domains"].update(slice=[0, 7]), "presets.domains.slice", "8 options"),
        (lambda c: c["presets"]["domains"].update(unmapped="drop"), "presets.domains.unmapped", "sum to 1"),
        (lambda c: c["presets"]["domains"].update(head="nope"), "presets.domains.head", "no graph has an output"),
        (lambda c: c["presets"]["domains"]["label_map"].update(cod="x"), "presets.domains.label_map.cod", "unknown"),
        (lambda c: c["presets"]["jailbreak"].update(options=["true", "false"]), "presets.jailbreak.options", "false"),
        (lambda c: c["question_types"].append("span"), "question_types", "span"),
        (lambda c: c["question_types"].append("box"), "question_types", "'box'"),
        (lambda c: c["custom_questions"]["choice"].update(temperature=0), "custom_questions.choice", "above 0"),
        (lambda c: c["custom_questions"].update(embedding="nope"), "custom_questions", "no graph has an output"),
        (lambda c: c["calibration"]["temperature"].update(noul="hot"), "calibration.temperature.noul", "finite number"),
        (lambda c: c.update(golden=[]), "golden", "no case"),
        (lambda c: c["golden"][0].pop("state"), "golden[0].state", "missing"),
        (lambda c: c["graphs"].pop("encoder"), "graphs.encoder", "missing"),
    ],
)
def test_a_wrong_card_is_refused_by_file_and_key(edit: Edit, where: str, says: str) -> None:
    data = card()
    edit(data)
    with pytest.raises(ArtifactError) as caught:
        parse_card(data, "decision.json")
    assert caught.value.where.startswith(f"decision.json: {where}")
    assert says in caught.value.message


def test_a_card_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(ArtifactError, match="must be an object, not a list"):
        parse_card([], "decision.json")


def test_a_changed_file_is_refused_by_name(tmp_path: Path) -> None:
    directory = build_tiny_artifact(tmp_path / "a")
    (directory / "tokenizer.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"tokenizer\.json: does not have the digest"):
        open_artifact(str(directory))


def test_a_file_that_no_digest_covers_is_refused(tmp_path: Path) -> None:
    directory = build_tiny_artifact(tmp_path / "a")
    (directory / "model.onnx.data").write_bytes(b"weights")
    with pytest.raises(ArtifactError, match=r"model\.onnx\.data: is not listed"):
        open_artifact(str(directory))


@pytest.mark.parametrize("line", ["nonsense\n", f"{'0' * 64}  ../x\n", f"{'0' * 64}  /etc/passwd\n"])
def test_a_list_of_digests_that_is_not_one_is_refused(tmp_path: Path, line: str) -> None:
    directory = build_tiny_artifact(tmp_path / "a")
    (directory / "SHA256SUMS").write_text(line)
    with pytest.raises(ArtifactError, match="SHA256SUMS: line 1"):
        open_artifact(str(directory))


def test_a_missing_graph_is_named(tmp_path: Path) -> None:
    directory = build_tiny_artifact(tmp_path / "a")
    (directory / "model.onnx").unlink()
    seal(directory)
    with pytest.raises(ArtifactError, match=r"graphs\.encoder\.file: no file 'model\.onnx'"):
        open_artifact(str(directory))


def test_a_duplicate_key_in_the_card_is_refused(tmp_path: Path) -> None:
    directory = build_tiny_artifact(tmp_path / "a")
    text = (directory / "decision.json").read_text()
    (directory / "decision.json").write_text('{"name": "x",' + text.lstrip()[1:])
    with pytest.raises(ArtifactError, match="'name' stands twice"):
        describe(str(directory))


def test_links_are_followed_as_in_a_snapshot_of_a_hub(tmp_path: Path) -> None:
    real = build_tiny_artifact(tmp_path / "real")
    linked = tmp_path / "linked"
    linked.mkdir()
    for file in real.iterdir():
        (linked / file.name).symlink_to(file)
    artifact = open_artifact(str(linked))
    assert artifact.path("model.onnx") == real / "model.onnx"


def test_the_identity_covers_every_file(tmp_path: Path) -> None:
    directory = build_tiny_artifact(tmp_path / "a")
    before = open_artifact(str(directory)).sha256
    (directory / "LICENSE").write_text("changed")
    seal(directory)
    assert open_artifact(str(directory)).sha256 != before


def test_describe_sees_a_changed_card(tmp_path: Path) -> None:
    directory = build_tiny_artifact(tmp_path / "a", types=("noul",))
    assert describe(str(directory)).question_types == {QuestionType.NOUL}
    shutil.rmtree(directory)
    build_tiny_artifact(directory, types=("choice",))
    assert describe(str(directory)).question_types == {QuestionType.CHOICE}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("vllm-sr/vela3-fast", "needs its revision"),
        ("vllm-sr/vela3-fast@main", "'main' is not a commit"),
        ("./missing/dir", "no such directory; name an artifact directory"),
        ("missing", "no such directory"),
    ],
)
def test_what_is_no_artifact_is_refused_clearly(name: str, says: str) -> None:
    with pytest.raises(ArtifactError, match=says):
        describe(name)
