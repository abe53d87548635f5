"""Lines of a log with a loss, a norm or a learning rate, in any form that a script prints."""
