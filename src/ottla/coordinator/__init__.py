"""State machines of the coordinators: groups, offsets and transactions. Pure: requests and records in, effects out."""
