"""Projections: what sums read, in which order they can be computed, and the outputs that decisions read."""

from __future__ import annotations

from router.config.compiler.context import ANY_NUMBER, Context, Names, deprecated
from router.config.compiler.rules import check_label
from router.config.compiler.signals import Signals
from router.config.families import EMBEDDING, PROJECTION, SPELLINGS, rule_key
from router.config.model import projections as dialect
from router.config.projections import BandMapping, Output, Partition, Score, ScoreInput, ValueSource
from router.questions import Predicate

DEFAULT_SLOPE = 12.0
PARTITIONED = ("domain", EMBEDDING)
"""The families whose rules can compete, each among themselves."""
_OF_RULES: tuple[ValueSource, ...] = ("binary", "confidence", "raw")
_OF_PROJECTIONS: tuple[ValueSource, ...] = ("score", "confidence")


class Projections:
    """The compiler of one recipe's projections. `outputs` maps an output's name to its mapping's."""

    def __init__(self, context: Context, signals: Signals, section: dialect.Projections | None) -> None:
        self.context = context
        self.signals = signals
        self.read: set[str] = set()
        self.declared = section
        self.score_names: Names[dialect.Score] = Names("score")
        self.mapping_names: Names[dialect.Mapping] = Names("mapping")
        self.outputs: Names[str] = Names("projection output")
        self._declare(section)
        self.names_elsewhere = dict.fromkeys(self.score_names.known, "score")
        self.names_elsewhere.update(dict.fromkeys(self.mapping_names.known, "mapping"))

    def _declare(self, section: dialect.Projections | None) -> None:
        if section is None:
            return
        for score in section.scores:
            self.score_names.declare(self.context, score.at("name"), score.name, score)
        for mapping in section.mappings:
            self.mapping_names.declare(self.context, mapping.at("name"), mapping.name, mapping)
            for output in mapping.outputs:
                self.outputs.declare(self.context, output.at("name"), output.name, mapping.name)

    def compile(self) -> tuple[tuple[Score, ...], tuple[BandMapping, ...]]:
        """Scores and mappings, each computed after what it reads; what is wrong is reported and left out."""
        if self.declared is None:
            return (), ()
        mappings = {mapping.name: self._mapping(mapping) for mapping in self.declared.mappings}
        scores = {score.name: self._score(score) for score in self.declared.scores}
        ordered = [scores[name] for name in self._order() if name in scores]
        places = {score.name: place for place, score in enumerate(ordered) if score}
        bands = [mapping for mapping in mappings.values() if mapping]
        bands.sort(key=lambda mapping: places.get(mapping.source, 0))
        return tuple(score for score in ordered if score), tuple(bands)

    def partitions(self) -> tuple[Partition, ...]:
        """The partitions, each of declared rules of one family; what is wrong is reported and left out."""
        names: Names[Partition] = Names("partition")
        taken: dict[str, str] = {}
        for partition in self.declared.partitions if self.declared else ():
            resolved = self._partition(partition, taken)
            names.declare(self.context, partition.at("name"), partition.name, resolved)
        return tuple(names.known.values())

    def _partition(self, partition: dialect.Partition, taken: dict[str, str]) -> Partition | None:
        context = self.context
        before = len(context.document.problems)
        members: list[str] = []
        family = self._partitioned(partition)
        for index, name in enumerate(partition.members):
            path = partition.at_item("members", index)
            asked = self.signals.names(family).find(context, name, path)
            if asked is None:
                continue
            if asked.needs_label:
                hint = "give the rule mmlu_categories, or a threshold"
                context.error(path, f"{context.shown(name, path)} always matches, so it cannot compete", hint)
            if (other := taken.setdefault(asked.rule.name, partition.name)) != partition.name or name in members:
                context.error(path, f"{context.shown(name, path)} already is a member of {context.shown(other)}")
            members.append(name)
        if partition.default not in partition.members and not context.is_cut(partition.at("members")):
            context.error(partition.at("default"), "must be one of the members")
        soft = partition.semantics == "softmax_exclusive"
        if soft and partition.temperature is None and not context.is_cut(partition.at("temperature")):
            context.error(partition.at(), "softmax_exclusive needs a temperature", "for example 0.1", key=True)
        if not soft and partition.temperature is not None:
            hint = "it belongs to semantics: softmax_exclusive"
            context.error(partition.at("temperature"), "temperature has no effect with exclusive", hint, key=True)
        keys = tuple(rule_key(family, name) for name in partition.members)
        errors = any(problem.severity == "error" for problem in context.document.problems[before:])
        whole = len(members) == len(partition.members) and not errors
        default = rule_key(family, partition.default)
        return Partition(partition.name, keys, default, partition.temperature) if whole else None

    def _partitioned(self, partition: dialect.Partition) -> str:
        """The one family that the members are of: the one that knows most of the names, the first of equals."""
        known = {family: self.signals.names(family) for family in PARTITIONED}
        return max(PARTITIONED, key=lambda family: sum(name in known[family].declared for name in partition.members))

    def _score(self, score: dialect.Score) -> Score | None:
        inputs = [self._input(term) for term in score.inputs]
        whole = tuple(term for term in inputs if term is not None)
        return Score(score.name, whole) if len(whole) == len(inputs) else None

    def _input(self, term: dialect.Input) -> ScoreInput | None:
        context = self.context
        if term.type == "decision":
            deprecated(context, term.at("type"))
        family = PROJECTION if term.type == PROJECTION else SPELLINGS[term.type]
        allowed = _OF_PROJECTIONS if family == PROJECTION else _OF_RULES
        source = term.value_source or allowed[0]
        if source not in allowed:
            message = f"{context.shown(source)} cannot be read from a {family} input"
            context.error(term.at("value_source"), message, f"allowed: {', '.join(allowed)}")
            return None
        for key in ("match", "miss"):
            if term.has(key) and source != "binary":
                hint = "it belongs to value_source: binary"
                context.error(term.at(key), f"{key} has no effect with value_source: {source}", hint, key=True)
        found = self._projection(term, source) if family == PROJECTION else self._signal(family, term, source)
        if found is None:
            return None
        match, miss = (1.0 if term.match is None else term.match), (0.0 if term.miss is None else term.miss)
        return ScoreInput(family, *found, term.weight, source, match, miss)

    def _projection(self, term: dialect.Input, source: ValueSource) -> tuple[str, None] | None:
        path = term.at("name")
        if source == "score":
            found: object = self.score_names.find(self.context, term.name, path)
        elif term.name in self.names_elsewhere and term.name not in self.outputs.known:
            what = self.names_elsewhere[term.name]
            shown = self.context.shown(term.name, path)
            self.context.error(path, f"{shown} is a {what}; confidence is read from a mapping's output")
            return None
        else:
            found = self.outputs.find(self.context, term.name, path)
        return (term.name, None) if found is not None else None

    def _signal(self, family: str, term: dialect.Input, source: ValueSource) -> tuple[str, str | None] | None:
        path = term.at("name")
        name, colon, label = term.name.partition(":")
        self.read.add(rule_key(family, name))
        asked = self.signals.names(family).find(self.context, name, path)
        if asked is None:
            return None
        if colon and not check_label(self.context, asked, label, path):
            return None
        if not colon and asked.needs_label and source != "raw":
            hint = f"write name: {name}:LABEL, or value_source: raw"
            self.context.error(path, f"a choice has no match without a label for value_source: {source}", hint)
            return None
        return asked.rule.name, label if colon else None

    def _mapping(self, mapping: dialect.Mapping) -> BandMapping | None:
        context = self.context
        found = self.score_names.find(context, mapping.source, mapping.at("source"))
        if mapping.method == "multi_emit" and len(mapping.outputs) < 2 and not context.is_cut(mapping.at("outputs")):
            hint = "use threshold_bands for one output"
            context.error(mapping.at("outputs"), "multi_emit needs at least 2 outputs", hint, key=True)
        outputs: list[Output] = []
        for output in mapping.outputs:
            bounds: Predicate | None = context.predicate(output, ANY_NUMBER, empty=True)
            if bounds is not None:
                outputs.append(Output(output.name, bounds))
        for output in mapping.outputs[:-1]:
            unbounded = all(bound is None for bound in (output.gt, output.gte, output.lt, output.lte))
            if mapping.method == "threshold_bands" and unbounded and not context.is_cut(output.at()):
                context.warn(output.at(), "takes every score, so the outputs after it are never emitted")
        slope = mapping.calibration.slope if mapping.calibration else DEFAULT_SLOPE
        if found is None or len(outputs) != len(mapping.outputs):
            return None
        return BandMapping(mapping.name, mapping.source, mapping.method, slope, tuple(outputs))

    def _order(self) -> list[str]:
        """Score names so that every score comes after those it reads; cycles are reported."""
        order: list[str] = []
        state: dict[str, bool] = {}

        def visit(name: str, trail: tuple[str, ...]) -> None:
            score = self.score_names.known.get(name)
            if score is None or state.get(name):
                return
            if name in state:
                if name in trail:
                    circle = (*trail[trail.index(name) :], name)
                    cycle = " -> ".join(self.context.shown(part).strip('"') for part in circle)
                    self.context.error(score.at("inputs"), f"scores read each other in a circle: {cycle}", key=True)
                return
            state[name] = False
            for term in score.inputs:
                if (target := self._reads(term)) is not None:
                    visit(target, (*trail, name))
            state[name] = True
            order.append(name)

        for name in self.score_names.known:
            visit(name, ())
        return order

    def _reads(self, term: dialect.Input) -> str | None:
        """The score that an input depends on, directly or through a mapping's output."""
        if term.type != PROJECTION:
            return None
        if term.value_source in (None, "score"):
            return term.name
        mapping = self.mapping_names.known.get(self.outputs.known.get(term.name, ""))
        return mapping.source if mapping else None
