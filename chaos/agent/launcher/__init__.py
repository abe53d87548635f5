"""The launcher of a job: the exits that it collects, and the variables by which it numbers its ranks."""
