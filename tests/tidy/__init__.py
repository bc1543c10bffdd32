"""Taste as tests: what a review would refuse, refused by the build."""
