"""The subject of the check ``history``: the record by which everything else is judged."""
