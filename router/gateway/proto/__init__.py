"""Envoy's external processing messages, generated from proto/ (see proto/README.md)."""
