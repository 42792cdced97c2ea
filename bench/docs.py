"""`python -m bench.docs NAME`: put the last measured result of a benchmark into docs/benchmarks.md.

The table stands between `<!-- bench NAME -->` and `<!-- end -->`, so that no number in the document was typed by hand.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from bench.lib.report import RESULTS, markdown

DOCUMENT = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def insert(text: str, name: str, table: str) -> str:
    """`text` with the part between the marks of `name` replaced; raises ValueError when the marks are missing."""
    mark = f"<!-- bench {name} -->"
    pattern = re.compile(re.escape(mark) + r".*?(?=<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"docs/benchmarks.md has no {mark} ... <!-- end -->")
    return pattern.sub(lambda found: f"{mark}\n\n{table}\n\n", text, count=1)


def main(name: str) -> None:
    """Insert `bench/results/NAME.json`; a quick run is refused, its few rounds are for a look."""
    document = json.loads((RESULTS / f"{name}.json").read_text())
    if document["quick"]:
        raise SystemExit(f"bench/results/{name}.json is from a quick run: run `make bench NAME={name}` first")
    DOCUMENT.write_text(insert(DOCUMENT.read_text(), name, markdown(document)))


if __name__ == "__main__":
    main(sys.argv[1])
