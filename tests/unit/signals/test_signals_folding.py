"""The cheap ways to fold a text say the same as the plain one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.signals.folding import fold, space

ASCII = st.text(st.characters(max_codepoint=127), max_size=60)
MIXED = st.text(st.sampled_from("aB \n\t\u00a0üÜß€中Σς\u3000\u0301"), max_size=60)


def plain(text: str) -> str:
    """Without the separators of records, which only `str.split` takes for white space in the middle of a text."""
    for character in "\x1c\x1d\x1e\x1f\x85":
        text = text.replace(character, " ")
    return " ".join(text.split())


@given(ASCII | MIXED | ASCII.map(lambda text: text + "é€"))
def test_folding_is_casefold_with_single_spaces(text: str) -> None:
    clean = "".join(character for character in text if character not in "\x1c\x1d\x1e\x1f\x85")
    assert fold(clean) == plain(clean).casefold()
    assert space(clean) == plain(clean)
