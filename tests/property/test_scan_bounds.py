"""Any text, any view: within bounds, whole code points, a true head and a true tail."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.sizes import RoutingView
from router.scan.view import routing_view

TEXT = st.text(st.sampled_from("ab \n\r\u00e9\u0301\u4e2d\u200d\U0001f600\U0001f3fd"), min_size=0, max_size=600)


@settings(max_examples=300, deadline=None)
@given(TEXT, st.integers(0, 900), st.floats(0, 1))
def test_bounds_and_sides(text: str, size: int, share: float) -> None:
    view = RoutingView(size, share)
    seen = routing_view(text, view)
    length = len(text.encode())
    if length <= size:
        assert seen is text
        return
    assert len(seen.encode()) <= size
    assert routing_view(seen, view) is seen
    found = re.search(r"\n\[\.\.\. (\d+) tokens omitted \.\.\.\]\n", seen)
    if found is None:
        assert text.endswith(seen)
        return
    head, tail = seen[: found.start()], seen[found.end() :]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert int(found[1]) == -(-(length - len(head.encode()) - len(tail.encode())) // 4)
