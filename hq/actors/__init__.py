"""Order, time and concurrency: what gives the rules a life."""
