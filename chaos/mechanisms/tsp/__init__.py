"""TSP: training is paused."""
