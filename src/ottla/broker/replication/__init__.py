"""Replication: followers fetch from leaders, leaders keep their followers' sessions and ask the controller for ISR changes."""
