"""How the harness talks to an API server: credentials, transport, requests, watching."""
