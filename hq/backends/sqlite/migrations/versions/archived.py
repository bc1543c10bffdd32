"""Up to where the journal is archived."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Nothing is, in a store that was made before."""
    op.add_column("store", Column("archived_to", BigInteger, nullable=False, server_default="0"))
