"""The ext_proc server and its sans-IO phase machine; the Envoy configuration that belongs to it."""
