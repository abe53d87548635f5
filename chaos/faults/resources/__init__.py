"""A rank that lacks a resource: processors, memory, open files."""
