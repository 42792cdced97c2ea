"""Training data, one module a kind; each gives `examples(seed, count)` and says in `COUNT` how many it is good for.

Text is out of packages (`sources`, named one by one in `train/SOURCES.md`) or of templates that were written for this
(`words/`). The same seed gives the same examples.
"""
