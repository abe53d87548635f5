"""Measuring the noise of a job over several fault-free runs, and stating its tolerance."""
