"""Small bugs, seeded one at a time into a copy of hq: each must make a test fail."""
