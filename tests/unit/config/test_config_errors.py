"""Every kind of mistake, at its exact place."""

from __future__ import annotations

import pytest

from router.config.problems import ConfigError
from tests.support.config_samples import GOOD, edited, errors, read

ON_KIND = "- name: kind\n"
ON_TOOLS = "- name: tools\n"


def test_the_sample_is_good() -> None:
    assert errors(GOOD) == []
    assert read(GOOD).warnings == ()


SHAPES = {
    "unknown key": (("port: 8801", "prt: 8801"), [
        '3:5: listeners[0]: missing key "port"', '5:5: listeners[0].prt: unknown key "prt"; did you mean "port"?']),
    "unknown key without a near one": (("address: 127.0.0.1\n", "address: 127.0.0.1\n    zzz: 1\n"), [
        '5:5: listeners[0].zzz: unknown key "zzz"; '
        'known here: name, address, port, timeout, unknown_paths, models, identity, debug']),
    "wrong type": (("port: 8801", "port: '8801'"), [
        '5:11: listeners[0].port: must be a whole number, not "8801"; write the number without quotes']),
    "not a boolean": (("default: true", "default: yes"), [
        '49:14: entrypoints[0].default: must be true or false, not "yes"; write true (without quotes), not yes']),
    "a number for text": (("key: code", "key: 7"), [
        "27:22: recipes[0].signals.systemone[1].question.choices[0].key: must be text, not 7;"
        " put it in quotes to make it text"]),
    "out of bounds": (("port: 8801", "port: 88010"), ["5:11: listeners[0].port: must be at most 65535, not 88010"]),
    "null": (("priority: 10", "priority:"), [
        "31:9: recipes[0].decisions[0].priority: has no value (null means nothing here);"
        " give it a value, or remove the key"]),
    "not one of": (("operator: AND", "operator: XOR"), [
        '33:21: recipes[0].decisions[0].rules.operator: "XOR" is not one of: AND, OR, NOT; did you mean "OR"?']),
    "list for mapping": (("rules: {}", "rules: []"), [
        "43:16: recipes[0].decisions[1].rules: must be a mapping of keys to values"]),
    "mapping for list": (("model_names: [auto]", "model_names: {a: b}"), [
        "47:18: entrypoints[0].model_names: must be a list"]),
    "too few": (("              - key: math\n", ""), [
        "27:15: recipes[0].signals.systemone[1].question.choices: must have at least 2 items, not 1"]),
    "no name": (("- name: tools\n", "- state: user\n"), [
        '18:11: recipes[0].signals.systemone[0]: missing key "name"']),
    "bad name": (("- name: tools\n", "- name: 'a:b'\n"), [
        '18:17: recipes[0].signals.systemone[0].name: "a:b" must be 1 to 200 printable ASCII characters without `:`,'
        " `,` or outer spaces",
        '39:21: recipes[0].decisions[0].rules.conditions[1].name: no systemone rule is named "tools";'
        " known: a:b, kind"]),
    "unknown question type": (("type: noul", "type: noun"), [
        '20:19: recipes[0].signals.systemone[0].question.type: "noun" is not one of: noul, choice, score, set, span;'
        ' did you mean "noul"?']),
    "no question type": (("            type: noul\n", ""), None),
    "later question type": (("type: noul", "type: box"), [
        '20:19: recipes[0].signals.systemone[0].question.type: question type "box" is not supported yet']),
    "other question's key": (("instructions: What kind?", "instructions: What kind?\n            levels: [a, b]"), [
        '26:13: recipes[0].signals.systemone[1].question.levels: unknown key "levels"; known here: type, instructions,'
        " choices"]),
    "not a number": (("priority: 10", "priority: .nan"), None),
    "duration": (("port: 8801", "port: 8801\n    timeout: 300"), None),
    "bad duration": (("port: 8801", "port: 8801\n    timeout: 5 minutes"), [
        '6:14: listeners[0].timeout: "5 minutes" must be a duration such as 500ms, 300s, 5m or 1h']),
}  # fmt: skip


