"""Pointsman: an Envoy external processor that routes LLM traffic by the answers of small decision models."""

__version__ = "0.1.0"
