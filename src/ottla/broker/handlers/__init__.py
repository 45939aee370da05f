"""One module per API, imported when its first request comes: `requests/apis.py` lists them."""
