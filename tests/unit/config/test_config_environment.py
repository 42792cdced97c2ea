"""`${NAME}`: typed, checked, and never shown."""

from __future__ import annotations

import pytest

from router.config.load import load
from router.config.problems import ConfigError
from tests.support.config_samples import GOOD, edited, errors, read

PORT = edited(("port: 8801", "port: ${PORT}"))
HIDDEN = "s3cr3t-value"


def test_a_number_from_the_environment() -> None:
    assert read(PORT, {"PORT": "9000"}, serving=True).plan.listeners[0].port == 9000


def test_unset_is_an_error_when_serving() -> None:
    assert errors(PORT, serving=True) == ["5:11: listeners[0].port: environment variable PORT is not set"]


def test_unset_is_one_warning_otherwise() -> None:
    loaded = read(PORT)
    assert [warning.render() for warning in loaded.warnings] == [
        "c.yaml:5:11: warning: listeners[0].port: environment variable PORT is not set"
    ]


@pytest.mark.parametrize(
    "edit",
    [
        ("endpoint: http://127.0.0.1:9101/v1", "endpoint: http://${X}/v1"),
        ("model: large", "model: ${X}"),
        ("type: noul", "type: ${X}"),
        ("name: kind\n              label", "name: ${X}\n              label"),
        ("label: code", "label: ${X}"),
        ("operator: AND", "operator: ${X}"),
        ("default: true", "default: ${X}"),
        ("recipe: default", "recipe: ${X}"),
        ("address: 127.0.0.1", "address: ${X}"),
        ("version: v0.5", "version: ${X}"),
    ],
)
def test_unset_hides_no_follow_up_mistakes(edit: tuple[str, str]) -> None:
    loaded = read(edited(edit))
    assert [w.message for w in loaded.warnings if "is not set" in w.message] == ["environment variable X is not set"]


@pytest.mark.parametrize(
    "edit",
    [
        ("port: 8801", "port: ${X}"),
        ("endpoint: http://127.0.0.1:9101/v1", "endpoint: ${X}"),
        ("model: large", "model: ${X}"),
        ("type: noul", "type: ${X}"),
        ("label: code", "label: ${X}"),
        ("operator: AND", "operator: ${X}"),
        ("default: true", "default: ${X}"),
        ("recipe: default", "recipe: ${X}"),
        ("version: v0.5", "version: ${X}"),
        ("name: tools\n", "name: ${X}\n"),
    ],
)
def test_values_never_show(edit: tuple[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read(edited(edit), {"X": HIDDEN}, serving=True)
    assert HIDDEN not in str(caught.value)
    assert "${X}" in str(caught.value)


def test_known_names_from_the_environment_do_not_show_either() -> None:
    found = errors(edited(("- name: large", "- name: ${X}")), {"X": "large-secret"})
    assert len(found) == 1
    assert "large-secret" not in found[0]


def test_the_revision_is_of_the_text_as_written() -> None:
    one, two = (read(PORT, {"PORT": port}).plan.revision for port in ("1001", "1002"))
    assert one == two
    assert len(one) == 12
    assert read(PORT + "# a comment\n", {"PORT": "1001"}).plan.revision == one
    assert read(edited(("port: 8801", "port: ${POST}")), {"POST": "1001"}).plan.revision != one


def test_an_artifact_from_the_environment_does_not_show_in_its_models_error() -> None:
    def broken(artifact: str) -> None:
        raise FileNotFoundError(f"nothing at {artifact}")

    text = GOOD + (
        "global:\n  model_catalog:\n    deployments:\n      builtin: {provider: model_runtime, artifact: '${WHERE}'}\n"
    )
    with pytest.raises(ConfigError) as caught:
        load(text, environ={"WHERE": HIDDEN}, describe=broken, serving=True)
    assert HIDDEN not in str(caught.value)
    assert "nothing at ${WHERE}" in str(caught.value)
