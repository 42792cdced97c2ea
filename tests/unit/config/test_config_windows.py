"""`routing_view` and `scan_window` of deployments: defaults, ranges, and what a model's length makes of them."""

from __future__ import annotations

import pytest

from router.config.sizes import RoutingView, ScanWindow
from router.questions import Capabilities, QuestionType
from tests.support.guards import CAN, far, loaded, mistakes, remote

SIGNALS, CONDITION = "jailbreak: [{name: n, threshold: 0.5}]", "{type: jailbreak, name: n}"


def test_defaults_of_a_remote_api() -> None:
    found = far()
    assert found.view == RoutingView(4 * 4096, 0.25)
    assert found.scan == ScanWindow(4 * 4096, 4 * 256, 4 * 4096, 4, 3.0)


def test_defaults_of_a_local_model_follow_its_length() -> None:
    found = loaded(SIGNALS, CONDITION).plan.deployments["builtin"]
    assert (found.view, found.scan) == (RoutingView(31_744, 0.25), ScanWindow(31_744, 2048, 31_744, 4, 3.0))


def test_everything_written() -> None:
    found = far(
        "routing_view: {max_tokens: 300, head_share: 0}, "
        "scan_window: {tokens: 1024, overlap: 100, max_parallel: 8, max_tokens: 2048, reread_margin: 0}"
    )
    assert found.view == RoutingView(1200, 0.0)
    assert found.scan == ScanWindow(4096, 400, 8192, 8, 0.0)


@pytest.mark.parametrize("edge", ["tokens: 256, overlap: 127", "tokens: 1048576", "max_parallel: 64", "overlap: 2047"])
def test_ends_of_the_ranges(edge: str) -> None:
    assert far(f"scan_window: {{{edge}}}").scan


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("routing_view: {max_tokens: 255}", "routing_view.max_tokens: 255 must be from 256 to 1048576"),
        ("routing_view: {max_tokens: 1048577}", "1048577 must be from 256 to 1048576"),
        ("routing_view: {max_tokens: 512.0}", "must be a whole number"),
        ("routing_view: {head_share: 1.1}", "head_share: 1.1 must be from 0 to 1"),
        ("scan_window: {tokens: 0}", "scan_window.tokens: 0 must be from 256 to 1048576"),
        ("scan_window: {tokens: 1024, overlap: 512}", "overlap: must be from 0 to 511, not 512; less than half of"),
        ("scan_window: {tokens: 1023, overlap: 512}", "overlap: must be from 0 to 511, not 512"),
        ("scan_window: {overlap: 2048}", "to 2047, not 2048; less than half of scan_window.tokens (4096, the default)"),
        ("scan_window: {overlap: -1}", "must be at least 0, not -1"),
        ("scan_window: {max_parallel: 65}", "max_parallel: 65 must be from 1 to 64"),
        ("scan_window: {max_parallel: 0}", "max_parallel: 0 must be from 1 to 64"),
        ("scan_window: {reread_margin: 20.5}", "reread_margin: 20.5 must be from 0 to 20"),
        ("scan_window: {tokens: 512, max_tokens: 511}", "max_tokens: must be from 512 to 1048576, not 511"),
        ("scan_window: {max_tokens: 2048}", "from 4096 to 1048576, not 2048; no less than scan_window.tokens (4096, "),
        ("scan_window: {max_token: 2048}", 'unknown key "max_token"; did you mean "max_tokens"?'),
    ],
)  # fmt: skip
def test_mistakes(setting: str, expected: str) -> None:
    (found,) = mistakes(SIGNALS, CONDITION, more=remote(setting))
    assert expected in found
    assert found.startswith("c:18:")


def test_windows_of_a_deployment_that_nobody_asks_are_checked_too() -> None:
    idle = """\
        global:
          model_catalog:
            deployments: {idle: {provider: model_runtime, artifact: x, scan_window: {tokens: 300, overlap: 150}}}
        """
    (found,) = mistakes(SIGNALS, CONDITION, more=idle)
    assert "must be from 0 to 149, not 150" in found


def test_an_attached_model_is_sized_when_it_says_how_long_it_is() -> None:
    attached = """\
        global:
          model_catalog:
            deployments:
              near: {provider: model_runtime, endpoint: "http://127.0.0.1:1", scan_window: {tokens: 2048}}
            system: {decision_model: near}
        """
    found = loaded(SIGNALS, CONDITION, more=attached).plan.deployments["near"]
    assert found.scan == ScanWindow(8192, 2048, 8192)
    described = found.described(CAN)
    assert (described.scan, described.view) == (ScanWindow(8192, 2048, 31_744), RoutingView(31_744, 0.25))
    short = found.described(Capabilities(frozenset({QuestionType.NOUL}), max_input_tokens=3072))
    assert (short.scan.size, short.scan.max_size, short.view.max_bytes) == (2048, 2048, 2048)
    assert 2 * short.scan.overlap < short.scan.size
