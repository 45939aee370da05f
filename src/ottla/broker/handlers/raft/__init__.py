"""The requests between replicas of the metadata log, on controllers' listeners. The replica answers them (`ottla.raft`)."""
