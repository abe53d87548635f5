"""Checkpoints in the plan: what a job saves and keeps, and which checkpoint another launch goes on from."""
