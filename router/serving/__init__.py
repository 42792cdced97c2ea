"""The router as processes: one that serves, the reload of its configuration, and the parent that also runs Envoy."""
