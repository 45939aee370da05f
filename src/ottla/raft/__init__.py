"""KRaft: who leads the quorum of the metadata log, which of it is committed. Pure: no clock, disk or network."""
