"""The server side of SASL without IO: one exchange for each mechanism, and the accounts that may log in."""
