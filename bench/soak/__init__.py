"""Whether the runtime and the client of the router stay as small as they were."""
