"""What the check ``history`` looks at: the record that everything else is judged by."""
