"""What `pointsman runtime serve` hands to the engine."""

from __future__ import annotations

from typing import Any

import pytest

from router.cli import main
from router.runtime.bounds import Bounds


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The keyword arguments of every `serve` there was."""
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr("router.runtime.serve.serve", lambda artifact, **named: calls.append(named))
    return calls


def test_flags_of_queue_batch_and_device(served: list[dict[str, Any]]) -> None:
    flags = "--device cuda:2 --precision fp16 --gpu-mem-limit 1000000 --max-queue 7 --max-queued-tokens 9000"
    assert main(["runtime", "serve", "--artifact", "x", *flags.split(), "--batch-window-ms", "0.5"]) == 0
    loading = served[0]["loading"]
    assert (loading.device.device, loading.device.precision, loading.device.gpu_mem_limit) == ("cuda:2", "fp16", 10**6)
    bounds = loading.bounds.on("cuda:2")
    assert (bounds.requests, bounds.queued_tokens, bounds.batch_tokens) == (7, 9000, 65_536)
    assert bounds.window_s == 0.0005


def test_without_flags_the_device_decides(served: list[dict[str, Any]]) -> None:
    assert main(["runtime", "serve", "--artifact", "x"]) == 0
    assert served[0]["loading"].bounds.on("cpu") == Bounds()


@pytest.mark.parametrize(
    "flag", ["--max-queue=0", "--max-batch-tokens=-1", "--batch-window-ms=2000", "--batch-window-ms=x", "--precision=x"]
)
def test_what_is_no_bound_is_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["runtime", "serve", "--artifact", "x", flag])
    assert flag.partition("=")[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags", ["--port=99999", "--port=0", "--port=-1", "--alias=", "--served-name= ", "--port=1,--uds=x"]
)
def test_what_cannot_be_listened_on_or_called_is_refused(flags: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["runtime", "serve", "--artifact", "x", *flags.split(",")])
    assert flags.rsplit(",", maxsplit=1)[-1].partition("=")[0] in capsys.readouterr().err


def test_a_device_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "serve", "--artifact", "x", "--device", "tpu"]) == 1
    assert "device 'tpu' is not one of auto, cpu, cuda, cuda:N" in capsys.readouterr().err
