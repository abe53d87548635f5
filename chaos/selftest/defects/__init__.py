"""The catalogue: one small file a theme, each with its defects as the tuple ``DEFECTS``."""
