"""Metrics and logs; never a byte of a prompt."""

from router.observe.logs import configure_logging
from router.observe.metrics import Metrics

__all__ = ["Metrics", "configure_logging"]
