"""Plugins of decisions: what is read, and what is refused with its place."""

from __future__ import annotations

import pytest

from router.config.actions import Actions, Diagnostics, HeaderChanges, RequestParams, SystemPrompt
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


def test_header_mutation() -> None:
    plugin = (
        "{type: header_mutation, configuration: {add: [{name: X-A, value: a b}], update: [{name: x-b, value: c}],"
        " delete: [X-C]}}"
    )
    assert actions(f"[{plugin}]").headers == HeaderChanges((("x-a", "a b"),), (("x-b", "c"),), ("x-c",))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("x-vsr-plan", "is written by the router"),
        ("X_Selected_Model", "is written by the router"),
        ("x-envoy-retry-on", "is written by the router"),
        ("pointsman-listener", "is written by the router"),
        ("Content-Length", "says how the request travels"),
        ("Transfer-Encoding", "says how the request travels"),
        ("host", "says how the request travels"),
        ("Authorization", "carries a credential"),
        ("x-api-key", "carries a credential"),
        ("cookie", "carries a credential"),
        (":path", "must be the name of a header"),
        ("a b", "must be the name of a header"),
    ],
)
def test_headers_that_no_decision_may_change(name: str, reason: str) -> None:
    for change in (f"delete: ['{name}']", f"add: [{{name: '{name}', value: x}}]"):
        found = errors(with_plugins(f"[{{type: header_mutation, configuration: {{{change}}}}}]"))
        assert len(found) == 1
        assert reason in found[0]


def test_system_prompt() -> None:
    assert actions("[{type: system_prompt, configuration: {system_prompt: Hi.}}]").system_prompt == SystemPrompt(
        "insert", "Hi."
    )
    off = "[{type: system_prompt, configuration: {system_prompt: Hi., mode: append, enabled: false}}]"
    assert actions(off) == Actions()


def test_request_params() -> None:
    settings = "{blocked_params: [logit_bias], max_tokens_limit: 10, max_n: 1, strip_unknown: true}"
    assert actions(f"[{{type: request_params, configuration: {settings}}}]").params == RequestParams(
        frozenset({"logit_bias"}), 10, 1, True
    )
    assert actions("[{type: request_params, configuration: {strip_unknown: false}}]") == Actions()


def test_decision_diagnostics() -> None:
    assert actions("[{type: decision_diagnostics}]").diagnostics == Diagnostics(32, 16, 128, 16_384)
    bounds = "{max_signals: 128, max_projections: 0, max_text_runes: 9, max_payload_bytes: 65536}"
    plugin = f"[{{type: decision_diagnostics, configuration: {bounds}}}]"
    assert actions(plugin).diagnostics == Diagnostics(128, 0, 9, 65_536)
    assert actions("[{type: decision_diagnostics, configuration: {enabled: false}}]") == Actions()


def configured(kind: str, settings: str) -> str:
    return f"[{{type: {kind}, configuration: {settings}}}]"


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        (configured("header_mutation", "{}"), "plugins[0].configuration: changes nothing; write add, update or delete"),
        (configured("header_mutation", "{delete: [x-a, X_A]}"), 'the header "X_A" is already in delete; keep one of'),
        (configured("header_mutation", '{add: [{name: x-a, value: "a\\nb"}]}'), "must be 1 to 2,048 printable ASCII"),
        (configured("request_params", "{}"), "plugins[0].configuration: bounds nothing; write blocked_params, max_"),
        (configured("request_params", "{blocked_params: [model]}"), '"model" cannot be left out of a request'),
        (configured("decision_diagnostics", "{max_signals: 129}"), "max_signals: must be at most 128"),
        (configured("request_params", "{max_n: 0}"), "max_n: must be at least 1"),
        (configured("system_prompt", "{system_prompt: a, mode: prepend}"), '"prepend" is not one of: insert, replace'),
        (configured("system_prompt", "{}"), 'missing key "system_prompt"'),
    ],
)
def test_mistakes_of_settings(plugins: str, expected: str) -> None:
    found = errors(with_plugins(plugins))
    assert len(found) == 1
    assert expected in found[0]


def test_a_fast_response_has_nothing_to_change() -> None:
    plugins = f"[{NO}, {{type: system_prompt, configuration: {{system_prompt: Hi.}}}}]"
    (found,) = errors(with_plugins(plugins, ""))
    assert "system_prompt is about what a backend gets, and fast_response asks none" in found
