"""Readers of logs, by the program that wrote them: lines in, typed events out."""
