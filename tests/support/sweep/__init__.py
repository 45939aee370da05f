"""Every API in every version: the requests, and replies in a form that can be compared."""
