"""Personal data by rules: what can be recognised by its form and proven by a check digit, and what only looks like it.

`recognise` finds e-mail and IP addresses, telephone numbers, cards, accounts, national numbers and secrets;
`harmless` finds identifiers that a model takes for numbers of persons. Both take time that grows with the text alone
(RE2), and count in code points of the text as it was given.
"""
