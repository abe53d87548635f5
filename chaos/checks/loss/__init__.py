"""What the check ``loss`` looks at: losses, gradients and weights, by events and by the ranks' logs."""
