"""``chaos soak``: its cells, runs, kills, drawn scenarios and reports."""
