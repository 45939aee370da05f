"""A schema registry that speaks Confluent's REST API and keeps its schemas in the topic `_schemas`, in Confluent's bytes.

`records.py` and `state.py` read the topic, `decisions.py` says what a request writes, `languages/` parses and compares schemas
(all pure). `topic.py` reads the topic and appends to it, `service.py` connects it all, `http.py` is the REST API.
"""
