"""Transactional producers and their transactions: the records of __transaction_state."""