@pytest.mark.parametrize("case", SHAPES, ids=list(SHAPES))
def test_shapes(case: str) -> None:
    edit, expected = SHAPES[case]
    found = errors(edited(edit))
    if expected is None:
        assert len(found) == 1
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("where", "key"),
    [
        ("    address: 127.0.0.1\n", "api_keys: []"),
        ("    address: 127.0.0.1\n", "tls: {}"),
        ("        priority: 10\n", "annotations: {}"),
        ("    - name: small\n", "  tags: [a]"),
        ("    - name: small\n", "  param_size: 8B"),
        ("      systemone:\n", "preferences: []"),
        ("      systemone:\n", "kb: []"),
        ("version: v0.5\n", "evaluation: {}"),
    ],
)
def test_keys_that_are_not_built_are_refused_by_name(where: str, key: str) -> None:
    indent = " " * (len(where) - len(where.lstrip()))
    line = f"{indent}{key}\n"
    before = where == "      systemone:\n"
    found = errors(edited((where, line + where if before else where + line)))
    name = key.split(":", maxsplit=1)[0].strip()
    assert len(found) == 1
    assert found[0].endswith(f'{name}: "{name}" is not supported yet')


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("rules: {}", "rules: {}\n        algorithm: {type: escalate}", "escalate"),
        ("rules: {}", "rules: {type: kb, name: x}", "kb"),
        (ON_TOOLS, ON_TOOLS + "          state: answer\n", "answer"),
        ("- name: small\n", "- name: small\n      api_format: systemone\n", "systemone"),
        ("- model_names: [auto]", "- model_names: [auto]\n    api: systemone", "systemone"),
    ],
)
def test_values_that_are_not_built_are_refused_by_name(old: str, new: str, shown: str) -> None:
    found = errors(edited((old, new)))
    assert len(found) == 1
    assert found[0].endswith(f'"{shown}" is not supported yet')


REFERENCES = {
    "provider model": (("model: large", "model: lareg"), [
        '41:20: recipes[0].decisions[0].modelRefs[0].model: no provider model is named "lareg";'
        ' did you mean "large"?']),
    "rule": (("name: kind\n              label", "name: kin\n              label"), [
        '36:21: recipes[0].decisions[0].rules.conditions[0].name: no systemone rule is named "kin";'
        ' did you mean "kind"?']),
    "label": (("label: code", "label: coda"), None),
    "recipe": (("recipe: default", "recipe: zzz"), [
        '48:13: entrypoints[0].recipe: no recipe is named "zzz"; known: default']),
    "projection": (("type: systemone\n              name: tools", "type: projection\n              name: tools"), [
        '39:21: recipes[0].decisions[0].rules.conditions[1].name: no projection output is named "tools";'
        " there is no projection output at all"]),
    "deployment": ((ON_TOOLS, ON_TOOLS + "          deployment: buildin\n"), [
        '19:23: recipes[0].signals.systemone[0].deployment: no deployment is named "buildin";'
        ' did you mean "builtin"?']),
    "default model": (("providers:\n", "providers:\n  defaults: {model: smal}\n"), [
        '7:21: providers.defaults.model: no provider model is named "smal"; did you mean "small"?']),
    "published twice": (("model_names: [auto]", "model_names: [auto, auto]"), [
        '47:25: entrypoints[0].model_names[1]: the name "auto" is already published']),
    "published as a model": (("model_names: [auto]", "model_names: [auto, small]"), [
        '47:25: entrypoints[0].model_names[1]: "small" is the name of a provider model;'
        " publish the recipe under another name"]),
    "duplicate rule": ((ON_KIND, ON_TOOLS), None),
    "duplicate decision": (("- name: rest", "- name: coding"), [
        '42:15: recipes[0].decisions[1].name: duplicate decision name "coding"']),
    "duplicate model": (("- name: large", "- name: small"), None),
    "twice in one decision": (("      - model: small", "      - model: small\n          - model: small"), None),
    "no model": (("        modelRefs:\n          - model: small\n", ""), None),
    "no entrypoint": (("entrypoints:\n  - model_names: [auto]\n    recipe: default\n    default: true\n", ""), None),
}  # fmt: skip


