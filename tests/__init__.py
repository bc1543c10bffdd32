"""The promises of hq, as tests."""
