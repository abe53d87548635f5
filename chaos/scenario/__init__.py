"""The scenario language: loading with positions, variables, matrix, rules, JSON Schema."""
