"""The web console: pages over clusters, in a process of its own, on the clients.

`clusters.py` asks clusters and keeps what they said for a moment, `app.py` is the ASGI application with its checks, `pages/`
has a handler for each page: it returns plain data, which a template shows and `/api/…` gives as JSON.
"""
