"""HTTP/1.1 as the runtime speaks it: whole requests in, whole responses out, and as little as can be around them.

    message     a request, a response, and the response's bytes
    reader      bytes to requests (sans-IO, over httptools), within limits
    routes      which handler a request is for
    connection  one client: its requests in order, its time limits, its end
    listener    a socket with its connections, and how serving them ends

Why not a framework: at the size of a decision (a forward pass of some milliseconds, between which the caches go cold) a
general server takes as long as tokenising does. Bodies are small and bounded and answers are whole, so nothing is
streamed, and one request is one task. Source: RFC 9110, RFC 9112.
"""
