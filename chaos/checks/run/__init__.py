"""The subjects of the check ``run``: the end of the harness, and the delays of the job."""
