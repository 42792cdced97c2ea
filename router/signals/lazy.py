"""Attributes that are worked out when they are first read.

`functools.cached_property` does the same behind a lock (until Python 3.12), at several times the cost; a request's
facts are read by one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):
    """A method without arguments as such an attribute. Its class needs a `__dict__`."""

    def __init__(self, method: Callable[[Any], T]) -> None:
        self._method = method
        self._name = method.__name__
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        value = instance.__dict__[self._name] = self._method(instance)
        return value
