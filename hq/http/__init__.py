"""HTTP: one table of routes, plain handlers, Quart for all of them and an express lane for the hot ones."""
