"""chaos: fault injection for Ascend training jobs, with verdicts that can be believed.

The data flows one way: scenario, plan, run, history, checks, verdict, report (docs/architecture.md).
"""

__version__ = "0.1.0"
