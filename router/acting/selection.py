"""Which candidate of a decision answers the request.

A candidate must speak the client's own format: requests are not translated between formats. Pure: chance and hashes are
given.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence

from router.config.candidates import ModelRef
from router.config.plan import ApiFormat, Decision, ProviderModel


def eligible(decision: Decision, models: Mapping[str, ProviderModel], wanted: ApiFormat) -> tuple[ModelRef, ...]:
    """The decision's candidates whose backends speak `wanted`, in their order; none means `no_eligible_model`.

    Every candidate is in `models`: the loader refuses a recipe that names another.
    """
    return tuple(ref for ref in decision.model_refs if models[ref.model].api_format is wanted)


def drawn(candidates: Sequence[ModelRef], draw: float) -> ModelRef:
    """A candidate by weight; `draw` is from 0 to below 1."""
    left = draw * math.fsum(ref.weight for ref in candidates)
    for ref in candidates:
        left -= ref.weight
        if left < 0:
            return ref
    return candidates[-1]


def drawn_for(candidates: Sequence[ModelRef], key: bytes) -> ModelRef:
    """A candidate by weight, always the same one for the same key, in every process.

    Rendezvous hashing: when candidates or weights change, only the share that must move does.
    """
    return max(candidates, key=lambda ref: _score(ref, key))


def _score(ref: ModelRef, key: bytes) -> float:
    digest = hashlib.blake2b(ref.model.encode(), key=key[:64], digest_size=8).digest()
    # Uniform, and never 0 or 1: of such variables, -weight / log(u) is the greatest in proportion to weight.
    return -ref.weight / math.log((int.from_bytes(digest, "big") + 1) / (2**64 + 2))
