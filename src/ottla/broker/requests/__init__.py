"""The request pipeline: what every request of every listener passes, stage by stage.

    frame → connection state → admission → fast path, or:
    header → descriptor → authorize → handler → refuse → throttle → encode → reply

`net/connection.py` has the first and the last stage, `pipeline.py` all between, in their order. What the stages use: `apis.py`
(the table of what is served), `authorization.py`, `throttle.py`, `scheduler.py` and `memory.py` (admission), `topics.py` (parts
of requests), `parked.py`, `refusals.py`. Handlers see `context.py`.
"""
