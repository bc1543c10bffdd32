"""Up to where the journal is archived."""

from __future__ import annotations

from alembic import context, op

revision = "0003"
down_revision = "0002"

COLUMN = "ALTER TABLE hq.store ADD COLUMN archived_to bigint NOT NULL DEFAULT 0"


def upgrade() -> None:
    """Nothing is, in a store that was made before."""
    op.execute(context.config.attributes["place"](COLUMN))
