"""Where the pure machines (quorum, controller) meet the log, the clock and the loop."""
