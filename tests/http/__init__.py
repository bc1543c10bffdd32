"""The HTTP edge, by its routes, its engines and the command that serves it."""
