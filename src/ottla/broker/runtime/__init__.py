"""Connects the pure state machines (quorum, controller, coordinators) to the log, the clock and the loop."""
