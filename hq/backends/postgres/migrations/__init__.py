"""The schema of a Postgres database, change by change. What Alembic writes here is what is run."""
