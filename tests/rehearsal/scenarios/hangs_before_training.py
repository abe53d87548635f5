"""A training script that hangs before it trains, does not listen to SIGTERM, and has started a helper."""

import os
import signal
import subprocess

signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.environ["MS_NODE_ID"] == "1":
    subprocess.Popen(["sleep", "3600"], start_new_session=True)
while True:
    signal.pause()  # returns when the harness asks for the stacks
