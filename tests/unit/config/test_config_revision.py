"""Models of a hub by commit, and what is shared between calls."""

from __future__ import annotations

import pytest

from router.asking.placement import placement_of, placements
from router.asking.supervise import default_command
from router.config.deployments import Deployment
from router.config.load import load
from router.config.problems import ConfigError
from router.questions import Capabilities
from tests.support.config_samples import describe, edited

COMMIT = "0123456789abcdef0123456789abcdef01234567"
asked: list[str] = []


def watching(artifact: str) -> Capabilities | None:
    asked.append(artifact)
    return describe(artifact)


def far(deployment: str) -> Deployment:
    asked.clear()
    text = edited(("- name: tools\n", "- name: tools\n          deployment: far\n"))
    text += f"global:\n  model_catalog:\n    deployments:\n      far: {{provider: model_runtime, {deployment}}}\n"
    return load(text, environ={}, describe=watching, serving=False).plan.deployments["far"]


def test_a_model_of_a_hub_is_described_and_started_by_its_commit() -> None:
    found = far(f"artifact: acme/tiny, revision: {COMMIT}")
    assert f"acme/tiny@{COMMIT}" in asked
    assert (found.artifact, found.revision) == ("acme/tiny", COMMIT)
    place = placement_of(found)
    assert place is not None
    assert place.served_name == "tiny"
    argv = default_command(place, "/run/s.sock")  # type: ignore[arg-type]
    assert argv[argv.index("--artifact") + 1] == f"acme/tiny@{COMMIT}"


def test_another_commit_is_another_process() -> None:
    models = [far(f"artifact: acme/tiny, revision: {commit}") for commit in (COMMIT, COMMIT[::-1], COMMIT)]
    found = placements(models)
    assert len(found) == 2
    assert len({place.key for place in found}) == 2


def test_what_is_shared_is_told_to_the_runtime() -> None:
    plain, shared = far("artifact: builtin"), far("artifact: builtin, enable_shared_context: true")
    assert (plain.shared_context, shared.shared_context) == (False, True)
    commands = [default_command(place, "/run/s.sock") for place in placements([plain, shared])]  # type: ignore[arg-type]
    assert ["--enable-shared-context" in argv for argv in commands] == [False, True]


@pytest.mark.parametrize(
    ("deployment", "says"),
    [
        ("artifact: acme/tiny, revision: main", "must be a commit of 40 hex digits"),
        (f"artifact: builtin, revision: {COMMIT}", "the artifact is not of a hub"),
        (f"artifact: ./models/x, revision: {COMMIT}", "the artifact is not of a hub"),
        (f"artifact: 'acme/tiny@{COMMIT}', revision: {COMMIT}", "names a revision already"),
        (f"endpoint: 'http://a:1', revision: {COMMIT}", "has no effect with endpoint"),
        ("endpoint: 'http://a:1', enable_shared_context: true", "has no effect with endpoint"),
    ],
)
def test_mistakes(deployment: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        far(deployment)
