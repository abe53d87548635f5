"""RSC: every rank is ended and started again, and the launcher stays."""
