"""The embedded decision model: its size, its speed beside its bare encoder, and two public suites: `bench model`."""
