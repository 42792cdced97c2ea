"""Names for argparse types that mypy knows and the interpreter does not expose."""

import argparse

Verbs = argparse._SubParsersAction[argparse.ArgumentParser]