@pytest.mark.parametrize("case", REFERENCES, ids=list(REFERENCES))
def test_references(case: str) -> None:
    edit, expected = REFERENCES[case]
    found = errors(edited(edit))
    if expected is None:
        assert found
    else:
        assert found == expected


QUESTIONS = {
    "nothing to ask": ("question: {type: noul}", "needs something to ask"),
    "empty criteria": ("question: {type: noul, criteria: {}}", "needs something to ask"),
    "neither": ("state: user", "needs a question, or a preset"),
    "both": ("preset: jailbreak\n          question: {type: noul, instructions: x}", "cannot both be given"),
    "unknown preset": ("preset: jailbrake", 'has no preset "jailbrake"; did you mean "jailbreak"?'),
    "score without predicate": ("question: {type: score, instructions: x, levels: [a, b, c]}", "{gte: 1}"),
    "score out of range": (
        "question: {type: score, instructions: x, levels: [a, b, c]}\n          predicate: {gte: 2.5}",
        "must be from 0 to 2, not 2.5",
    ),
    "same levels": (
        "question: {type: score, instructions: x, levels: [a, a]}\n          predicate: {gte: 1}",
        'levels[1]: duplicate level "a"',
    ),
    "same choices": (
        "question: {type: choice, instructions: x, choices: [{key: a}, {key: a}]}",
        'duplicate choice "a"',
    ),
    "not a probability": (
        "question: {type: noul, instructions: x}\n          predicate: {gte: 70}",
        "from 0 to 1, not 70",
    ),
    "no bound": (
        "question: {type: noul, instructions: x}\n          predicate: {}",
        "at least one of gt, gte, lt, lte",
    ),
    "two lower bounds": (
        "question: {type: noul, instructions: x}\n          predicate: {gt: 0.5, gte: 0.5}",
        "cannot both",
    ),
    "impossible": (
        "question: {type: noul, instructions: x}\n          predicate: {gte: 0.9, lt: 0.1}",
        "predicate: no value can meet these bounds",
    ),
    "never above one": ("question: {type: noul, instructions: x}\n          predicate: {gt: 1}", "no value can meet"),
    "threshold of a noul": ("question: {type: noul, instructions: x}\n          threshold: 0.5", "not for noul"),
    "head of a set": (
        "question: {type: set, instructions: x, labels: [{key: a}]}\n          head: router",
        "head is for span questions, not for set",
    ),
    "two thresholds": (
        "threshold: 0.5\n          question: {type: set, instructions: x, labels: [{key: a}], threshold: 0.5}",
        "threshold stands on the rule and in the question",
    ),
    "span without span": (
        "question: {type: span, instructions: x, labels: [{key: a}]}",
        "question.type: the model of deployment builtin cannot answer span questions; it answers: choice, noul, score",
    ),
    "timeout": (
        "timeout_ms: 60001\n          question: {type: noul, instructions: x}",
        "must be at most 60000, not 60001",
    ),
    "on_unknown": ("on_unknown: match\n          preset: jailbreak", '"on_unknown" is not supported yet'),
}


@pytest.mark.parametrize("case", QUESTIONS, ids=list(QUESTIONS))
def test_questions(case: str) -> None:
    body, expected = QUESTIONS[case]
    old = "          question:\n            type: noul\n            instructions: Does it need a tool?\n"
    found = errors(edited((old, f"          {body}\n")))
    assert len(found) == 1, found
    assert expected in found[0]


