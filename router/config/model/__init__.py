"""The v0.5 dialect as strict models: its keys, their types, and which of them are not built yet.

Shape only. What one part says about another (names, formats, what a model can answer) is in `router.config.compiler`.
"""
