"""What the compiler reads in full and requests cannot use yet.

Everything else about such a rule is checked first, so that its mistakes are told whether or not it would be served.
"""

from __future__ import annotations

from router.config.compiler.context import Context
from router.config.families import GUARDS
from router.config.model.globals import ModelCatalog
from router.config.model.root import Root

_HINT = "this version reads such rules, but does not ask them"


def refuse_unbuilt(context: Context, root: Root) -> None:
    """Report every rule that would read its whole input, and the windows of deployments."""
    for recipe in root.recipes:
        signals = recipe.signals
        if signals is None:
            continue
        for family in GUARDS:
            if getattr(signals, family):
                context.error(signals.at(family), f'"{family}" is not supported yet', _HINT, key=True)
        for rule in (*signals.systemone, *signals.decision):
            if rule.coverage == "full":
                context.error(rule.at("coverage"), '"full" is not supported yet', _HINT)
    catalog = root.global_.model_catalog if root.global_ else None
    for deployment in (catalog or ModelCatalog.model_validate({})).deployments.values():
        if deployment.scan_window is not None:
            context.error(deployment.at("scan_window"), '"scan_window" is not supported yet', _HINT, key=True)
