"""The harness's connection to an API server: credentials, transport, requests, watching."""
