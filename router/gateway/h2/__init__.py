"""A purpose-built gRPC-over-HTTP/2 transport: what Envoy and health probes need, and nothing else."""
