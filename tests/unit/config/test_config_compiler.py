"""What a plan holds: defaults, order, and only what is read."""

from __future__ import annotations

import pytest

from router.config.load import load
from router.config.plan import ApiFormat, Auth, Backend, Leaf, Node, Operator, Service, StateKind
from router.questions import Capabilities, Option, Predicate, QuestionType, SpanHead
from tests.support.config_samples import CAN, GOOD, edited, errors, read

TAIL = "entrypoints:\n"


def catalog(*lines: str) -> str:
    return GOOD + "global:\n  model_catalog:\n" + "".join(f"    {line}\n" for line in lines)


def test_defaults() -> None:
    plan = read(GOOD).plan
    assert plan.services.extproc == Service("127.0.0.1", 50051)
    assert plan.services.metrics == Service("127.0.0.1", 9190)
    assert plan.services.management == Service("127.0.0.1", 8080)
    assert (plan.max_body_bytes, plan.signal_timeout_ms) == (16 * 1024 * 1024, 0)
    assert (plan.streamed_body, plan.clear_route_cache) == (False, True)
    assert plan.entrypoints == {"auto": "default"}
    assert plan.default_entrypoint == "default"
    assert plan.default_model is None
    assert plan.listeners[0].idle_timeout_s == 1200.0
    assert not plan.listeners[0].refuse_unknown_paths


def test_explicit_false_and_zero_are_kept() -> None:
    text = GOOD + (
        "global:\n  router: {clear_route_cache: false, streamed_body: {enabled: true}, max_body_bytes: 65536}\n"
        "  services: {metrics: {port: 9999}}\n  model_catalog: {signal_timeout_ms: 500}\n"
    )
    plan = read(edited(("default: true", "default: false"), text=text)).plan
    assert (plan.clear_route_cache, plan.streamed_body, plan.max_body_bytes) == (False, True, 65536)
    assert plan.default_entrypoint is None
    assert plan.services.metrics == Service("127.0.0.1", 9999)
    assert plan.signal_timeout_ms == 500


def test_backends() -> None:
    text = edited(
        ("endpoint: https://llm.example.com", "endpoint: https://llm.example.com/api/v1/\n          weight: 3\n"
         "          auth: {api_key_env: KEY}"),
        ("- name: large\n", "- name: large\n      api_format: openai\n      provider_model_id: big-1\n"),
    )  # fmt: skip
    plan = read(text).plan
    assert plan.models["small"].backends == (Backend("http", "127.0.0.1", 9101, "/v1", 1, None),)
    large = plan.models["large"]
    assert (large.api_format, large.provider_model_id) == (ApiFormat.CHAT, "big-1")
    assert large.backends == (Backend("https", "llm.example.com", 443, "/api/v1", 3, Auth(env="KEY")),)


def test_rules_and_their_defaults() -> None:
    recipe = read(GOOD).plan.recipes["default"]
    tools, kind = recipe.questions
    assert (tools.name, tools.deployment, tools.state, tools.timeout_ms) == ("tools", "builtin", StateKind.USER, 1000)
    assert tools.predicate == Predicate(gte=0.5)
    assert kind.predicate is None
    assert kind.question.options == (Option("code"), Option("math"))
    coding, rest = recipe.decisions
    assert coding.rule == Node(Operator.AND, (Leaf("systemone", "kind", "code"), Leaf("systemone", "tools")))
    assert (coding.on_unknown, coding.order, rest.order) == ("no_match", 0, 1)
    assert rest.catch_all


def test_unread_rules_are_not_asked_and_their_models_not_started() -> None:
    text = edited(("            - type: systemone\n              name: tools\n", ""))
    assert [question.name for question in read(text).plan.recipes["default"].questions] == ["kind"]
    text = edited(("rules:\n          operator: AND\n          conditions:\n            - type: systemone\n"
                   "              name: kind\n              label: code\n            - type: systemone\n"
                   "              name: tools\n", "rules: {}\n"))  # fmt: skip
    loaded = read(text)
    assert loaded.plan.deployments == {}
    assert "never selected" in loaded.warnings[-1].message


