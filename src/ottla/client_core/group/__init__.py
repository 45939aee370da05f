"""Membership in consumer groups: one interface, the classic protocol and KIP-848 behind it, and the assignors."""
