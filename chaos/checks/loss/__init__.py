"""The subjects of the check ``loss``: losses, gradients and weights, by events and by the ranks' logs."""
