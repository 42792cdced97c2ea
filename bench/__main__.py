"""`python -m bench NAME [--quick]`, for people `make bench NAME=... [QUICK=1]`."""

from __future__ import annotations

import argparse
import importlib
import inspect
import signal
import sys
from pathlib import Path

from rich.console import Console

from bench.lib import report
from bench.lib.load import LoadError
from bench.lib.process import StartError


def names() -> list[str]:
    """Benchmarks that exist: folders beside this file with a `benchmark.py`."""
    return sorted(path.parent.name for path in Path(__file__).parent.glob("*/benchmark.py"))


def main(arguments: list[str] | None = None) -> int:
    """Run one benchmark; the exit status says whether it could be measured, not whether targets were met."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", choices=names())
    parser.add_argument("--quick", action="store_true", help="under 50 s, fewer repeats")
    parser.add_argument("--device", help="cpu, cuda or cuda:N, for benchmarks of models")
    options = parser.parse_args(arguments)
    # Without this a SIGTERM would leave the started processes behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    console = Console()
    on = report.machine()
    run = importlib.import_module(f"bench.{options.name}.benchmark").run
    more = {} if options.device is None else {"device": options.device}
    if more and "device" not in inspect.signature(run).parameters:
        parser.error(f"bench {options.name} has no --device")
    try:
        result = run(quick=options.quick, console=console, **more)
    except (StartError, LoadError, ProcessLookupError) as error:
        console.print(f"bench {options.name}: {error}", style="red", markup=False)
        return 1
    report.show(result, on, console)
    console.print(f"written to {report.write(result, on)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
