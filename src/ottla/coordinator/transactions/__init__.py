"""The transaction coordinator: transactional producers, their transactions, and the records of __transaction_state."""
