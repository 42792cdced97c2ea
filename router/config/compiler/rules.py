"""Conditions of decisions: do they refer to something, and can they ever hold?"""

from __future__ import annotations

from router.config.compiler.context import Context, Names, deprecated
from router.config.compiler.questions import Asked
from router.config.compiler.signals import Signals
from router.config.families import PROJECTION, SPELLINGS, rule_key, written_name
from router.config.model import decisions as dialect
from router.config.plan import Leaf, Node, Operator, Rule
from router.config.problems import Path, nearest
from router.questions import Predicate


class Rules:
    """The compiler of one recipe's rule trees. `read` collects the keys of the signal rules that they read."""

    def __init__(self, context: Context, signals: Signals, outputs: Names[str], elsewhere: dict[str, str]) -> None:
        self.context = context
        self.signals = signals
        self.outputs = outputs
        self.elsewhere = elsewhere
        self.read: set[str] = set()

    def compile(self, tree: dialect.LeafRule | dialect.NodeRule, *, root: bool = True) -> Rule | None:
        """The tree resolved, or None after reporting what is wrong with it."""
        if tree.on_unknown is not None and not root:
            hint = "move it beside the outermost operator, or use on_error on a condition"
            self.context.error(tree.at("on_unknown"), "on_unknown belongs to the root of rules", hint, key=True)
        return self._node(tree, root=root) if isinstance(tree, dialect.NodeRule) else self._leaf(tree)

    def _node(self, node: dialect.NodeRule, *, root: bool) -> Rule | None:
        if node.operator is None and node.conditions is None:
            if not root and not self.context.is_cut(node.at()):
                hint = "remove it, or write {operator: AND, conditions: []}"
                self.context.error(node.at(), "an empty condition", hint)
            return None if self.context.is_cut(node.at()) else Node(Operator.AND, ())
        for key in ("operator", "conditions"):
            self.context.need(node, key)
        children = [self.compile(child, root=False) for child in node.conditions or ()]
        if node.operator is None or node.conditions is None or self.context.is_cut(node.at("conditions")):
            return None
        operator = Operator(node.operator)
        if not self._right_number(node, operator, len(children)):
            return None
        whole = tuple(child for child in children if child is not None)
        return Node(operator, whole) if len(whole) == len(children) else None

    def _right_number(self, node: dialect.NodeRule, operator: Operator, count: int) -> bool:
        if operator is Operator.OR and count == 0:
            hint = "AND of nothing matches everything"
            self.context.error(node.at("conditions"), "OR of nothing never matches", hint, key=True)
        elif operator is Operator.NOT and count != 1:
            message = f"NOT takes exactly one condition, not {count}"
            self.context.error(node.at("conditions"), message, "put AND or OR inside it", key=True)
        else:
            return True
        return False

    def _leaf(self, leaf: dialect.LeafRule) -> Leaf | None:
        if leaf.type == "decision":
            deprecated(self.context, leaf.at("type"))
        if leaf.type == PROJECTION:
            return self._projection(leaf)
        family = SPELLINGS[leaf.type]
        self.read.add(rule_key(family, leaf.name))
        path = leaf.at("name")
        asked = find_rule(self.context, self.signals.names(family), leaf.name, path)
        if asked is None:
            return None
        good = leaf.label is None or check_label(self.context, asked, leaf.label, leaf.at("label"))
        predicate: Predicate | None = None
        if leaf.predicate is not None:
            predicate = self.context.predicate(leaf.predicate, asked.limits)
            good = good and predicate is not None
        bare = leaf.label is None and leaf.predicate is None
        if bare and asked.needs_label and not self.context.is_cut(leaf.at()):
            hint = f"add label: {asked.labels[0]}" if asked.labels else "add a label"
            self.context.error(leaf.at(), "a condition on a choice needs a label, or a predicate somewhere", hint)
            good = False
        return Leaf(family, asked.rule.name, leaf.label, predicate, leaf.on_error) if good else None

    def _projection(self, leaf: dialect.LeafRule) -> Leaf | None:
        good = True
        for key in ("label", "predicate"):
            if leaf.has(key):
                hint = "the bounds of the mapping's output decide"
                self.context.error(leaf.at(key), f"a projection condition takes no {key}", hint, key=True)
                good = False
        path = leaf.at("name")
        if leaf.name not in self.outputs.known and (what := self.elsewhere.get(leaf.name)):
            shown = self.context.shown(leaf.name, path)
            self.context.error(path, f"{shown} is a {what}; conditions read the outputs of mappings")
            return None
        found = self.outputs.find(self.context, leaf.name, path)
        return Leaf("projection", leaf.name, on_error=leaf.on_error) if found is not None and good else None


def find_rule(context: Context, signals: Names[Asked], name: str, path: Path) -> Asked | None:
    """The signal rule that a condition or input names."""
    rule, colon, label = name.partition(":")
    if colon and name not in signals.ghosts and rule in signals.known and path[-1] == "name":
        hint = f"write name: {rule} and label: {label}"
        context.error(path, "a condition names the rule and the label apart", hint)
        return None
    return signals.find(context, name, path)


def check_label(context: Context, asked: Asked, label: str, path: Path) -> bool:
    """Whether a label can occur in the answer; reports why not."""
    if not asked.labelled:
        what = f"a {asked.type} question" if asked.type else "a rule that asks no model"
        context.error(path, f"{what} has no labels", "remove the label")
        return False
    if asked.labels is None or label in asked.labels or context.is_unset(path):
        return True
    guess = nearest(label, asked.labels)
    hint = f"did you mean {context.shown(guess)}?" if guess else f"it has: {', '.join(asked.labels)}"
    context.error(path, f"{written_name(asked.rule.name)} has no label {context.shown(label, path)}", hint)
    return False
