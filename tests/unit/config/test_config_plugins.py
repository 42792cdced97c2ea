"""Plugins of decisions: what is read, and what is refused with its place."""

from __future__ import annotations

import pytest

from router.config.actions import Actions
from tests.support.config_samples import GOOD, edited, errors, read

REFS = "        modelRefs:\n          - model: small\n"


def with_plugins(plugins: str, refs: str = REFS) -> str:
    """GOOD, whose last decision has these plugins (flow style) in front of `refs`."""
    return edited((REFS, f"        plugins: {plugins}\n{refs}"))


def actions(plugins: str, refs: str = REFS) -> Actions:
    return read(with_plugins(plugins, refs)).plan.recipes["default"].decisions[1].actions


NO = "{type: fast_response, configuration: {message: No.}}"


def test_without_plugins() -> None:
    assert read(GOOD).plan.recipes["default"].decisions[1].actions == Actions()
    assert actions("[]") == Actions()


def test_fast_response() -> None:
    assert actions(f"[{NO}]", "") == Actions(fast_response="No.")


@pytest.mark.parametrize(
    ("plugins", "refs", "expected"),
    [
        (f"[{NO}]", REFS, "45:9: recipes[0].decisions[1].modelRefs: fast_response answers without any model; remove"),
        (f"[{NO}, {NO}]", "", "plugins[1].type: the decision has a second fast_response plugin; keep one of them"),
        (f"[{NO}]", "        algorithm: {type: static}\n", "algorithm: fast_response leaves nothing to pick; remove"),
        ("[{type: fast_respons}]", REFS, 'type: "fast_respons" is not one of: fast_response'),
        ("[{type: rag}]", REFS, 'plugins[0].type: plugin "rag" is not supported yet'),
        ("[{configuration: {}}]", REFS, 'plugins[0]: missing key "type"'),
        ("[{type: fast_response}]", "", 'plugins[0]: missing key "configuration"'),
        ("[{type: fast_response, configuration: {}}]", "", 'plugins[0].configuration: missing key "message"'),
        ("[{type: fast_response, configuration: {message: ''}}]", "", "message: must not be empty"),
        ("[]", "", "decisions[1]: a decision needs at least one model; add modelRefs: [{model: NAME}], or the plugin"),
    ],
)
def test_mistakes(plugins: str, refs: str, expected: str) -> None:
    found = errors(with_plugins(plugins, refs))
    assert len(found) == 1
    assert expected in found[0]
