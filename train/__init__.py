"""How the decision model of `models/builtin-mini` is made: data, training, calibration, export, evaluation.

`make model` builds it, `make model-eval` prints the tables of its README. Nothing here is imported when Pointsman
serves.
"""
