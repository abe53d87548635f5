"""What the check ``hygiene`` looks at: how processes ended, and what is left behind."""
