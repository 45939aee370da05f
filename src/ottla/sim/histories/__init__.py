"""Histories of clients, and checks over them: Jepsen's checks of Kafka, for real processes and for the simulator alike.

A history is a list of what clients did and saw, with times of one clock (`history.py`). Checks are pure functions of a history
and return findings; `checks.py` runs them all. `python -m ottla.sim.histories FILE` checks a history that was written down.
"""
