"""Ids of former incarnations, which stay good for what was restored."""

from __future__ import annotations

from alembic import context, op

revision = "0002"
down_revision = "0001"

TABLE = """
-- The last sequence of each queue that was restored under a former incarnation.
CREATE TABLE hq.former (
    queue integer NOT NULL,
    incarnation bigint NOT NULL,
    sequence bigint NOT NULL,
    PRIMARY KEY (queue, incarnation)
)
"""


def upgrade() -> None:
    """Make the table."""
    op.execute(context.config.attributes["place"](TABLE.strip()))
