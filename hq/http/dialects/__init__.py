"""Other systems' HTTP contracts, spoken over the same queues: each a table of routes, and how it says no."""
