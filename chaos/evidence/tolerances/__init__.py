"""Comparison with the fault-free run where values need not be equal bit for bit."""
