"""Watches the harness, the nodes and the cards while a job runs."""
