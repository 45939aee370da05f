"""Groups of the consumer protocol (KIP-848): members say what they read and what they hold, the broker says who reads what."""
