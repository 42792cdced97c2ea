"""Metrics and logs; never a byte of a prompt."""
