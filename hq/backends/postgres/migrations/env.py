"""What Alembic runs: all migrations as text, for migrate.py to run or to print."""

from __future__ import annotations

from alembic import context

options = context.config.attributes
context.configure(
    dialect_name="postgresql",
    output_buffer=options["output"],
    version_table_schema=options["schema"],
    transactional_ddl=False,
)
context.run_migrations()
