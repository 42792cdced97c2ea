"""An explanation as a picture in the terminal: what was asked, what came of it, and each decision as a tree."""

from __future__ import annotations

from typing import Final, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from router.cli.contestants import candidates
from router.deciding.kleene import Truth
from router.deciding.projections import Range
from router.deciding.trace import DecisionTrace, TraceNode
from router.explaining.explanation import Explanation
from router.explaining.facts import RuleFact
from router.explaining.preview import because, bounds, nearest, rule_name, status
from router.questions import QuestionType, SimilarityAnswer

_MARKS: Final = {
    Truth.TRUE: "[green]✔ true[/]",
    Truth.FALSE: "[red]✘ false[/]",
    Truth.UNKNOWN: "[yellow]? unknown[/]",
}
_OF_MATCH: Final = {True: _MARKS[Truth.TRUE], False: _MARKS[Truth.FALSE], None: _MARKS[Truth.UNKNOWN]}
_SIGNS: Final = {"gt": ">", "gte": "≥", "lt": "<", "lte": "≤"}
_MOST_LABELS: Final = 3
_NARROWEST: Final = 100


def draw(explanation: Explanation, stream: TextIO) -> None:
    """Draw it on `stream`: in colours on a terminal, plain elsewhere."""
    console = Console(file=stream, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(file=stream, highlight=False, width=max(console.width, _NARROWEST), color_system=None)
    for part in (_rules(explanation), _projections(explanation), _decisions(explanation), candidates(explanation)):
        if part is not None:
            console.print(part)
    for line in _verdict(explanation):
        console.print(line)


def _rules(explanation: Explanation) -> Table | None:
    if not explanation.rules:
        return None
    table = Table(title="Rules", title_justify="left", title_style="bold")
    for name in ("rule", "asked", "read", "answer", "wanted", "result", "ms"):
        table.add_column(name, justify="right" if name == "ms" else "left", overflow="fold")
    for fact in explanation.rules:
        table.add_row(
            escape(fact.name),
            escape(_asked(fact)),
            escape(_read(fact)),
            escape(_answer(fact)),
            escape(_wanted(fact)),
            _result(fact),
            "" if fact.seconds is None else f"{fact.seconds * 1000:.1f}",
        )
    return table


def _asked(fact: RuleFact) -> str:
    if fact.deployment is None:
        return fact.family
    return f"{fact.deployment}: {fact.preset or fact.type} {fact.question[:8]}"


def _result(fact: RuleFact) -> str:
    own = _OF_MATCH[fact.reading.matched]
    return own if fact.effective is fact.reading.matched else f"{own}, by partition {_OF_MATCH[fact.effective]}"


def _read(fact: RuleFact) -> str:
    if fact.guard is not None and fact.guard.partial:
        return f"{fact.part}, {fact.coverage} windows"
    if not fact.part_bytes and fact.deployment is None:
        return fact.part
    if fact.read_bytes >= fact.part_bytes:
        return f"{fact.part}, {fact.part_bytes} B"
    return f"{fact.part}, {fact.read_bytes} of {fact.part_bytes} B"


def _answer(fact: RuleFact) -> str:
    reading = fact.reading
    if reading.matched is None:
        return str(fact.reason)
    if reading.by_policy:
        return "by policy"
    if isinstance(fact.answer, SimilarityAnswer):
        return f"{reading.values['']:.3f}, candidate {nearest(fact.answer)}"
    if fact.type in (None, QuestionType.NOUL, QuestionType.SCORE):
        return f"{reading.values['']:.4g}" if "" in reading.values else reading.label or ""
    best = sorted(((value, label) for label, value in reading.values.items() if label), reverse=True)
    return ", ".join(f"{label} {value:.3f}" for value, label in best[:_MOST_LABELS])


def _wanted(fact: RuleFact) -> str:
    return " and ".join(f"{_SIGNS[key]} {value:g}" for key, value in bounds(fact.predicate).items())


def _projections(explanation: Explanation) -> Table | None:
    projected = explanation.projected
    if not projected.scores:
        return None
    table = Table(title="Projections", title_justify="left", title_style="bold")
    for name in ("score", "value", "output", "result"):
        table.add_column(name)
    for score, value in projected.scores.items():
        outputs = [name for name, source in explanation.bands.items() if source == score]
        for index, name in enumerate(outputs or [""]):
            first = (escape(score), _range(value)) if index == 0 else ("", "")
            table.add_row(*first, escape(name), _MARKS[projected.outputs[name].truth] if name else "")
    return table


def _range(value: Range) -> str:
    return f"{value.low:.3f}" if value.known else f"{value.low:.3f} … {value.high:.3f}"


def _decisions(explanation: Explanation) -> Tree | None:
    if not explanation.decisions:
        return None
    root = Tree("[bold]Decisions[/]", guide_style="dim")
    for trace in explanation.decisions:
        _grow(root.add(_headline(trace)), trace.root)
    return root


def _headline(trace: DecisionTrace) -> str:
    name = f"[bold]{escape(trace.decision)}[/]"
    words = [name, _MARKS[trace.truth]]
    if trace.matched and trace.truth is Truth.TRUE:
        words.append(f"confidence {trace.confidence:.4f}")
    if trace.policy is not None:
        words.append(f"on_unknown: {trace.policy}")
    if trace.fails:
        words.append("[red]fails the request[/]")
    if trace.selected:
        words.append("[bold green]◀ selected[/]")
    return "  ".join(words)


def _grow(tree: Tree, node: TraceNode) -> None:
    if node.name is None:
        branch = tree.add(f"{node.node if node.children else 'always'}  {_MARKS[node.truth]}")
        for child in node.children:
            _grow(branch, child)
        return
    label = f":{node.label}" if node.label else ""
    words = [escape(f"{node.node} {rule_name(node)}{label}"), _MARKS[node.truth]]
    if node.value is not None:
        words.append(f"{node.value:.3f}")
    if node.reason is not None:
        words.append(f"[yellow]{node.reason}[/]")
    if node.on_error:
        words.append("by on_error")
    tree.add("  ".join(words))


def _verdict(explanation: Explanation) -> list[str]:
    decision = explanation.decision
    asked = escape(explanation.requested_model or "no model")
    recipe = f"recipe {escape(explanation.recipe)}" if explanation.recipe else "no recipe"
    goes = escape(explanation.model) if explanation.model else f"nowhere ({explanation.code or 'answered here'})"
    lines = [f"[bold]{asked}[/] → {recipe} → {escape(decision.name) if decision else 'no decision'} → [bold]{goes}[/]"]
    lines.append(f"{status(explanation)}: {because(explanation)}")
    otherwise = explanation.choice.otherwise
    if otherwise is not None:
        what = "the request would fail for" if otherwise.fails else "otherwise"
        lines.append(f"{what}: {escape(otherwise.name)}")
    times = explanation.times
    computing = f"{times.computing * 1000:.1f} ms computing rules and " if times.computing else ""
    waiting = f"{times.signals * 1000:.1f} ms waiting for answers"
    lines.append(f"{times.total * 1000:.1f} ms, of which {computing}{waiting}")
    if (waited := explanation.waited) is not None:
        lines.append(f"{waited.seconds * 1000:.1f} ms of them for room in decision models: {waited.ended}")
    return lines
