"""The configuration changes while eight clients ask all the time; not one of them notices but by the new behaviour."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.artifacts import build_tiny_artifact
from tests.support.stack import Stack, eventually, fill, running, spawn, stop
from tests.support.traffic import Answered, ask_once, load

ROUTES = """\
version: v0.5
listeners:
  - {name: public, address: 127.0.0.1, port: <listener>}
providers:
  defaults: {model: general}
  models:
    - {name: coder, provider_model_id: qwen3-coder-30b, backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}
    - {name: general, backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}
recipes:
  - name: default
    signals:
      systemone:
        - {name: subject, preset: domains}
    decisions:
      - name: code
        priority: 300
        rules: {operator: AND, conditions: [{type: systemone, name: subject, label: computer science}]}
        modelRefs: [{model: coder}]
entrypoints:
  - {model_names: [auto], recipe: default}
global:
  services:
    extproc: {address: 127.0.0.1, port: <extproc>}
    metrics: {address: 127.0.0.1, port: <metrics>}
    management: {address: 127.0.0.1, port: <management>}
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(tmp_path_factory.mktemp("reload"), ROUTES) as started:
        yield started


@pytest.fixture
def stack(shared: Stack) -> Iterator[Stack]:
    """The stack on its first configuration, before and after."""
    yield shared
    rename_into_place(shared, fill(ROUTES, shared.ports))
    eventually(lambda: config(shared) == {"status": "ok"}, "the first configuration serves again", within=20)
    shared.wait_ready()


def config(stack: Stack) -> dict[str, object]:
    return dict(json.loads(stack.management("/readyz")[1])["config"])


def rename_into_place(stack: Stack, text: str) -> None:
    """As editors and `config migrate` do; what was a symlink becomes a file again."""
    fresh = stack.config.with_name("fresh.yaml")
    fresh.write_text(text)
    fresh.replace(stack.config)


