"""Attacks at every place of long inputs, through Envoy: `python -m bench needle`."""
