"""Up to which position the journal is final.

A row with a lower position may be committed after one with a higher. Every append takes a shared advisory
lock before it is given positions and holds it until it ends. So whoever notes the last position given out,
then the holders of that lock, and waits until all of them are gone, has seen the end of every append that was
given one of them. Transactions of applications do not take the lock, so they hold nobody back.
"""

from __future__ import annotations

import anyio

from hq.backends.postgres import statements as sql
from hq.backends.postgres.connections import Connection
from hq.errors import StorageTimeout

_FIRST_WAIT_S = 0.001
_LONGEST_WAIT_S = 0.05


async def final_position(connection: Connection, within_s: float) -> int:
    """The last position given out, once everything up to it is written or never will be."""
    [(last, is_called)] = await connection.rows(sql.LAST_GIVEN)
    if not is_called:
        return 0
    seen = await _holders(connection)
    wait_s = _FIRST_WAIT_S
    with anyio.move_on_after(within_s):
        while seen:
            await anyio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            seen &= await _holders(connection)
        position: int = last
        return position
    raise StorageTimeout(f"an append of another connection has not ended within {within_s:g} s")


async def _holders(connection: Connection) -> set[str]:
    """The transactions that hold the lock; each has a name that is not used again."""
    return {name for (name,) in await connection.rows(sql.HOLDERS, connection.schema.locks)}
