"""Keys and values of topics as typed columns, by the schemas of a registry.

`options.py` has the options of `format("ottla")`, `reading.py` decodes in tasks, `writing.py` encodes. `languages.py` says what
columns a schema has, and reads and writes values. The registry is asked by the driver, and by each worker once for each schema.
"""
