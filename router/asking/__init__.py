"""The questions of a stage: grouped per deployment, shared, sent with deadlines.

Read in this order: `plan` (which questions travel in which call), `render` and `parse` (how they and their answers are
written), `client` (bytes over HTTP), `asker` (a whole stage), then `placement`, `restarts`, `supervise` and `fleet`
(the processes and clients behind it), `cards` and `probe` (what a server says of itself). `errors` has the exceptions.
"""