CONDITIONS = {
    "label of a noul": ("{type: systemone, name: tools, label: yes}", "a noul question has no labels"),
    "choice without a label": (
        "{type: systemone, name: kind}",
        "needs a label, or a predicate somewhere; add label: code",
    ),
    "label in the name": ("{type: systemone, name: 'kind:code'}", "write name: kind and label: code"),
    "OR of nothing": ("{operator: OR, conditions: []}", "conditions: OR of nothing never matches"),
    "NOT of nothing": ("{operator: NOT, conditions: []}", "NOT takes exactly one condition, not 0"),
    "no operator": ("{conditions: []}", 'missing key "operator"'),
    "no conditions": ("{operator: AND}", 'missing key "conditions"'),
    "empty inside": ("{operator: AND, conditions: [{}]}", "an empty condition"),
    "policy inside": (
        "{operator: AND, conditions: [{type: systemone, name: tools, on_unknown: match}]}",
        "on_unknown belongs to the root of rules",
    ),
    "impossible": ("{type: systemone, name: tools, predicate: {lt: 0}}", "no value can meet these bounds"),
    "policy": ("{type: systemone, name: tools, on_unknown: fail}", "match, no_match, fail_request"),
    "on_error": ("{type: systemone, name: tools, on_error: fail_request}", "is not one of: match, no_match"),
}


@pytest.mark.parametrize("case", CONDITIONS, ids=list(CONDITIONS))
def test_conditions(case: str) -> None:
    rules, expected = CONDITIONS[case]
    found = errors(edited(("rules: {}", f"rules: {rules}")))
    assert len(found) == 1, found
    assert expected in found[0]
    assert found[0].startswith("43:")


def test_all_mistakes_at_once_and_no_follow_ups() -> None:
    """A rule that cannot be read is no reason to call its readers dangling, and hides nothing beside it."""
    found = errors(
        edited(
            ("type: noul", "type: noun"),
            ("model: large", "model: lareg"),
            ("default: true", "default: yes"),
            ("port: 8801", "port: many"),
        )
    )
    assert [line.split(": ")[1] for line in found] == [
        "listeners[0].port",
        "recipes[0].signals.systemone[0].question.type",
        "recipes[0].decisions[0].modelRefs[0].model",
        "entrypoints[0].default",
    ]


def test_paths_count_items_as_the_text_does() -> None:
    """The second item keeps its number when the first could not be read."""
    found = errors(edited(("port: 8801", "port: x\n  - {name: b, address: 127.0.0.1, port: 0}")))
    assert [line.split(": ")[1] for line in found] == ["listeners[0].port", "listeners[1].port"]


@pytest.mark.parametrize("text", ["version: v0.3\nrecipes: []\n", "routing: {}\n", "version: v0.5\nrouting: {}\n"])
def test_older_dialects_name_the_migration(text: str) -> None:
    found = errors(text)
    assert len(found) == 1
    assert "`pointsman config migrate c.yaml` turns it into v0.5" in found[0]


def test_versions() -> None:
    assert errors(edited(("version: v0.5\n", ""))) == ['1:1: missing key "version"; start with `version: v0.5`']
    assert errors(edited(("version: v0.5", "version: v9"))) == [
        '1:10: version: the dialect "v9" is not known; write version: v0.5'
    ]


def test_formats_that_no_client_can_be_served_in() -> None:
    text = edited(("- name: large\n", "- name: large\n      api_format: anthropic\n"))
    found = errors(text)
    assert len(found) == 1
    assert found[0].startswith("45:9: recipes[0].decisions[1].modelRefs: no client format is left")


