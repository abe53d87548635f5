"""Lines of a log that tell a loss, a norm or a learning rate, in any form that a script prints."""
