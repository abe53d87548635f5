"""Defects that are put into a running job."""
