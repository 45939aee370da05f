"""The Admin client: one function for each thing that Kafka's Admin does, and two faces over them.

A file has one subject: its requests, and the types of its arguments and results. `core.py` makes methods of the functions,
`aio.py` and `sync.py` are the faces. Share groups and streams groups are left out so far: they get files of their own here.
"""
