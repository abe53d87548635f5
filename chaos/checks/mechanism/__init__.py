"""What the check ``mechanism`` looks at: which mechanisms acted, and what the SDK says of itself."""
