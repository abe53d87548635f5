"""Checkpoints in the plan: what a job saves and keeps, and which of it another launch goes on from."""
