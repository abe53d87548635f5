"""ELASTIC: torchrun ends every rank of a job of which one has failed, and starts every rank again."""
