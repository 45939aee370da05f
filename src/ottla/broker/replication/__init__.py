"""Followers' half of replication: fetching from leaders; and the ISR changes that leaders ask the controller for."""
