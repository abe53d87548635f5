"""The time budget of a job's restart on real devices, whichever mechanism calls for it."""

from __future__ import annotations

from chaos.plan.budgets import Profile

HARDWARE = Profile(total=600.0, phases={})
"""The vendor states a restart of the job in under 10 minutes (MindCluster, resumable training), and nothing for its
phases."""
