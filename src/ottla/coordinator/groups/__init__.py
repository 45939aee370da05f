"""Consumer groups, classic and of the new protocol, and the offsets they commit: the records of __consumer_offsets."""
