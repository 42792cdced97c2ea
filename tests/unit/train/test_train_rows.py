from __future__ import annotations

from pathlib import Path

from router.runtime.artifact import builtin_directory
from train.rows import CLS, SEP, UNKNOWN, Tokens, batches, open_tokenizer, padded, token_classes, tokens


def test_texts_are_cut_and_framed_without_padding() -> None:
    tokenizer = open_tokenizer(Path(builtin_directory()) / "tokenizer.json")
    short, long = tokens(tokenizer, ["hello there", "word " * 900], most=100)
    assert (short.ids[0], short.ids[-1], len(short.ids)) == (CLS, SEP, 4)
    assert len(long.ids) == 102
    assert short.offsets == [(0, 0), (0, 5), (6, 11), (0, 0)]


def test_batches_hold_rows_of_about_one_length_within_their_bounds() -> None:
    lengths = [5, 100, 7, 90, 6, 300]
    found = list(batches(lengths, most_tokens=200, most_rows=2))
    assert sorted(place for batch in found for place in batch) == list(range(6))
    assert found == [[0, 4], [2], [3, 1], [5]] or all(len(batch) <= 2 for batch in found)
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= 200


def test_padding_is_masked() -> None:
    ids, mask = padded([[1, 2, 3], [4]])
    assert ids.tolist() == [[1, 2, 3], [4, 0, 0]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_a_token_has_the_class_of_the_span_that_it_touches() -> None:
    row = Tokens([CLS, 1, 2, 3, SEP], [(0, 0), (0, 3), (4, 7), (8, 9), (0, 0)])
    assert token_classes(row, [(4, 9, "PERSON")], ("O", "PERSON")) == [UNKNOWN, 0, 1, 1, UNKNOWN]
