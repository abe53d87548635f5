"""A rehearsal of a MindFormers job on the CPU: the operators without a CPU kernel in MindSpore, and a tiny job."""
