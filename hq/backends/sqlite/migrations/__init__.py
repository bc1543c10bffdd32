"""Migrations of the schema, forward only. Alembic runs them at open, inside one transaction."""
