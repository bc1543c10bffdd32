"""The rules, one module per verb or family of verbs; each takes (state, command, now, chance)."""
