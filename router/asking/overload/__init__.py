"""Waiting for a decision model that has no room, without making it worse.

    a call comes back `overloaded`
        │                                                           ┌─────────── one per model and host ───────────┐
        ▼                 Sit, Rise                                 │                                              │
      Wait  ──────────────────────────────▶  Member ──messages──▶ Broker ──▶ Gate: whose round may ask, and when   │
     (one a request: its rounds)  ◀────────  (one a process)  ◀──          └──────────────────────────────────────┘
        │                    Turn                      Answered, Refused: what every call to the model came to
        ▼
      Ask, Settled

`wait` knows the rounds of one request and nothing of others; `gate` knows one model and nothing of requests. Between
them go the messages of `messages`, which fit a call in one process as well as a socket between several: where several
processes serve on one host, the `Broker` lives in one of them, because a gate for each would multiply what a model that
has no room is asked. All of it is without clock, chance or transport; whoever drives it brings those.

Source: "Performance and cost" (When the decision model is overloaded).
"""