def write_in_place(stack: Stack, text: str) -> None:
    """In two halves, so that a look may fall between them."""
    with stack.config.open("w") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        time.sleep(0.05)
        file.write(text[len(text) // 2 :])


def swap_symlink(stack: Stack, text: str) -> None:
    """As a mounted ConfigMap does: the file is a link through `..data`, which is swapped in one step."""
    folder = stack.directory / f"..{time.monotonic_ns()}"
    folder.mkdir()
    (folder / "pointsman.yaml").write_text(text)
    link = stack.directory / "..data_tmp"
    link.symlink_to(folder.name)
    link.replace(stack.directory / "..data")
    if not stack.config.is_symlink():
        through = stack.directory / "link.yaml"
        through.symlink_to("..data/pointsman.yaml")
        through.replace(stack.config)


def reloads(stack: Stack, outcome: str) -> float:
    return stack.metric(f'pointsman_config_reloads_total{{outcome="{outcome}"}}')


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


class TestUnderLoad:
    def test_no_request_fails_over_six_reloads(self, stack: Stack) -> None:
        first = fill(ROUTES, stack.ports)
        general = f'{{name: general, backend_refs: [{{endpoint: "{endpoint(stack, "openai")}"}}]}}'
        new_id = changed(first, "qwen3-coder-30b", "qwen4-coder")
        new_model = changed(first, f"- {general}", f"- {general}\n    - {general.replace('general', 'wizard')}")
        new_model = changed(new_model, "[{model: coder}]", "[{model: wizard}]")
        new_decision = changed(first, "[{model: coder}]\n", "[{model: coder}]\n" + REST)
        new_question = changed(first, "label: computer science", "label: law")
        new_endpoint = changed(first, general, general.replace(endpoint(stack, "openai"), endpoint(stack, "spare")))
        new_endpoint = changed(new_endpoint, "[{model: coder}]", "[{model: general}]")
        # How the file gets each change, and how an answer tells that it is live.
        steps: list[tuple[Callable[[Stack, str], None], str, Callable[[Answered], bool]]] = [
            (rename_into_place, new_id, lambda a: a.body.get("model") == "qwen4-coder"),
            (write_in_place, new_model, lambda a: a.headers.get("x-vsr-selected-model") == "wizard"),
            (swap_symlink, new_decision, lambda a: a.decision == "rest"),
            (swap_symlink, new_question, lambda a: not a.decision and a.body.get("model") == "general"),
            (rename_into_place, first, lambda a: a.decision == "code" and a.body.get("model") == "qwen3-coder-30b"),
            (write_in_place, new_endpoint, lambda a: a.decision == "code" and a.body.get("model") == "general"),
        ]
        before = reloads(stack, "ok")
        delays = []
        with spare_backend(stack), load(stack.ports["listener"], "auto", name="reload", pause_s=0.02) as traffic:
            traffic.wait_for(lambda answer: answer.decision == "code", count=16)
            for write, text, is_new in steps:
                write(stack, text)
                began = time.monotonic()
                traffic.wait_for(is_new, within=15, told=lambda: str(config(stack)))
                delays.append(time.monotonic() - began)
            traffic.wait_for(steps[-1][2], count=50)
            assert stack.recorded("spare"), "the new endpoint gets requests"
            rename_into_place(stack, first)
            traffic.wait_for(steps[-2][2], within=15, count=50)
        failed = [answer for answer in traffic.answers if answer.status != 200]
        assert not failed, traffic.summary()
        assert len(traffic.answers) > 500
        assert reloads(stack, "ok") == before + 7
        assert config(stack) == {"status": "ok"}
        # About two seconds on a quiet machine; a change on the heels of another waits until that one is cleared up.
        assert max(delays) < 8, delays


REST = """\
      - name: rest
        priority: 900
        rules: {operator: OR, conditions: [{type: systemone, name: subject, label: computer science}]}
        modelRefs: [{model: general}]
"""


def endpoint(stack: Stack, name: str) -> str:
    return f"http://127.0.0.1:{stack.ports[name]}/v1"


@contextlib.contextmanager
def spare_backend(stack: Stack) -> Iterator[None]:
    port = str(stack.ports["spare"])
    process = spawn(stack.directory / "spare.log", "-m", "examples.backends", "--port", port, "--format", "openai")
    try:
        eventually(lambda: stack.recorded("spare") == [], "the spare backend listens", within=20)
        yield
    finally:
        stop(process)


BAD: dict[str, tuple[Callable[[str], str], str]] = {
    "syntax": (lambda text: changed(text, "version: v0.5", "version: [v0.5"), "pointsman.yaml:"),
    "unknown key": (lambda text: changed(text, "decisions:", "decisons:"), "decisions"),
    "dangling reference": (lambda text: changed(text, "[{model: coder}]", "[{model: codr}]"), "codr"),
    "unset variable": (
        lambda text: changed(text, "qwen3-coder-30b", '"${POINTSMAN_TEST_UNSET}"'),
        "POINTSMAN_TEST_UNSET",
    ),
}


class TestRefused:
    @pytest.mark.parametrize("kind", BAD)
    def test_a_bad_file_changes_nothing_and_says_why(self, stack: Stack, kind: str) -> None:
        edit, told = BAD[kind]
        before, revision = reloads(stack, "invalid"), json.loads(stack.management("/readyz")[1])["revision"]
        rename_into_place(stack, edit(fill(ROUTES, stack.ports)))
        eventually(lambda: config(stack)["status"] == "invalid", "the refusal is told", within=5)
        assert told in str(config(stack)["problems"])
        assert reloads(stack, "invalid") == before + 1
        assert stack.metric("pointsman_config_last_reload_successful ") == 0
        status, detail = stack.management("/readyz")
        assert status == 200
        assert json.loads(detail)["revision"] == revision
        assert ask_once(stack.ports["listener"], kind, model="auto").decision == "code"
        logged = [line for line in stack.log().splitlines() if "configuration not reloaded" in line]
        assert told in logged[-1]

    def test_another_port_of_the_router_asks_for_a_restart(self, stack: Stack) -> None:
        text = fill(ROUTES, stack.ports)
        rename_into_place(stack, text.replace(f"port: {stack.ports['metrics']}", f"port: {stack.ports['spare']}"))
        eventually(lambda: config(stack)["status"] == "restart_required", "the refusal is told", within=5)
        assert "global.services" in str(config(stack)["problems"])
        assert reloads(stack, "restart_required") == 1
        assert ask_once(stack.ports["listener"], "restart", model="auto").decision == "code"

    def test_a_model_that_does_not_load_never_takes_over(self, stack: Stack) -> None:
        broken = build_tiny_artifact(stack.directory / "broken", presets=True)
        (broken / "model.onnx").write_bytes(b"not a graph")
        catalogue = f"  model_catalog:\n    deployments:\n      tiny: {{provider: model_runtime, artifact: {broken}}}\n"
        text = changed(fill(ROUTES, stack.ports), "global:\n", "global:\n" + catalogue)
        text = changed(text, "{name: subject,", "{name: subject, deployment: tiny,")
        before = reloads(stack, "failed")
        rename_into_place(stack, text)
        eventually(lambda: config(stack)["status"] == "failed", "the refusal is told", within=40)
        assert "does not start" in str(config(stack)["problems"])
        assert reloads(stack, "failed") == before + 1
        assert ask_once(stack.ports["listener"], "old", model="auto").decision == "code"
        assert sum("runtime serve" in command for command in stack.children().values()) == 1

    def test_a_file_mended_while_its_model_is_waited_for_is_served_at_once(self, stack: Stack) -> None:
        silent = f"unix://{stack.directory}/nobody.sock"
        catalogue = (
            f"  model_catalog:\n    deployments:\n      far: {{provider: model_runtime, endpoint: '{silent}'}}\n"
        )
        text = changed(fill(ROUTES, stack.ports), "global:\n", "global:\n" + catalogue)
        text = changed(text, "{name: subject,", "{name: subject, deployment: far,")
        rename_into_place(stack, text)
        eventually(lambda: not decided(stack), "a model that nobody answers for leaves the question unknown", within=10)
        rename_into_place(stack, fill(ROUTES, stack.ports))
        eventually(lambda: decided(stack), "the mended file serves", within=10)


def decided(stack: Stack) -> bool:
    return ask_once(stack.ports["listener"], "decided", model="auto").decision == "code"


class TestEnvoyKilledWhileTheFileChanges:
    def test_the_change_arrives_when_envoy_is_back(self, stack: Stack) -> None:
        text = changed(fill(ROUTES, stack.ports), "- {name: general", f"- {wizard(stack)}\n    - {{name: general")
        text = changed(text, "[{model: coder}]", "[{model: wizard}]")
        with load(stack.ports["listener"], "auto", name="envoy", clients=2, pause_s=0.05) as traffic:
            rename_into_place(stack, text)
            for _ in range(2):
                os.kill(stack.child("--config-path"), signal.SIGKILL)
                time.sleep(0.4)
            traffic.wait_for(lambda answer: answer.headers.get("x-vsr-selected-model") == "wizard", within=25, count=4)
        assert {answer.status for answer in traffic.answers} <= {0, 200}, traffic.summary()
        assert config(stack) == {"status": "ok"}


def wizard(stack: Stack) -> str:
    return f'{{name: wizard, backend_refs: [{{endpoint: "{endpoint(stack, "openai")}"}}]}}'


class TestRouterKilledWhileTheFileIsBad:
    def test_it_comes_back_with_what_served_last(self, stack: Stack) -> None:
        good = changed(fill(ROUTES, stack.ports), "qwen3-coder-30b", "served-last")
        rename_into_place(stack, good)
        eventually(lambda: ask(stack).body.get("model") == "served-last", "the good file serves", within=10)
        rename_into_place(stack, changed(good, "decisions:", "decisons:"))
        eventually(lambda: config(stack)["status"] == "invalid", "the bad file is noticed", within=5)
        old = stack.child("--envoy-dir")
        os.kill(old, signal.SIGKILL)
        eventually(lambda: old not in stack.children() and stack.ready(), "the router is back", within=20)
        assert ask(stack).body["model"] == "served-last"
        eventually(lambda: config(stack)["status"] == "invalid", "the bad file is told again", within=5)
        assert reloads(stack, "invalid") == 1
        rename_into_place(stack, changed(good, "served-last", "mended"))
        eventually(lambda: ask(stack).body.get("model") == "mended", "the mended file serves", within=10)
        assert config(stack) == {"status": "ok"}


def ask(stack: Stack) -> Answered:
    return ask_once(stack.ports["listener"], "one", model="auto")
