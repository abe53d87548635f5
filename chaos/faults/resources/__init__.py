"""A rank that lacks processors, memory or open files."""
