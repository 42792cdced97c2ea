"""Cards that are made from the files of public contracts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from router.questions import QuestionType
from router.runtime.adapters import adapter_for
from router.runtime.artifact import describe, open_artifact, read_card
from router.runtime.engine import Engine
from router.runtime.errors import ArtifactError
from router.runtime.foreign import overlay
from router.runtime.foreign.families import DOMAINS
from router.runtime.foreign.folder import pick_graph
from router.runtime.model import load_model
from tests.support.artifacts_foreign import (
    build_gliclass,
    build_gliner,
    build_marker_row,
    build_sequence_classifier,
    build_text_encoder,
    build_token_classifier,
)

PEOPLE = {"O": ["says"], "B-PERSON": ["alpha"], "I-PERSON": ["beta"], "B-EMAIL_ADDRESS": ["email"]}
BUILDERS: dict[str, Callable[[Path], Path]] = {
    "marker_row": build_marker_row,
    "sequences": lambda path: build_sequence_classifier(path, {"SAFE": "", "INJECTION": "attack"}),
    "tokens": lambda path: build_token_classifier(path, PEOPLE),
    "gliclass": build_gliclass,
    "gliner": build_gliner,
    "gliner_token": lambda path: build_gliner(path, mode="token"),
    "encoder": build_text_encoder,
    "encoder_pooled": lambda path: build_text_encoder(path, pooled=True),
}


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_a_model_of_every_contract_loads_and_warms_up(tmp_path: Path, build: Callable[[Path], Path]) -> None:
    model = load_model(str(build(tmp_path / "a")), "cpu")
    model.close()
    assert len(model.sha256) == 64


def change(path: Path, **values: Any) -> None:
    data = json.loads(path.read_text())
    data |= values
    path.write_text(json.dumps({key: value for key, value in data.items() if value is not ...}))


class TestMarkerRow:
    def test_the_card(self, tmp_path: Path) -> None:
        by_options = {"choice:3-5": 2.0}
        config = {"temperature": [1.5, 2.5, 3.5], "temperature_by_options": by_options}
        card = read_card(build_marker_row(tmp_path, config=config))
        asked = card.capabilities()
        assert asked.question_types == {QuestionType.CHOICE, QuestionType.SCORE, QuestionType.NOUL}
        assert (asked.max_input_tokens, asked.validated_input_tokens) == (32768, 32)
        assert card.scale(QuestionType.CHOICE, 2) == 1.5
        assert card.scale(QuestionType.CHOICE, 4) == 2.0
        assert card.scale(QuestionType.NOUL, 2) == 3.5
        assert "[MASK]" in card.tokens.forbidden

    @pytest.mark.parametrize(
        ("values", "where", "says"),
        [
            ({"max_len": ...}, "max_len", "missing"),
            ({"max_len": "long"}, "max_len", "whole number"),
            ({"head_max_len": 60}, "head_max_len", "no room"),
            ({"temperature": [1.0]}, "temperature", "3 for choice, score, noul"),
            ({"temperature_by_options": {"choice:9": 1.0}}, "temperature_by_options", "6-10"),
        ],
    )
    def test_a_wrong_configuration(self, tmp_path: Path, values: dict[str, Any], where: str, says: str) -> None:
        directory = build_marker_row(tmp_path)
        change(directory / "rl_agent_config.json", **values)
        with pytest.raises(ArtifactError, match=says) as caught:
            read_card(directory)
        assert where in caught.value.where

    def test_a_tokenizer_without_a_marker(self, tmp_path: Path) -> None:
        directory = build_marker_row(tmp_path)
        text = (directory / "tokenizer.json").read_text().replace("[MASK]", "[MUSK]")
        (directory / "tokenizer.json").write_text(text)
        change(directory / "tokenizer_config.json", mask_token=...)
        with pytest.raises(ArtifactError, match="has no mask token"):
            read_card(directory)

    def test_a_graph_without_its_inputs(self, tmp_path: Path) -> None:
        directory = build_marker_row(tmp_path / "a")
        other = build_gliclass(tmp_path / "b")
        (directory / "model.onnx").write_bytes((other / "model.onnx").read_bytes())
        with pytest.raises(ArtifactError, match=r"model\.onnx: has no input 'marker_pos'"):
            load_model(str(directory), "cpu")


class TestClassifiers:
    def test_labels_of_a_family_are_offered_under_its_name(self, tmp_path: Path) -> None:
        labels = {label.replace(" ", "_"): "" for label in DOMAINS}
        asked = read_card(build_sequence_classifier(tmp_path, labels)).capabilities()
        assert asked.presets == {"classify": QuestionType.CHOICE, "domains": QuestionType.CHOICE}
        assert set(asked.preset_labels["domains"]) == set(DOMAINS)
        assert not asked.question_types

    @pytest.mark.parametrize(
        ("labels", "preset"),
        [
            (("SAFE", "INJECTION"), "jailbreak"),
            (("benign", "jailbreak"), "jailbreak"),
            (("BENIGN", "INJECTION", "JAILBREAK"), "jailbreak"),
            (("safe", "unsafe"), "safety"),
            (("NO_FACT_CHECK_NEEDED", "FACT_CHECK_NEEDED"), "fact_check"),
            (("AR", "DIFFUSION", "BOTH"), "modality"),
            (("SAT", "NEED_CLARIFICATION", "WRONG_ANSWER", "WANT_DIFFERENT"), "user_feedback"),
            (("LABEL_0", "LABEL_1"), None),
            (("jailbreak", "malicious"), None),
        ],
    )
    def test_known_and_unknown_labels(self, tmp_path: Path, labels: tuple[str, ...], preset: str | None) -> None:
        asked = read_card(build_sequence_classifier(tmp_path, dict.fromkeys(labels, ""))).capabilities()
        assert set(asked.presets) == {"classify"} | ({preset} if preset else set())

    def test_prefixes_of_tags_are_no_part_of_a_label(self, tmp_path: Path) -> None:
        asked = read_card(build_token_classifier(tmp_path, PEOPLE)).capabilities()
        assert asked.presets == {"entities": QuestionType.SPAN, "pii": QuestionType.SPAN}
        assert asked.preset_labels["pii"] == ("PERSON", "EMAIL_ADDRESS")

    @pytest.mark.parametrize(
        ("values", "says"),
        [
            ({"id2label": {"0": "a", "2": "b"}}, "without a gap"),
            ({"id2label": {"0": "a", "1": "a"}}, "names a label twice"),
            ({"id2label": ["a", "b"]}, "name a label for every number"),
            ({"id2label": {"0": "B-X", "1": "I-X"}, "architectures": ["XForTokenClassification"]}, 'holds no "O"'),
        ],
    )
    def test_wrong_labels(self, tmp_path: Path, values: dict[str, Any], says: str) -> None:
        directory = build_sequence_classifier(tmp_path, {"a": "", "b": ""})
        change(directory / "config.json", **values)
        with pytest.raises(ArtifactError, match=says) as caught:
            read_card(directory)
        assert "config.json: id2label" in caught.value.where

    def test_a_graph_of_other_labels(self, tmp_path: Path) -> None:
        directory = build_sequence_classifier(tmp_path, {"a": "", "b": ""})
        change(directory / "config.json", id2label={"0": "a", "1": "b", "2": "c"})
        with pytest.raises(ArtifactError, match="output 'logits' has shape"):
            load_model(str(directory), "cpu")


class TestOverlay:
    """A partial decision.json corrects what the files say."""

    def test_keys_are_laid_over(self, tmp_path: Path) -> None:
        directory = build_sequence_classifier(tmp_path / "a", {"nope": "", "yep": "attack"})
        before = open_artifact(str(directory)).sha256
        preset = {
            "type": "noul",
            "head": "logits",
            "slice": [0, 2],
            "options": ["nope", "yep"],
            "label_map": {"nope": "false", "yep": "true"},
        }
        card = {
            "name": "guard",
            "licence": "MIT",
            "presets": {"jailbreak": preset},
            "calibration": {"thresholds": {"jailbreak": 0.7}},
            "golden": [
                {
                    "state": "attack",
                    "questions": {"q": {"type": "noul", "preset": "jailbreak"}},
                    "answers": {"q": {"noul": 0.9975}},
                }
            ],
        }
        (directory / "decision.json").write_text(json.dumps(card))
        asked = describe(str(directory))
        assert asked.preset_thresholds == {"jailbreak": 0.7}
        assert asked.licence == "MIT"
        assert "classify" in asked.presets
        assert open_artifact(str(directory)).sha256 != before
        load_model(str(directory), "cpu").close()
        card["golden"][0]["answers"]["q"]["noul"] = 0.5  # type: ignore[index]
        (directory / "decision.json").write_text(json.dumps(card))
        with pytest.raises(ArtifactError, match=r"golden\[0\]\.answers\.q\.noul: golden answer differs"):
            load_model(str(directory), "cpu")

    def test_an_unknown_key_is_still_an_error(self, tmp_path: Path) -> None:
        directory = build_gliclass(tmp_path)
        (directory / "decision.json").write_text('{"licens": "MIT"}')
        with pytest.raises(ArtifactError, match='did you mean "licence"'):
            describe(str(directory))

    def test_objects_merge_and_presets_replace(self) -> None:
        base = {"a": {"x": 1, "y": 2}, "presets": {"p": {"head": "h", "type": "noul"}}}
        written = {"a": {"y": 3}, "presets": {"p": {"head": "g"}, "q": {}}}
        expected = {"a": {"x": 1, "y": 3}, "presets": {"p": {"head": "g"}, "q": {}}}
        assert overlay(base, written) == expected


class TestFiles:
    def test_nothing_known(self, tmp_path: Path) -> None:
        (tmp_path / "model.onnx").write_bytes(b"")
        with pytest.raises(ArtifactError, match=r"none of decision\.json, rl_agent_config\.json"):
            describe(str(tmp_path))

    @pytest.mark.parametrize(
        ("file", "content", "says"),
        [
            ("config.json", {"model_type": "vela2-unified", "architectures": ["Vela2UnifiedModel"]}, "Vela 2 model"),
            ("config.json", {"model_type": "vela3", "id2label": {"0": "A", "1": "B"}}, "Vela 3 model"),
            (
                "config.json",
                {"architectures": ["Qwen3ForCausalLM"], "id2label": {"0": "A"}},
                "decoder.*Qwen3ForCausalLM",
            ),
            ("config.json", {"decision_format": "vllm-sr-decision"}, "format 'vllm-sr-decision'"),
            ("decision_config.json", {}, "Decision package"),
            ("decima.json", {}, "Decima"),
            ("gliner2_config.json", {}, "GLiNER2"),
        ],
    )
    def test_a_known_contract_without_an_adapter_is_named(
        self, tmp_path: Path, file: str, content: dict[str, Any], says: str
    ) -> None:
        (tmp_path / file).write_text(json.dumps(content))
        with pytest.raises(ArtifactError, match=f"{says}.*no adapter here.*provider: systemone"):
            describe(str(tmp_path))

    def test_a_decoder_that_became_an_encoder_is_one(self, tmp_path: Path) -> None:
        directory = build_text_encoder(tmp_path, pooled=True, config={"architectures": ["Qwen3ForCausalLM"]})
        (directory / "1_Pooling").mkdir()
        (directory / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
        assert read_card(directory).adapter == "encoder"

    def test_an_unknown_contract_is_called_as_its_files_call_it(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text('{"model_type": "ultrabert", "architectures": ["UltraBertForDecision"]}')
        with pytest.raises(
            ArtifactError, match=r"no adapter for what config\.json calls ultrabert, UltraBertForDecision"
        ):
            describe(str(tmp_path))

    def test_which_graph(self) -> None:
        assert pick_graph(["onnx/model.onnx", "onnx/model_quantized.onnx"]) == "onnx/model.onnx"
        assert pick_graph(["x/only.onnx", "config.json"]) == "x/only.onnx"
        assert pick_graph(["a_int8.onnx", "a_q4.onnx"]) is None

    def test_a_choice_of_graphs_must_be_made(self, tmp_path: Path) -> None:
        directory = build_gliclass(tmp_path)
        (directory / "model.onnx").rename(directory / "a.onnx")
        (directory / "b.onnx").write_bytes(b"")
        with pytest.raises(ArtifactError, match=r"holds a\.onnx, b\.onnx: say which"):
            describe(str(directory))
        (directory / "decision.json").write_text('{"graphs": {"encoder": {"file": "a.onnx"}}}')
        artifact = open_artifact(str(directory))
        adapter_for(artifact, Engine(artifact, "cpu"))

    def test_a_snapshot_of_a_hub_is_named_by_its_repository(self, tmp_path: Path) -> None:
        commit = "0123456789" * 4
        directory = build_gliclass(tmp_path / "models--acme--fast-set" / "snapshots" / commit)
        (directory / "README.md").write_text("---\nlicense: apache-2.0\ntags: [x]\n---\n# A model")
        card = read_card(directory)
        assert (card.name, card.version, card.licence) == ("fast-set", commit, "apache-2.0")

    def test_positions_of_roberta_start_after_the_padding(self, tmp_path: Path) -> None:
        config = {"max_position_embeddings": 514, "model_type": "xlm-roberta"}
        directory = build_sequence_classifier(tmp_path, {"a": "", "b": ""}, config=config)
        assert read_card(directory).limits.graph_tokens == 512
