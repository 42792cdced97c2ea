"""Pulling models from a hub: whole or not at all (also after a kill, a cut connection, a damaged file)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from router.runtime.artifact import describe, locate, open_artifact
from router.runtime.card import Encoder
from router.runtime.errors import ArtifactError
from router.runtime.hub import (
    Progress,
    Reference,
    cache_directory,
    directory_of,
    parse_reference,
    pull,
    pulled,
)
from router.runtime.model import load_model
from tests.support.artifacts import build_tiny_artifact
from tests.support.artifacts_foreign import build_sequence_classifier, build_text_encoder
from tests.support.fake_hub import COMMIT, FakeHub, folder_files

EXACT = Reference("acme", "tiny", COMMIT)
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VLLM_SRUN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return folder_files(build_tiny_artifact(tmp_path_factory.mktemp("remote") / "a", presets=True))


@pytest.fixture
def hub(files: dict[str, bytes]) -> Iterator[FakeHub]:
    with FakeHub(dict(files)) as fake:
        yield fake


def test_references() -> None:
    assert parse_reference(f"acme/tiny@{COMMIT}") == EXACT
    assert parse_reference("acme/tiny") == Reference("acme", "tiny", None)
    assert str(EXACT) == f"acme/tiny@{COMMIT}"
    assert not Reference("a", "b", "main").exact
    for text in ("builtin", "./a/b", "/a/b", "a/b/c", "~/a", "a/../b"):
        assert parse_reference(text) is None


def test_where_the_cache_is() -> None:
    assert cache_directory({"VLLM_SRUN_CACHE_DIR": "/c"}) == Path("/c")
    assert cache_directory({"XDG_CACHE_HOME": "/x"}) == Path("/x/pointsman")
    assert cache_directory({"HOME": "/h"}) == Path("~/.cache/pointsman").expanduser()


def test_a_pulled_model_is_served_by_its_commit(hub: FakeHub) -> None:
    seen: list[Progress] = []
    reference, directory = pull(EXACT, progress=seen.append, endpoint=hub.url)
    assert (reference, directory) == (EXACT, directory_of(EXACT))
    assert locate(str(EXACT)) == directory
    assert "jailbreak" in describe(str(EXACT)).presets
    assert describe(str(EXACT)).sha256 == open_artifact(str(EXACT)).sha256
    load_model(str(EXACT), "cpu").close()
    assert seen[-1].done == seen[-1].total == sum(len(data) for data in hub.files.values())
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    assert [found for found, _ in pulled()] == [EXACT]


def test_a_second_pull_asks_nobody(hub: FakeHub) -> None:
    pull(EXACT, endpoint=hub.url)
    pull(EXACT, endpoint="http://127.0.0.1:9")


def test_a_branch_is_resolved_to_its_commit(hub: FakeHub) -> None:
    reference, _ = pull(Reference("acme", "tiny", "main"), endpoint=hub.url)
    assert reference == EXACT


def test_what_is_not_pulled_says_how() -> None:
    with pytest.raises(ArtifactError, match=f"is not pulled: pointsman model pull acme/tiny@{COMMIT}"):
        locate(str(EXACT))


def test_offline(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ArtifactError, match="HF_HUB_OFFLINE forbids"):
        pull(EXACT, endpoint=hub.url)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    pull(EXACT, endpoint=hub.url)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pull(EXACT, endpoint=hub.url)


def test_what_the_hub_does_not_have(hub: FakeHub) -> None:
    for missing in (Reference("acme", "other", COMMIT), Reference("acme", "tiny", "f" * 40)):
        with pytest.raises(ArtifactError, match="the hub does not give it"):
            pull(missing, endpoint=hub.url)


def test_a_hub_that_cannot_be_reached() -> None:
    with pytest.raises(ArtifactError, match="the hub does not give it"):
        pull(EXACT, endpoint="http://127.0.0.1:9")


@pytest.mark.parametrize("name", ["model.onnx", "decision.json"])
def test_a_damaged_file_is_never_taken(hub: FakeHub, name: str) -> None:
    hub.corrupt.add(name)
    with pytest.raises(ArtifactError, match=f"{name}: does not have the digest"):
        pull(EXACT, endpoint=hub.url)
    with pytest.raises(ArtifactError, match="is pulled in part only"):
        locate(str(EXACT))
    hub.corrupt.clear()
    pull(EXACT, endpoint=hub.url)
    open_artifact(str(EXACT))


def test_a_part_that_was_damaged_on_disk_is_fetched_again(hub: FakeHub) -> None:
    partial = directory_of(EXACT).with_name(f"{COMMIT}.partial")
    partial.mkdir(parents=True)
    (partial / "model.onnx").write_bytes(b"nonsense")
    (partial / "tokenizer.json").write_bytes(b"x" * (len(hub.files["tokenizer.json"]) + 5))
    _, directory = pull(EXACT, endpoint=hub.url)
    assert (directory / "model.onnx").read_bytes() == hub.files["model.onnx"]
    assert [start for name, start in hub.fetched if name == "model.onnx"] == [8, 0]


def test_a_server_without_ranges(hub: FakeHub) -> None:
    partial = directory_of(EXACT).with_name(f"{COMMIT}.partial")
    partial.mkdir(parents=True)
    (partial / "model.onnx").write_bytes(hub.files["model.onnx"][:500])
    hub.ignores_ranges = True
    _, directory = pull(EXACT, endpoint=hub.url)
    assert (directory / "model.onnx").read_bytes() == hub.files["model.onnx"]


def test_a_killed_pull_goes_on_where_it_was(hub: FakeHub, cache: Path) -> None:
    hub.hang_after["model.onnx"] = 5000
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "VLLM_SRUN_CACHE_DIR": str(cache)}
    small = "import sys; from huggingface_hub import constants; constants.DOWNLOAD_CHUNK_SIZE = 1024; "
    code = small + "from router.runtime.hub import parse_reference, pull; pull(parse_reference(sys.argv[1]))"
    child = subprocess.Popen([sys.executable, "-c", code, str(EXACT)], cwd=ROOT, env=environment)
    try:
        assert hub.hanging.wait(20)
        partial = directory_of(EXACT).with_name(f"{COMMIT}.partial") / "model.onnx"
        for _ in range(200):
            if partial.is_file() and partial.stat().st_size >= 4096:
                break
            hub.released.wait(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    kept = partial.stat().st_size
    assert kept >= 4096
    with pytest.raises(ArtifactError, match="is pulled in part only"):
        locate(str(EXACT))
    pull(EXACT, endpoint=hub.url)
    assert [start for name, start in hub.fetched if name == "model.onnx"] == [0, kept]
    open_artifact(str(EXACT))


def test_how_an_encoder_pools_is_fetched_with_it(tmp_path: Path) -> None:
    files = folder_files(build_text_encoder(tmp_path / "a"))
    pooling = json.dumps({"pooling_mode_cls_token": True}).encode()
    files |= {"1_Pooling/config.json": pooling, "modules.json": b"[]", "2_Other/config.json": b"{}"}
    with FakeHub(files) as hub:
        _, directory = pull(EXACT, endpoint=hub.url)
    assert (directory / "1_Pooling" / "config.json").read_bytes() == pooling
    assert not (directory / "2_Other").exists()
    assert describe(str(EXACT)).similarity
    assert open_artifact(str(EXACT)).card.settings == Encoder("cls")


def test_only_what_is_read_is_fetched(tmp_path: Path) -> None:
    files = folder_files(build_sequence_classifier(tmp_path / "a", {"SAFE": "", "INJECTION": "attack"}))
    extra = ("pytorch_model.bin", "model.safetensors", "modeling.py", "onnx/model_quantized.onnx", "eval/results.json")
    files |= dict.fromkeys(extra, b"not needed") | {"onnx/model.onnx_data": b"weights", "README.md": b"# x"}
    with FakeHub(files) as hub:
        _, directory = pull(EXACT, endpoint=hub.url)
    kept = set(folder_files(directory)) - {".pointsman.json"}
    assert kept == {
        "README.md",
        "config.json",
        "onnx/model.onnx",
        "onnx/model.onnx_data",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert describe(str(EXACT)).presets["jailbreak"] == "noul"


def test_of_a_model_with_a_card_everything_is_fetched_but_programs(hub: FakeHub) -> None:
    hub.files |= {"pair.onnx": b"another graph", "setup.py": b"never", "weights.bin": b"never"}
    _, directory = pull(EXACT, endpoint=hub.url)
    kept = set(folder_files(directory))
    assert "pair.onnx" in kept
    assert not kept & {"setup.py", "weights.bin"}


@pytest.mark.parametrize("name", ["../evil.json", "/etc/evil.json", "a/../../evil.json"])
def test_a_listing_that_leaves_the_folder(hub: FakeHub, name: str) -> None:
    hub.files[name] = b"{}"
    with pytest.raises(ArtifactError, match="outside of the model"):
        pull(EXACT, endpoint=hub.url)


def test_a_model_without_a_graph(hub: FakeHub) -> None:
    hub.files = {"config.json": b"{}", "model.safetensors": b"x"}
    with pytest.raises(ArtifactError, match="holds no ONNX graph"):
        pull(EXACT, endpoint=hub.url)


def test_a_pulled_file_that_changed_is_refused(hub: FakeHub) -> None:
    _, directory = pull(EXACT, endpoint=hub.url)
    (directory / "tokenizer.json").write_text("{}")
    with pytest.raises(ArtifactError, match="does not have the digest"):
        open_artifact(str(EXACT))
    (directory / ".pointsman.json").write_text(json.dumps({"files": []}))
    with pytest.raises(ArtifactError, match="is damaged; pull the model again"):
        open_artifact(str(EXACT))
