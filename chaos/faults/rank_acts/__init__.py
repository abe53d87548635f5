"""Acts of a rank on itself: it ends, raises, hangs, is slow, or sees another time."""
