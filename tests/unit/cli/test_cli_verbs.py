"""The verbs as a shell sees them: exit status, what is on which stream, and never a traceback."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from router.cli import main
from router.gateway.envoy.run import validate
from tests.support.artifacts import build_tiny_artifact
from tests.support.plans import PLAIN
from tests.support.stack import ROOT, free_ports

OLD = """\
version: v0.3
providers:
  models: [{name: a, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}]
routing:
  # kept
  decisions:
    - {name: all, rules: {}, modelRefs: [{model: a}]}
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.yaml"
    path.write_text(PLAIN)
    return path


def pointsman(*argv: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "router.cli", *argv],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=ROOT,
    )


class TestValidate:
    def test_a_good_file(self, good: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["validate", str(good)]) == 0
        out, err = capsys.readouterr()
        assert out.startswith(f"{good}: valid. 3 recipe(s), 3 model(s)")
        assert err == ""

    def test_every_mistake_with_its_place(self, good: Path, capsys: pytest.CaptureFixture[str]) -> None:
        good.write_text(
            PLAIN.replace("name: claude,", "nane: claude,").replace("[{model: general}]", "[{model: genral}]")
        )
        assert main(["validate", str(good)]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        *problems, summary = err.splitlines()
        assert len(problems) == 2
        assert all(line.startswith(f"{good}:") for line in problems)
        assert summary == f"{good}: 2 error(s)"

    def test_a_variable_that_is_not_set_is_a_warning_here(self, good: Path, capsys: pytest.CaptureFixture[str]) -> None:
        good.write_text(PLAIN.replace("qwen3-coder", '"${POINTSMAN_TEST_UNSET}"'))
        assert main(["validate", str(good)]) == 0
        assert "warning" in capsys.readouterr().err

    def test_a_file_that_is_not_there(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["validate", str(tmp_path / "none.yaml")]) == 1
        assert "none.yaml:1:1: cannot be read: No such file or directory" in capsys.readouterr().err

    def test_a_folder(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["validate", str(tmp_path)]) == 1
        assert "cannot be read: Is a directory" in capsys.readouterr().err


class TestConfig:
    def test_schema(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["config", "schema"]) == 0
        assert json.loads(capsys.readouterr().out)["$schema"].startswith("https://json-schema.org/")

    def test_migrate_shows_and_changes_nothing(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "old.yaml"
        path.write_text(OLD)
        assert main(["config", "migrate", str(path)]) == 0
        assert capsys.readouterr().out.startswith("---")
        assert [file.read_text() for file in tmp_path.iterdir()] == [OLD]

    def test_migrate_write_keeps_the_old_file_and_its_mode(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "old.yaml"
        path.write_text(OLD)
        path.chmod(0o640)
        assert main(["config", "migrate", str(path), "--write"]) == 0
        assert (tmp_path / "old.yaml.bak").read_text() == OLD
        assert "# kept" in path.read_text()
        assert path.stat().st_mode & 0o777 == 0o640
        assert sorted(file.name for file in tmp_path.iterdir()) == ["old.yaml", "old.yaml.bak"]
        assert main(["config", "migrate", str(path), "--write"]) == 0
        assert "nothing to migrate" in capsys.readouterr().err
        assert (tmp_path / "old.yaml.bak").read_text() == OLD, "a second run leaves the first one's copy alone"

    def test_migrate_what_is_no_file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["config", "migrate", str(tmp_path / "none")]) == 1
        (tmp_path / "bytes").write_bytes(b"\xff")
        assert main(["config", "migrate", str(tmp_path / "bytes")]) == 1
        err = capsys.readouterr().err
        assert "cannot be read: No such file or directory" in err
        assert "it is not UTF-8 text" in err


class TestEnvoyRender:
    @pytest.mark.parametrize("xds", [False, True])
    def test_envoy_accepts_it(self, good: Path, tmp_path: Path, xds: bool) -> None:
        output, folder = tmp_path / "envoy.yaml", tmp_path / "xds"
        more = ["--xds-dir", str(folder)] if xds else []
        two = ["--extproc", "127.0.0.1:50051", "--extproc", "127.0.0.1:50052"]
        assert main(["envoy", "render", "--config", str(good), "--output", str(output), *two, *more]) == 0
        assert validate(output) is None
        assert folder.exists() is xds

    def test_without_an_output_it_is_printed(self, good: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["envoy", "render", "--config", str(good)]) == 0
        assert "static_resources" in capsys.readouterr().out

    @pytest.mark.parametrize(
        "argv",
        [["--admin", "0.0.0.0:9901"], ["--admin", "nonsense"], ["--extproc", "nonsense"], ["--output", "/nowhere/e"]],
    )
    def test_a_wrong_argument_is_one_line(
        self, good: Path, argv: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["envoy", "render", "--config", str(good), *argv]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1


class TestRuntimeServe:
    def test_an_artifact_that_is_not_there(self) -> None:
        done = pointsman("runtime", "serve", "--artifact", "/nowhere/model", "--port", str(free_ports(1)[0]))
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("/nowhere/model: no such directory")
        assert "Traceback" not in done.stderr

    def test_an_artifact_that_was_tampered_with(self, tmp_path: Path) -> None:
        artifact = build_tiny_artifact(tmp_path / "tiny")
        (artifact / "model.onnx").write_bytes(b"other")
        done = pointsman("runtime", "serve", "--artifact", str(artifact), "--uds", str(tmp_path / "s"))
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith(str(artifact / "model.onnx"))
        assert "Traceback" not in done.stderr

    def test_a_port_that_is_taken(self, tmp_path: Path) -> None:
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            done = pointsman("runtime", "serve", "--artifact", "builtin", "--port", str(port))
        assert done.returncode == 1
        assert f"cannot listen on http://127.0.0.1:{port}" in done.stderr
        assert "Traceback" not in done.stderr


class TestServe:
    def write(self, path: Path, **ports: int) -> None:
        services = ", ".join(f"{name}: {{port: {port}}}" for name, port in ports.items())
        text = PLAIN.replace("  - {model_names: [auto], recipe: ask, default: true}\n", "")
        text = text.replace("  - {model_names: [strict], recipe: strict}\n", "")
        path.write_text(f"{text}global: {{services: {{{services}}}}}\n")

    @pytest.mark.parametrize("taken", ["extproc", "metrics", "management"])
    def test_a_port_that_is_taken(self, tmp_path: Path, taken: str) -> None:
        path = tmp_path / "config.yaml"
        ports = dict(zip(("extproc", "metrics", "management"), free_ports(3), strict=True))
        self.write(path, **ports)
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", ports[taken]))
            holder.listen()
            done = pointsman("serve", "--config", str(path))
        assert done.returncode == 1
        assert "cannot listen" in done.stderr.splitlines()[-1]
        assert f"127.0.0.1:{ports[taken]}" in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr

    def test_an_invalid_file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "config.yaml"
        path.write_text(PLAIN.replace("qwen3-coder", '"${POINTSMAN_TEST_UNSET}"'))
        for mode in ([], ["--envoy"]):
            done = pointsman("serve", "--config", str(path), *mode)
            assert done.returncode == 1
            assert "POINTSMAN_TEST_UNSET" in done.stderr
            assert done.stderr.endswith("1 error(s)\n")

    def test_a_key_that_is_not_there(self, tmp_path: Path) -> None:
        path = tmp_path / "config.yaml"
        path.write_text(PLAIN.replace('9101/v1"}', '9101/v1", auth: {api_key_env: POINTSMAN_NO_KEY}}', 1))
        done = pointsman("serve", "--config", str(path), "--envoy")
        assert done.returncode == 1
        assert "POINTSMAN_NO_KEY is unset or empty" in done.stderr

    def test_a_state_folder_whose_sockets_would_have_too_long_a_path(self, good: Path, tmp_path: Path) -> None:
        done = pointsman("serve", "--config", str(good), "--envoy", "--state-dir", str(tmp_path / ("x" * 100)))
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].endswith("use a shorter --state-dir")

    def test_an_admin_address_that_makes_no_sense(self, good: Path) -> None:
        done = pointsman("serve", "--config", str(good), "--envoy-dir", str(good.parent), "--envoy-admin", "nonsense")
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith("--envoy-admin: ")


class TestTheCommand:
    def test_wrong_usage_is_2(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["nonsense"])
        assert ended.value.code == 2

    def test_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["--version"])
        assert ended.value.code == 0
        assert capsys.readouterr().out.startswith("pointsman ")

    def test_a_reader_that_leaves_early(self, good: Path) -> None:
        head = shutil.which("true")
        assert head is not None
        line = f"{sys.executable} -m router.cli config schema | {head}; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=ROOT)
        assert (done.returncode, done.stderr) == (0, "")
