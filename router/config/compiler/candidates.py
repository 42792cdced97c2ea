"""The candidates of a decision, and how one of them is picked."""

from __future__ import annotations

from router.config.candidates import ModelRef, Reasoning, Switch
from router.config.compiler.catalogue import Catalogue
from router.config.compiler.context import Context, Names, deprecated
from router.config.compiler.measures import factor_rule, latency_rule
from router.config.compiler.waits import wait_ms
from router.config.deployments import Deployment
from router.config.model import decisions as dialect
from router.config.model.providers import Defaults, Providers
from router.config.model.providers import ProviderModel as WrittenModel
from router.config.model.selectors import SystemoneSelector
from router.config.plan import ApiFormat, ProviderModel, QuestionRule, Selector, StateKind
from router.config.problems import Path
from router.questions import Option, Question, QuestionType

SELECTOR = "selector"
"""The name of a selector's question among the answers."""


class Candidates:
    """The compiler of `modelRefs` and `algorithm`, for every recipe of a document."""

    def __init__(
        self, context: Context, catalogue: Catalogue, models: Names[ProviderModel], providers: Providers | None
    ) -> None:
        self.context = context
        self.catalogue = catalogue
        self.models = models
        self.written = {model.name: model for model in (providers.models if providers else ())}
        self.defaults = (providers.defaults if providers else None) or Defaults.model_validate({})
        self.switches = self._switches()

    def compile(self, decision: dialect.Decision) -> tuple[tuple[ModelRef, ...], Selector]:
        """The candidates, none after reporting what is wrong with them, and the way to pick one."""
        refs: list[ModelRef] = []
        seen: set[str] = set()
        for ref in decision.modelRefs or ():
            path = ref.at("model")
            if ref.model in seen:
                self.context.error(path, f"the model {self.context.shown(ref.model, path)} is listed twice")
            seen.add(ref.model)
            model = self.models.find(self.context, ref.model, path)
            reasoning = self._reasoning(ref)
            if model is not None:
                refs.append(ModelRef(ref.model, ref.weight or 1.0, ref.lora_name, reasoning))
        whole = len(refs) == len(decision.modelRefs or ())
        return tuple(refs) if whole else (), self._selector(decision)

    # How one is picked.

    def _selector(self, decision: dialect.Decision) -> Selector:
        weighted = [ref for ref in decision.modelRefs or () if ref.weight is not None]
        algorithm = decision.algorithm
        if algorithm is None:
            return Selector("weighted" if weighted else "static")
        if weighted and algorithm.type != "weighted" and not self.context.is_cut(algorithm.at("type")):
            message = f"weights mean nothing to the algorithm {algorithm.type}"
            self.context.error(weighted[0].at("weight"), message, "remove them, or write type: weighted", key=True)
        self._check_settings(algorithm)
        sticky = algorithm.session_affinity is not False
        if algorithm.type in ("systemone", "decision"):
            return Selector("systemone", self._question(decision, algorithm), sticky)
        if algorithm.type == "latency_aware":
            self._check_choice(decision, algorithm)
            return Selector("latency_aware", None, sticky, latency_rule(algorithm.latency_aware))
        if algorithm.type == "multi_factor":
            self._check_choice(decision, algorithm)
            models = [
                self.models.known[ref.model] for ref in decision.modelRefs or () if ref.model in self.models.known
            ]
            return Selector("multi_factor", None, sticky, factor_rule(self.context, algorithm, models))
        return Selector("weighted" if algorithm.type == "weighted" else "static", None, sticky)

    def _check_settings(self, algorithm: dialect.Algorithm) -> None:
        """Settings that the algorithm does not have, and older names."""
        for key in ("systemone", "decision", "latency_aware", "multi_factor"):
            if getattr(algorithm, key) is not None and algorithm.type != key:
                hint = f"write type: {key}, or remove it"
                self.context.error(algorithm.at(key), f"the algorithm {algorithm.type} has no {key}", hint, key=True)
        if algorithm.type == "decision":
            deprecated(self.context, algorithm.at("type"))
        if algorithm.type == "static" and algorithm.has("session_affinity"):
            path = algorithm.at("session_affinity")
            self.context.error(path, "static always picks the same candidate", "remove it", key=True)

    def _check_choice(self, decision: dialect.Decision, algorithm: dialect.Algorithm) -> None:
        names = {ref.model for ref in decision.modelRefs or ()}
        if len(names) < 2 and not self.context.is_cut(decision.at("modelRefs")):
            hint = "add one, or remove algorithm"
            self.context.error(algorithm.at("type"), "a selector needs at least two candidates", hint)

    def _question(self, decision: dialect.Decision, algorithm: dialect.Algorithm) -> QuestionRule | None:
        """The choice between the candidates, or None after reporting what is wrong with it."""
        settings = algorithm.systemone or algorithm.decision or SystemoneSelector.model_validate({})
        path = settings.at("deployment") if settings.deployment is not None else algorithm.at("type")
        names = list(dict.fromkeys(ref.model for ref in decision.modelRefs or ()))
        self._check_choice(decision, algorithm)
        for name in settings.candidates:
            if name not in names:
                message = f"{self.context.shown(name)} is not among the decision's modelRefs"
                self.context.error(settings.at("candidates", name), message, f"they are: {', '.join(names)}", key=True)
        deployment = self.catalogue.find(settings.deployment, path)
        if deployment is None:
            return None
        self._check_capability(deployment, len(names), path)
        options = tuple(Option(name, settings.candidates.get(name) or self._description(name)) for name in names)
        question = Question(QuestionType.CHOICE, settings.instructions, options)
        timeout_ms = wait_ms(self.context, settings, deployment)
        return QuestionRule(SELECTOR, deployment.name, question, StateKind.USER, None, timeout_ms)

    def _check_capability(self, deployment: Deployment, options: int, path: Path) -> None:
        can = deployment.capabilities
        if can is None:
            return
        if QuestionType.CHOICE not in can.question_types:
            message = f"the model of deployment {deployment.name} cannot answer choice questions"
            self.context.error(path, message, "name another deployment")
        elif options > can.max_options:
            message = f"the model of deployment {deployment.name} takes at most {can.max_options} choices"
            self.context.error(path, f"{message}, not {options}")

    def _description(self, name: str) -> str | None:
        return self.written[name].description if name in self.written else None

    # How a candidate thinks.

    def _switches(self) -> dict[str, Switch]:
        found: dict[str, Switch] = {}
        for name, family in self.defaults.reasoning_families.items():
            parameter = family.parameter or {"reasoning_effort": "reasoning_effort"}.get(family.type)
            if parameter is None:
                if not self.context.is_cut(family.at("parameter")):
                    hint = "write the template's argument, such as parameter: enable_thinking"
                    self.context.error(family.at(), 'missing key "parameter"', hint, key=True)
            else:
                found[name] = Switch(family.type, parameter)
        for model in self.written.values():
            self._check_family(model)
        return found

    def _check_family(self, model: WrittenModel) -> None:
        if model.reasoning_family is None:
            return
        path = model.at("reasoning_family")
        families: Names[Switch] = Names("reasoning family")
        families.ghosts.update(self.defaults.reasoning_families)
        families.open = self.context.is_cut(("providers", "defaults", "reasoning_families"))
        families.find(self.context, model.reasoning_family, path)
        if ApiFormat(model.api_format) is not ApiFormat.CHAT:
            message = f"a family is for models that speak openai; {model.api_format} has a place of its own"
            self.context.error(path, message, "remove it", key=True)

    def _reasoning(self, ref: dialect.ModelRef) -> Reasoning | None:
        if ref.use_reasoning is None and ref.reasoning_effort is None:
            return None
        on = ref.use_reasoning if ref.use_reasoning is not None else ref.reasoning_effort != "none"
        if ref.reasoning_effort is not None and on == (ref.reasoning_effort == "none"):
            message = f"use_reasoning: {str(on).lower()} contradicts reasoning_effort: {ref.reasoning_effort}"
            self.context.error(ref.at("reasoning_effort"), message, "keep one of them", key=True)
        family = self.written[ref.model].reasoning_family if ref.model in self.written else None
        effort = ref.reasoning_effort or self.defaults.default_reasoning_effort
        return Reasoning(on, effort if on else None, self.switches.get(family) if family else None)
