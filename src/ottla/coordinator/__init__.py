"""State machines of the group and transaction coordinators. Pure: requests and records in, effects out."""