def test_deployments_and_views() -> None:
    text = catalog(
        "deployments:",
        "  far: {provider: model_runtime, endpoint: 'unix:///run/x.sock', timeout_ms: 250, served_name: m}",
        "  near: {provider: model_runtime, artifact: ./model, device: 'cuda:1', routing_view: {max_tokens: 300}}",
        "system: {decision_model: {deployment: near}}",
    )
    text = edited(("- name: tools\n", "- name: tools\n          deployment: far\n"), text=text)
    plan = read(text).plan
    far, near = plan.deployments["far"], plan.deployments["near"]
    assert (far.endpoint, far.served_name, far.capabilities) == ("unix:///run/x.sock", "m", None)
    assert far.view.max_bytes == 4 * 8192  # nobody knows what it reads
    assert (near.artifact, near.device, near.capabilities) == ("./model", "cuda:1", CAN)
    assert near.view.max_bytes == 1200
    assert [question.timeout_ms for question in plan.recipes["default"].questions] == [250, 1000]


@pytest.mark.parametrize(("readable", "expected"), [(32_768, 31_744), (8_192, 7_168), (512, 256), (None, 32_768)])
def test_a_view_never_overruns_the_model(readable: int | None, expected: int) -> None:
    can = Capabilities(CAN.question_types, max_input_tokens=readable)
    plan = load(GOOD, environ={}, describe=lambda _: can, serving=True).plan
    assert plan.deployments["builtin"].view.max_bytes == expected


def test_presets() -> None:
    old = "          question:\n            type: noul\n            instructions: Does it need a tool?\n"
    plan = read(edited((old, "          preset: jailbreak\n          predicate: {gte: 0.9}\n"))).plan
    rule = plan.recipes["default"].questions[0]
    assert (rule.question.type, rule.question.preset) == (QuestionType.NOUL, "jailbreak")
    assert rule.question.instructions is None
    assert rule.predicate == Predicate(gte=0.9)


def test_labels_of_a_preset_come_from_the_model() -> None:
    old = "            - type: systemone\n              name: tools\n"
    text = edited((old, old + "              label: hrd\n"),
                  ("          question:\n            type: noul\n            instructions: Does it need a tool?\n",
                   "          preset: complexity\n"))  # fmt: skip
    assert errors(text) == [
        '38:22: recipes[0].decisions[0].rules.conditions[1].label: tools has no label "hrd"; did you mean "hard"?'
    ]


def test_a_model_that_nobody_described_is_trusted() -> None:
    text = catalog(
        "deployments: {far: {provider: model_runtime, endpoint: 'http://h:1'}}", "system: {decision_model: far}"
    )
    span = "question: {type: span, instructions: x, labels: [{key: a}], threshold: 0.2, head: broad}"
    old = "question:\n            type: noul\n            instructions: Does it need a tool?"
    question = read(edited((old, span), text=text)).plan.recipes["default"].questions[0].question
    assert (question.type, question.threshold, question.head) == (QuestionType.SPAN, 0.2, SpanHead.BROAD)


def test_a_set_is_composed_where_the_model_has_none() -> None:
    old = "question:\n            type: noul\n            instructions: Does it need a tool?"
    text = edited((old, "question: {type: set, instructions: x, labels: [{key: a}]}\n          threshold: 0"))
    question = read(text).plan.recipes["default"].questions[0].question
    assert (question.type, question.threshold) == (QuestionType.SET, 0.0)


def test_criteria_of_a_noul() -> None:
    old = "instructions: Does it need a tool?"
    text = edited((old, "criteria: {true: it calls a tool, false: it only talks}"))
    options = read(text).plan.recipes["default"].questions[0].question.options
    assert options == (Option("true", "it calls a tool"), Option("false", "it only talks"))


def projected(scores: str, mappings: str = "[]") -> str:
    section = f"    projections:\n      scores: {scores}\n      mappings: {mappings}\n    decisions:\n"
    return edited(("    decisions:\n", section))


def test_projections() -> None:
    text = projected(
        "[{name: b, method: weighted_sum, inputs: [{type: projection, name: a, weight: 2}]},"
        " {name: a, method: weighted_sum, inputs: [{type: systemone, name: 'kind:code', weight: 0.5, match: 3},"
        " {type: systemone, name: tools, weight: 1, value_source: raw}]}]",
        "[{name: m, source: b, method: multi_emit, outputs: [{name: x, gte: 1}, {name: y, lt: 1}],"
        " calibration: {slope: 4}}]",
    )
    recipe = read(text).plan.recipes["default"]
    assert [score.name for score in recipe.scores] == ["a", "b"]
    first, second = recipe.scores[0].inputs
    assert (first.name, first.key, first.source, first.match, first.miss) == ("kind", "code", "binary", 3.0, 0.0)
    assert (second.name, second.key, second.source) == ("tools", None, "raw")
    assert recipe.scores[1].inputs[0].source == "score"
    assert (recipe.mappings[0].method, recipe.mappings[0].slope) == ("multi_emit", 4.0)
    assert [output.name for output in recipe.mappings[0].outputs] == ["x", "y"]


