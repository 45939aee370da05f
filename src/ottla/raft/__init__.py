"""KRaft: who leads the quorum of the metadata log, and which records are committed. Only `quorum_state.py` uses the disk."""
