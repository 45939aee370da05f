"""Clients: the libraries under one interface, plain requests, group members, transactional producers."""
