"""HTTP/1.1 to one server, as calls to decision models need it: whole requests out, whole responses in, bounded.

    endpoint    where a server is and how a request to it begins
    reader      bytes to a response (sans-IO, over httptools), within limits
    connection  one connection, one exchange at a time
    pool        connections that are kept, and when another one is made

Why not a general client: its share of a decision was larger than that of all else around the model (see
`router.runtime.http`, the other end). Source: RFC 9110, RFC 9112.
"""
