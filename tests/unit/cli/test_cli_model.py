"""`pointsman model ...` as its users run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from router.cli import main
from router.cli.tables import table
from tests.support.artifacts import build_tiny_artifact, seal
from tests.support.artifacts_foreign import build_gliclass, build_sequence_classifier, build_text_encoder
from tests.support.fake_hub import COMMIT, FakeHub, folder_files

REFERENCE = f"acme/tiny@{COMMIT}"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_SRUN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["model", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


class TestPull:
    @pytest.fixture
    def hub(self, tmp_path: Path) -> FakeHub:
        return FakeHub(folder_files(build_tiny_artifact(tmp_path / "remote", presets=True)))

    def test_it_shows_progress_and_the_commit(
        self, capsys: pytest.CaptureFixture[str], hub: FakeHub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with hub:
            self.point(monkeypatch, hub)
            status, out, err = run(capsys, "pull", "acme/tiny")
            assert status == 0
            assert out.splitlines()[0] == REFERENCE
            assert "100 %" in err
            assert f"main is {COMMIT} today" in err
            assert run(capsys, "pull", REFERENCE)[0] == 0
        status, out, _ = run(capsys, "list")
        assert REFERENCE in out
        assert run(capsys, "check", REFERENCE)[0] == 0

    def test_what_does_not_come_whole_fails(
        self, capsys: pytest.CaptureFixture[str], hub: FakeHub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hub.corrupt.add("model.onnx")
        with hub:
            self.point(monkeypatch, hub)
            status, _, err = run(capsys, "pull", REFERENCE)
        assert status == 1
        assert "model.onnx: does not have the digest that the hub states" in err
        assert REFERENCE not in run(capsys, "list")[1]

    def point(self, monkeypatch: pytest.MonkeyPatch, hub: FakeHub) -> None:
        from router.runtime import hub as module

        original = module.pull
        monkeypatch.setattr(module, "pull", lambda *a, **k: original(*a, **k, endpoint=hub.url))

    def test_wrong_usage(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "pull", "nonsense")[0] == 2


class TestList:
    def test_the_embedded_model(self, capsys: pytest.CaptureFixture[str]) -> None:
        status, out, _ = run(capsys, "list", "--json")
        (found,) = json.loads(out)
        assert status == 0
        assert (found["name"], found["artifact"], found["quality"]) == ("builtin-mini", "builtin", "experimental")

    def test_models_of_a_configuration(self, capsys: pytest.CaptureFixture[str]) -> None:
        example = Path(__file__).resolve().parents[3] / "examples" / "decision-signal" / "hard-code.yaml"
        status, out, _ = run(capsys, "list", "--config", str(example))
        assert status == 0
        assert out.count("builtin") >= 3


class TestShow:
    def test_a_card_for_people_and_for_programs(self, capsys: pytest.CaptureFixture[str]) -> None:
        status, out, err = run(capsys, "show", "builtin")
        assert status == 0
        assert "max input tokens" in out
        assert "request, candidate" in out
        assert err.startswith("warning: experimental")
        facts = json.loads(run(capsys, "show", "builtin", "--json")[1])
        assert facts["max_input_tokens"] == 32768
        assert len(facts["sha256"]) == 64

    def test_a_derived_card_says_what_is_not_known(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        directory = build_sequence_classifier(tmp_path / "guard", {"SAFE": "", "INJECTION": "attack"})
        status, out, err = run(capsys, "show", str(directory))
        assert status == 0
        assert "jailbreak" in out
        assert "no licence is declared" in err
        assert "nothing proves" in err
        card = json.loads(run(capsys, "show", str(directory), "--card")[1])
        assert card["adapter"] == "classifier"

    def test_nothing_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        status, _, err = run(capsys, "show", REFERENCE)
        assert status == 1
        assert f"pointsman model pull {REFERENCE}" in err


class TestCheck:
    def test_a_good_model(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        status, out, err = run(capsys, "check", str(build_tiny_artifact(tmp_path / "a")))
        assert status == 0
        assert "intact, sha256" in out
        assert "batch_independent" in out
        assert "could say numerics: batch_independent" in err

    def test_drift_fails_and_says_which(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        directory = build_tiny_artifact(tmp_path / "a")
        card = json.loads((directory / "decision.json").read_text())
        good, bad = card["golden"][0], json.loads(json.dumps(card["golden"][0]))
        bad["answers"]["q"] = {"choice": "law"}
        card["golden"] = [good, bad, bad]
        (directory / "decision.json").write_text(json.dumps(card))
        seal(directory)
        status, _, err = run(capsys, "check", str(directory))
        assert status == 1
        errors = [line for line in err.splitlines() if line.startswith("error")]
        assert ["golden[1]" in errors[0], "golden[2]" in errors[1], len(errors)] == [True, True, 2]
        report = json.loads(run(capsys, "check", str(directory), "--json")[1])
        assert (report["ok"], len(report["failures"])) == (False, 2)

    def test_a_damaged_file(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        directory = build_tiny_artifact(tmp_path / "a")
        (directory / "tokenizer.json").write_text("{}")
        status, _, err = run(capsys, "check", str(directory))
        assert status == 1
        assert "does not have the digest" in err

    def test_a_wrong_number_of_threads_is_one_line(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("VLLM_SRUN_CPU_THREADS", "many")
        status, _, err = run(capsys, "check", str(build_tiny_artifact(tmp_path / "a")))
        assert (status, err) == (1, "VLLM_SRUN_CPU_THREADS must be a whole number above 0\n")

    def test_a_model_without_golden_questions(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        status, out, err = run(capsys, "check", str(build_gliclass(tmp_path / "a")))
        assert status == 0
        assert "none in the card" in out
        assert "nothing says whether its answers are right" in err
        assert "not listed, sha256" in out
        assert "nothing proves that its files are the published ones" in err
        assert json.loads(run(capsys, "check", str(tmp_path / "a"), "--json")[1])["listed"] is False


def test_serving_fetches_only_when_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("router.cli.runtime.configure_logging", lambda _: None)  # it would outlive this test
    serve = ["runtime", "serve", "--artifact", REFERENCE, "--uds", str(tmp_path / "s"), "--log-level", "error"]
    assert main([*serve, "--pull"]) == 1
    assert "HF_HUB_OFFLINE forbids" in capsys.readouterr().err


def test_bench(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = str(build_tiny_artifact(tmp_path / "a"))
    status, out, _ = run(capsys, "bench", directory, "--seconds", "0.001", "--device", "cpu")
    assert status == 0
    assert "threads" in out
    report = json.loads(run(capsys, "bench", directory, "--seconds", "0.001", "--json")[1])
    assert [line["tokens"] for line in report["lines"]] == [32, 64]
    assert all(line["batch_tokens_s"] > 0 for line in report["lines"])
    assert report["threads"]["threads"] >= 1


def test_a_text_encoder_is_checked_and_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = str(build_text_encoder(tmp_path / "a"))
    assert run(capsys, "check", directory)[0] == 0
    status, out, _ = run(capsys, "bench", directory, "--seconds", "0.001", "--device", "cpu", "--json")
    assert status == 0
    assert [line["tokens"] for line in json.loads(out)["lines"]] == [16]


def test_tables_align() -> None:
    assert table(("A", "BB"), [("xxx", "y")]) == "A    BB\nxxx  y\n"
    assert table(("A", "BB"), [("xxx", "y")], right=True) == "  A  BB\nxxx   y\n"
    assert table((), []) == ""
