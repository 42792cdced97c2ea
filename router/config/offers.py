"""Which models the clients of a listener may name.

The router sees requests of all listeners alike, so where the listeners differ Envoy says by which one a request came.

Source: reference.md 2.2 (`listeners[].models`: exact names; another one is `model_not_allowed`, none `model_required`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

LISTENER_HEADER: Final = "pointsman-listener"
"""Where Envoy says by which listener a request came (`Listener.socket`)."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The public names that a listener's clients may use; `default` says whether they may name none."""

    names: frozenset[str]
    default: bool

    def takes(self, model: str | None) -> bool:
        """Whether a client may ask for `model` (None or empty: for no model by name)."""
        return model in self.names if model else self.default


class Offers:
    """Those of all listeners, by the listener's socket; None for a listener whose clients may name any model."""

    __slots__ = ("_by_socket", "strictest")

    def __init__(self, by_socket: Mapping[str, Offer | None]) -> None:
        self._by_socket = dict(by_socket)
        self.strictest = _strictest(by_socket.values())
        """What every listener offers; None where none of them says."""

    @property
    def differ(self) -> bool:
        """Whether it matters by which listener a request came."""
        return len(set(self._by_socket.values())) > 1

    def of(self, headers: Mapping[str, str]) -> Offer | None:
        """The offer to the client that sent `headers`; None: it may name any model.

        Who comes by a listener that nobody tells of, or an unknown one, may ask for what every listener offers: so it
        is for connections of the listeners before a reload, and without a gateway.
        """
        socket = headers.get(LISTENER_HEADER, "")
        return self._by_socket.get(socket, self.strictest)

    def agreed(self, model: str | None) -> bool | None:
        """Whether the clients of all listeners may ask for `model`; None where that depends on the listener."""
        said = {offer is None or offer.takes(model) for offer in self._by_socket.values()}
        return said.pop() if len(said) == 1 else None


def _strictest(offers: Iterable[Offer | None]) -> Offer | None:
    made = [offer for offer in offers if offer is not None]
    if not made:
        return None
    return Offer(frozenset.intersection(*(one.names for one in made)), all(one.default for one in made))