def term(body: str) -> str:
    return f"[{{name: a, method: weighted_sum, inputs: [{{{body}}}]}}]"


@pytest.mark.parametrize(
    ("scores", "mappings", "expected"),
    [
        (term("type: projection, name: a, weight: 1"), "[]", "scores read each other in a circle: a -> a"),
        (
            term("type: projection, name: o, value_source: confidence, weight: 1"),
            "[{name: m, source: a, outputs: [{name: o, gte: 1}]}]",
            "in a circle: a -> a",
        ),
        (term("type: systemone, name: 'kind:x', weight: 1"), "[]", 'kind has no label "x"'),
        (term("type: systemone, name: 'tools:x', weight: 1"), "[]", "a noul question has no labels"),
        (term("type: systemone, name: kind, weight: 1"), "[]", "a choice has no match without a label"),
        (term("type: systemone, name: tols, weight: 1"), "[]", 'did you mean "tools"?'),
        (term("type: systemone, name: tools, weight: .inf"), "[]", "must be a finite number"),
        (
            term("type: systemone, name: tools, weight: 1, value_source: score"),
            "[]",
            "allowed: binary, confidence, raw",
        ),
        (term("type: systemone, name: tools, weight: 1, value_source: raw, match: 1"), "[]", "match has no effect"),
        (term("type: kb, name: tools, weight: 1"), "[]", '"kb" is not supported yet'),
        ("[]", "[{name: m, source: zz, outputs: [{name: o, gte: 1}]}]", 'no score is named "zz"'),
        (
            term("type: systemone, name: tools, weight: 1"),
            "[{name: m, source: a, method: multi_emit, outputs: [{name: o, gte: 1}]}]",
            "multi_emit needs at least 2 outputs",
        ),
        (
            term("type: systemone, name: tools, weight: 1"),
            "[{name: m, source: a, outputs: [{name: o, gte: 1}, {name: o, lt: 1}]}]",
            'duplicate projection output name "o"',
        ),
        (
            term("type: systemone, name: tools, weight: 1"),
            "[{name: m, source: a, outputs: [{name: o, gte: 1, lt: 1}]}]",
            "no value can meet these bounds",
        ),
    ],
)
def test_projections_that_make_no_sense(scores: str, mappings: str, expected: str) -> None:
    found = errors(projected(scores, mappings))
    assert len(found) == 1, found
    assert expected in found[0]


def test_a_cycle_is_named() -> None:
    scores = ("[{name: a, method: weighted_sum, inputs: [{type: projection, name: b, weight: 1}]},"
              " {name: b, method: weighted_sum, inputs: [{type: projection, name: a, weight: 1}]}]")  # fmt: skip
    found = errors(projected(scores))
    assert len(found) == 1
    assert "a -> b -> a" in found[0]


def test_a_condition_on_a_score_says_what_to_read() -> None:
    text = projected(term("type: systemone, name: tools, weight: 1"))
    found = errors(edited(("rules: {}", "rules: {type: projection, name: a}"), text=text))
    assert len(found) == 1
    assert '"a" is a score; conditions read the outputs of mappings' in found[0]


def test_a_default_model_does_not_count_behind_a_catch_all() -> None:
    anthropic = ("- name: small\n", "- name: small\n      api_format: anthropic\n")
    other = ("- name: large\n", "- name: large\n      api_format: anthropic\n")
    spare = ("providers:\n  models:\n", "providers:\n  defaults: {model: spare}\n  models:\n    - name: spare\n"
             "      backend_refs: [{endpoint: 'http://h'}]\n")  # fmt: skip
    text = edited(anthropic, other, spare)
    assert errors(text) == []
    found = errors(edited(("rules: {}", "rules: {type: systemone, name: tools}"), text=text))
    assert len(found) == 1
    assert "the default model speaks openai" in found[0]


def test_what_nothing_uses_is_warned_about() -> None:
    text = catalog("deployments: {idle: {provider: model_runtime, artifact: /nowhere}}")
    spare = "  - name: spare\n    decisions: [{name: d, rules: {}, modelRefs: [{model: small}]}]\n"
    text = edited((TAIL, spare + TAIL), text=text)
    assert [(warning.path, warning.message, warning.hint) for warning in read(text).warnings] == [
        ("recipes[1].name", 'no entrypoint publishes "spare"', "it never gets a request"),
        (
            "global.model_catalog.deployments.idle",
            "no rule that is asked uses this deployment",
            "it is not started",
        ),
    ]
