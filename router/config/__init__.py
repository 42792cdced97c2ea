"""YAML configuration: a strict model with places in every error, compiled into an immutable plan."""
