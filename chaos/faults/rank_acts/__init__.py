"""Acts of a rank on itself."""
