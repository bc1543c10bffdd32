"""What Alembic runs: all migrations on the connection it was given, in that connection's transaction."""

from __future__ import annotations

from alembic import context

from hq.backends.sqlite.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
