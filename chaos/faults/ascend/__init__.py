"""Faults of cards, made by the vendor's tools."""
