from __future__ import annotations

from pathlib import Path

import pytest

from router.config.problems import ConfigError
from router.questions import Capabilities
from router.serving.source import LastGood, Source, read_source
from tests.support.plans import EVERYTHING, PLAIN

KEYED = PLAIN.replace("qwen3-coder", '"${CODER}"')


def read(path: Path, text: bytes | None = None, **environ: str) -> Source:
    return read_source(path, environ=environ, describe=lambda artifact: EVERYTHING, serving=True, text=text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "pointsman.yaml"
    made.write_text(PLAIN)
    return made


class TestRead:
    def test_the_text_is_the_one_that_was_read(self, path: Path) -> None:
        source = read(path)
        assert source.text == PLAIN.encode()
        assert source.plan.revision == read(path, PLAIN.encode()).plan.revision

    def test_a_file_that_cannot_be_read_is_a_problem_with_a_place(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"nothing\.yaml:1:1: cannot be read: No such file"):
            read(tmp_path / "nothing.yaml")

    def test_bytes_that_are_no_text(self, path: Path) -> None:
        with pytest.raises(ConfigError, match=r"pointsman\.yaml:2:4: the file is not UTF-8"):
            read(path, b"version: v0.5\na: \xff")

    def test_relative_artifacts_start_at_the_file_whatever_text_is_read(self, path: Path) -> None:
        deployments = "global: {model_catalog: {deployments: {m: {provider: model_runtime, artifact: ./model}}}}\n"
        text = PLAIN.replace("{name: is_code, ", "{name: is_code, deployment: m, ") + deployments
        asked: list[str] = []

        def describe(artifact: str) -> Capabilities:
            asked.append(artifact)
            return EVERYTHING

        read_source(path, environ={}, describe=describe, serving=True, text=text.encode())
        assert asked == [str(path.parent / "model")]


class TestLastGood:
    def load(self, kept: LastGood, path: Path, **environ: str) -> Source | None:
        return kept.load(path, environ=environ, describe=lambda artifact: EVERYTHING)

    def test_what_served_is_served_again(self, path: Path, tmp_path: Path) -> None:
        kept = LastGood(tmp_path)
        assert not kept.exists
        assert self.load(kept, path) is None
        kept.save(read(path))
        path.write_text("broken: [")
        found = self.load(kept, path)
        assert found is not None
        assert found.text == PLAIN.encode()

    def test_the_environment_is_never_written_down(self, path: Path, tmp_path: Path) -> None:
        kept = LastGood(tmp_path)
        kept.save(read(path, KEYED.encode(), CODER="sk-secret"))
        assert all(b"sk-secret" not in file.read_bytes() for file in tmp_path.iterdir())
        found = self.load(kept, path, CODER="sk-secret")
        assert found is not None
        assert found.plan.models["coder"].provider_model_id == "sk-secret"

    def test_only_this_user_can_read_it(self, path: Path, tmp_path: Path) -> None:
        LastGood(tmp_path).save(read(path))
        assert (tmp_path / "last-good.yaml").stat().st_mode & 0o077 == 0

    def test_what_is_of_no_use_any_more_is_passed_over(self, path: Path, tmp_path: Path) -> None:
        kept = LastGood(tmp_path)
        kept.save(read(path, KEYED.encode(), CODER="x"))
        assert self.load(kept, path) is None

    def test_it_can_be_forgotten(self, path: Path, tmp_path: Path) -> None:
        kept = LastGood(tmp_path)
        kept.save(read(path))
        kept.forget()
        kept.forget()
        assert not kept.exists
