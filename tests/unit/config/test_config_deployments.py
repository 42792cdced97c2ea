"""Deployments that are not ours: remote APIs in both dialects, replicas, keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.credentials import KeyUnavailable, read_key, why_absent
from router.config.deployments import Deployment, Dialect, KeySource
from router.config.problems import ConfigError
from router.questions import QuestionType
from tests.support.config_samples import GOOD, edited, read

BASE = {QuestionType.NOUL, QuestionType.CHOICE, QuestionType.SCORE}
SYSTEM_ONE = "provider: systemone, endpoint: 'https://api.example.com/v1/systemone', model: jev"
OPENAI = "provider: systemone, endpoint: 'https://api.example.com/v1/decisions', model: gpt"
SPAN = (
    "            type: noul\n            instructions: Does it need a tool?\n",
    "            type: span\n            instructions: Where?\n            labels: [{key: x}]\n",
)
SET = (SPAN[0], SPAN[1].replace("span", "set"))


def document(deployment: str, *edits: tuple[str, str], more: str = "") -> str:
    """A configuration whose rule `tools` asks a deployment `far`."""
    text = edited(("- name: tools\n", "- name: tools\n          deployment: far\n"), *edits)
    return f"{text}global:\n  model_catalog:\n{more}    deployments:\n      far: {{{deployment}}}\n"


def far(deployment: str, *edits: tuple[str, str], environ: dict[str, str] | None = None) -> Deployment:
    loaded = read(document(deployment, *edits), environ, serving=True)
    assert not loaded.warnings
    return loaded.plan.deployments["far"]


def problems(deployment: str, *edits: tuple[str, str]) -> list[str]:
    """The errors, without their places."""
    with pytest.raises(ConfigError) as caught:
        read(document(deployment, *edits))
    return [problem.message + (f"; {problem.hint}" if problem.hint else "") for problem in caught.value.problems]


def test_a_remote_api() -> None:
    found = far(SYSTEM_ONE + ", timeout_ms: 6000, auth: {api_key_env: KEY}, max_concurrent_calls: 8")
    assert found.endpoint == "https://api.example.com/v1/systemone"
    assert (found.dialect, found.served_name, found.timeout_ms) == (Dialect.SYSTEMONE, "jev", 6000)
    assert (found.key, found.max_calls, found.artifact) == (KeySource(env="KEY"), 8, None)
    assert found.view.max_bytes == 4 * 4096
    assert found.capabilities is not None
    assert found.capabilities.question_types == BASE


def test_the_endings_path_tells_the_dialect() -> None:
    assert far(OPENAI).dialect is Dialect.OPENAI
    assert far(SYSTEM_ONE.replace("/v1/systemone", "/inference/v1/systemone/")).dialect is Dialect.SYSTEMONE


def test_a_view_may_be_written() -> None:
    assert far(SYSTEM_ONE + ", routing_view: {max_tokens: 300}").view.max_bytes == 1200
    assert far(SYSTEM_ONE + ", routing_view: {head_share: 0.5}").view.max_bytes == 4 * 4096


def test_what_a_remote_model_can_do_may_be_said() -> None:
    found = far(SYSTEM_ONE + ", capabilities: {question_types: [span, noul], modalities: [text]}", SPAN)
    assert found.capabilities is not None
    assert found.capabilities.question_types == {QuestionType.SPAN, QuestionType.NOUL}


@pytest.mark.parametrize("deployment", [SYSTEM_ONE, OPENAI])
def test_a_set_is_put_together_and_a_span_is_not(deployment: str) -> None:
    assert far(deployment, SET).name == "far"
    assert problems(deployment, SPAN) == [
        "the model of deployment far cannot answer span questions; it answers: choice, noul, score"
    ]


def test_an_attached_runtime_may_want_a_key() -> None:
    found = far("provider: model_runtime, endpoint: 'https://gpu:8100', auth: {api_key_file: /run/key}")
    assert (found.key, found.dialect) == (KeySource(file="/run/key"), Dialect.RUNTIME)


def test_replicas() -> None:
    found = far("provider: model_runtime, replicas: [{endpoint: 'http://a:1'}, {endpoint: 'http://b:1/'}]")
    assert (found.endpoint, found.replicas) == ("http://a:1", ("http://b:1",))
    assert found.endpoints == ("http://a:1", "http://b:1")
    remote = SYSTEM_ONE.replace("endpoint:", "replicas: [{endpoint:").replace(", model", "}], model")
    assert far(remote).endpoints == ("https://api.example.com/v1/systemone",)


@pytest.mark.parametrize(
    ("deployment", "expected"),
    [
        ("provider: systemone, model: m", "a remote API needs an endpoint; add endpoint: https://host/v1/systemone"),
        (
            "provider: systemone, model: m, endpoint: 'https://x/v1/chat'",
            '"https://x/v1/chat" ends in neither /v1/systemone nor /v1/decisions; the ending says the dialect:'
            " /v1/systemone, or /v1/decisions for OpenAI's",
        ),
        (
            "provider: systemone, model: m, endpoint: 'unix:///x'",
            '"unix:///x" is not the address of a remote API; write https://host/v1/systemone or'
            " https://host/v1/decisions",
        ),
        (
            "provider: systemone, model: m, endpoint: 'https://u:p@x/v1/systemone'",
            '"https://u:p@x/v1/systemone" is not the address of a remote API; write https://host/v1/systemone or'
            " https://host/v1/decisions",
        ),
        (
            "provider: systemone, model: m, endpoint: 'https://x:0x/v1/systemone'",
            '"https://x:0x/v1/systemone" has no usable port; a port is from 1 to 65535',
        ),
        (SYSTEM_ONE + ", artifact: builtin", "artifact has no effect with provider systemone; remove it"),
        (SYSTEM_ONE + ", served_name: x", "served_name has no effect with provider systemone; write model"),
        (SYSTEM_ONE + ", device: cpu", "device has no effect with provider systemone; remove it"),
        (SYSTEM_ONE + ", auth: {}", "needs api_key_env or api_key_file"),
        (
            SYSTEM_ONE + ", auth: {api_key_env: A, api_key_file: /b}",
            "api_key_env and api_key_file cannot both be given; keep one of them",
        ),
        (SYSTEM_ONE + ", auth: {api_key: hidden}", None),
        (SYSTEM_ONE + ", replicas: [{endpoint: 'https://y/v1/systemone'}]",
         "endpoint and replicas cannot both be given; list every endpoint in replicas"),
        (
            "provider: systemone, model: m, replicas: [{endpoint: 'https://x/v1/systemone'},"
            " {endpoint: 'https://x/v1/decisions'}]",
            "replicas of one model must speak one dialect",
        ),
        (
            "provider: model_runtime, replicas: [{endpoint: 'http://a:1'}, {endpoint: 'http://a:1/'}]",
            'the endpoint "http://a:1/" is listed twice',
        ),
        (
            OPENAI + ", capabilities: {question_types: [noul, set, span]}",
            "the dialect of /v1/decisions has no set and span questions; leave them out: a set is put together from"
            " predicates",
        ),
        (SYSTEM_ONE + ", capabilities: {modalities: [image]}", '"image" is not supported yet'),
        (SYSTEM_ONE + ", scan_window: {tokens: 4096, size: 1}", None),
        (SYSTEM_ONE + ", max_concurrent_calls: 0", "must be at least 1, not 0"),
        ("provider: model_runtime, endpoint: 'http://a:1', model: m", "model is for provider systemone; write"
         " served_name"),
        ("provider: model_runtime, artifact: builtin, auth: {api_key_env: A}",
         "has no effect with artifact; remove it"),
        ("provider: model_runtime, endpoint: 'https://a:1', auth: {}", "needs api_key_env or api_key_file"),
        ("provider: model_runtime, artifact: builtin, replicas: [{endpoint: 'http://a:1'}]",
         "artifact and replicas cannot both be given; keep one of them"),
        ("provider: model_runtime, replicas: [{device: 'cuda:0'}]", None),
    ],
)  # fmt: skip
def test_mistakes(deployment: str, expected: str | None) -> None:
    found = problems(deployment)
    assert len(found) >= 1
    assert expected is None or found == [expected]
    assert all("hidden" not in line for line in found)


def test_a_key_that_is_missing_is_a_warning_until_it_is_needed() -> None:
    text = document(SYSTEM_ONE + ", auth: {api_key_env: KEY}")
    (warning,) = read(text).warnings
    assert (warning.path, warning.message) == (
        "global.model_catalog.deployments.far.auth.api_key_env",
        "environment variable KEY is unset or empty",
    )
    assert read(text, {"KEY": "k"}).warnings == ()
    assert read(text, serving=True).warnings == ()  # whoever connects needs it and says so


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1:1", False), ("localhost", False), ("api.example.com", True)])
def test_a_key_in_the_open_is_warned_about(host: str, warned: bool) -> None:
    deployment = f"provider: systemone, endpoint: 'http://{host}/v1/systemone', model: m"
    assert read(document(deployment)).warnings == ()
    found = read(document(deployment + ", auth: {api_key_env: KEY}"), {"KEY": "k"}).warnings
    assert [problem.message for problem in found] == ["the key travels unencrypted"] * warned


def test_a_key_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    source = KeySource(file=str(file))
    assert why_absent(source, {}) == f"key file {file} cannot be read: No such file or directory"
    file.write_text("k-123\n")
    assert (read_key(source, {}), why_absent(source, {})) == ("k-123", None)


@pytest.mark.parametrize("content", [b"", b" \n", b"a\nb", b"a\x00b", "schlüssel".encode(), b"\xff"])
def test_a_file_that_holds_no_key(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(KeyUnavailable, match=r"key file .*(is empty|does not hold one line|is not text)"):
        read_key(KeySource(file=str(file)), {})


def test_a_key_in_the_environment_never_shows() -> None:
    with pytest.raises(KeyUnavailable) as caught:
        read_key(KeySource(env="KEY"), {"KEY": "hid\nden"})
    assert str(caught.value) == "environment variable KEY does not hold one line of printable ASCII characters"


def test_what_is_asked() -> None:
    assert read(GOOD).plan.ask == "all"
    assert read(document(SYSTEM_ONE, more="    ask: needed\n")).plan.ask == "needed"
    with pytest.raises(ConfigError):
        read(document(SYSTEM_ONE, more="    ask: some\n"))
