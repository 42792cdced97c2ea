"""Signal families: what a rule reads from an answer or from a request."""
