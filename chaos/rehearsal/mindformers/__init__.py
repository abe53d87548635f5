"""A rehearsal of a MindFormers job on the CPU: what MindSpore has no CPU kernel for, and a tiny job of its own."""
