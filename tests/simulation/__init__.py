"""A whole node in virtual time, on a backend that fails as storage fails; a seed repeats everything."""
