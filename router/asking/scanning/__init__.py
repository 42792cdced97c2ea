"""Guards as they are asked: what a recipe's guards want of which inputs (`stage`), and one request's reading of them in
windows beside the stage's other questions (`reading`).

Source: "Long inputs" (Guard rules read the whole input), `rulings.md` 12b-12d.
"""
