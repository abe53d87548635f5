"""What a rank does to itself: it ends, raises, hangs, is slow, or sees another time."""
