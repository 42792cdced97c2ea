"""`listeners[].models`: what a listener's clients may name, checked against the names that exist; and who should not
be able to name a model that a refusing recipe guards.

Source: reference.md 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from router.config.compiler.context import Context, Names
from router.config.model import listeners as dialect
from router.config.offers import Offer
from router.config.plan import Listener, ProviderModel, Recipe


def compile_offers(
    context: Context,
    written: Sequence[dialect.Listener],
    listeners: Sequence[Listener],
    entrypoints: Mapping[str, str],
    default_entrypoint: str | None,
    models: Names[ProviderModel],
) -> tuple[Listener, ...]:
    """`listeners` with their offers. `entrypoints` and `default_entrypoint` are as a `Plan` has them."""
    lists = {listener.name: listener for listener in reversed(written)}  # of two with one name the first counts
    if all(listener.models is None for listener in written):
        return tuple(listeners)
    public: Names[object] = Names("entrypoint or provider model")
    public.known = {**dict.fromkeys(entrypoints), **models.known}
    public.ghosts = models.ghosts
    public.open = models.open or context.is_cut(("entrypoints",))
    nameless = {name for name, recipe in entrypoints.items() if recipe == default_entrypoint}
    for listener in written:
        _check(context, listener, public)
    return tuple(
        listener if (names := lists[listener.name].models) is None else replace(listener, offer=_offer(names, nameless))
        for listener in listeners
    )


def _offer(names: Sequence[str], nameless: set[str]) -> Offer:
    return Offer(frozenset(names), not nameless.isdisjoint(names))


def _check(context: Context, listener: dialect.Listener, public: Names[object]) -> None:
    seen: set[str] = set()
    for index, name in enumerate(listener.models or ()):
        path = listener.at_item("models", index)
        if name in seen:
            context.error(path, f"{context.shown(name, path)} is listed twice", "remove it")
        seen.add(name)
        public.find(context, name, path)


def warn_of_ways_round(
    context: Context,
    written: Sequence[dialect.Listener],
    recipes: Mapping[str, Recipe],
    entrypoints: Mapping[str, str],
) -> None:
    """Warn of listeners whose clients can name a model that answers behind a decision which refuses.

    A listener that lists such a model by its name means it.
    """
    unbounded = [listener for listener in written if listener.models is None and not context.is_cut(listener.at())]
    guarded = _guarded(recipes, entrypoints) if unbounded else None
    if guarded is None:
        return
    decision, recipe, model = (context.shown(name) for name in guarded)
    names = ", ".join(dict.fromkeys(entrypoints))
    for listener in unbounded:
        message = f"a client that names the model {model} itself skips the decision {decision} of {recipe}"
        context.warn(listener.at(), message, f"add models: [{names}], what clients may name", key=True)


def _guarded(recipes: Mapping[str, Recipe], entrypoints: Mapping[str, str]) -> tuple[str, str, str] | None:
    """A decision that refuses, its recipe, and a model behind it; None where there is none."""
    for recipe in (recipes[name] for name in dict.fromkeys(entrypoints.values()) if name in recipes):
        behind = [ref.model for decision in recipe.decisions for ref in decision.model_refs]
        for decision in recipe.decisions:
            if decision.actions.fast_response is not None and behind:
                return decision.name, recipe.name, behind[0]
    return None
