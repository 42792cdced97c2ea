"""The questions of a stage: grouped per deployment, shared, sent with deadlines."""