def test_deployments() -> None:
    text = GOOD + (
        "global:\n  model_catalog:\n    deployments:\n"
        "      a: {provider: model_runtime}\n"
        "      b: {provider: systemone, endpoint: 'https://x/v1/systemone'}\n"
        "      c: {provider: model_runtime, endpoint: 'ftp://x'}\n"
        "      d: {provider: model_runtime, endpoint: 'unix:///x', device: cpu}\n"
        "      e: {provider: model_runtime, artifact: builtin, endpoint: 'unix:///x'}\n"
        "      f: {provider: model_runtime, artifact: builtin, device: rocm:0}\n"
        "      g: {provider: model_runtime, artifact: builtin, routing_view: {max_tokens: 100}}\n"
        "    system: {decision_model: zz}\n"
    )
    assert [line.split(": ", 2)[1:] for line in errors(text)] == [
        ["global.model_catalog.deployments.a", "needs artifact or endpoint; artifact: a model that the router starts;"
         " endpoint: one that already runs"],
        ["global.model_catalog.deployments.b", 'missing key "model"'],
        ["global.model_catalog.deployments.c.endpoint", '"ftp://x" is not the address of a runtime; write'
         " http://host:port, https://host:port or unix:///path"],
        ["global.model_catalog.deployments.d.device", "has no effect with endpoint; remove it: the model already runs"],
        ["global.model_catalog.deployments.e.endpoint", "artifact and endpoint cannot both be given; keep one of them"],
        ["global.model_catalog.deployments.f.device", '"rocm:0" must be auto, cpu or cuda:N (rocm, xpu and mps are not'
         " supported yet)"],
        ["global.model_catalog.deployments.g.routing_view.max_tokens", "100 must be from 256 to 1048576"],
        ["global.model_catalog.system.decision_model", 'no deployment is named "zz"; known: a, b, builtin, c, d, e, f,'
         " g"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("127.0.0.1:9101", "does not start with http:// or https://"),
        ("ftp://host/v1", "does not start with"),
        ("http://user:pass@host/v1", "keys belong in auth"),
        ("http:///v1", "no usable host"),
        ("http://host:99999/v1", "is not a URL"),
        ("http://host/v1?x=1", "query"),
    ],
)
def test_endpoints(endpoint: str, reason: str) -> None:
    found = errors(edited(("http://127.0.0.1:9101/v1", endpoint)))
    assert len(found) == 1
    assert reason in found[0]
    assert "such as http://127.0.0.1:8000/v1" in found[0]


def test_addresses_that_collide() -> None:
    found = errors(edited(("port: 8801", "port: 9190")))
    assert found == [
        "5:11: listeners[0].port: 127.0.0.1:9190 is the default address of global.services.metrics; choose another port"
    ]


def test_a_broken_artifact_is_reported_once_at_its_line() -> None:
    from router.config.load import load

    def broken(_: str) -> None:
        raise FileNotFoundError("no decision.json there")

    text = (
        GOOD
        + "global:\n  model_catalog:\n    deployments:\n      builtin: {provider: model_runtime, artifact: /nowhere}\n"
    )
    with pytest.raises(ConfigError) as caught:
        load(text, environ={}, describe=broken, serving=True)
    assert [problem.render() for problem in caught.value.problems if problem.severity == "error"] == [
        'config.yaml:53:52: global.model_catalog.deployments.builtin.artifact: the model "/nowhere" cannot be used:'
        " no decision.json there"
    ]


def test_warnings() -> None:
    text = edited(("            - type: systemone\n              name: tools\n", ""))
    assert [problem.render() for problem in read(text).warnings] == [
        'c.yaml:18:17: warning: recipes[0].signals.systemone[0].name: no decision or projection reads "tools";'
        " it is never asked"
    ]
    text = edited(("      systemone:\n", "      decision:\n"), ("- type: systemone", "- type: decision"))
    assert [(w.line, w.path) for w in read(text).warnings] == [
        (17, "recipes[0].signals.decision"),
        (35, "recipes[0].decisions[0].rules.conditions[0].type"),
    ]


@pytest.mark.parametrize("written", [r"a\nb", r"a\r\n\tb", r"a\x1b[0m", r"a\u2028b", r"\n" * 150])
def test_a_problem_stays_one_line_whatever_it_shows(written: str) -> None:
    (found,) = errors(edited(("name: coding", f'name: "{written}"')))
    assert found.isprintable()
    assert '"a\\' in found or '"\\n' in found
