"""Faults of cards and of a host, made by the vendor's tools."""
