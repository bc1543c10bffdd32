"""What a backup reads, it reads as of one moment, whatever is written meanwhile."""

from hq.backends.postgres.connections import Limits, Place, Pool, engine_for
from hq.backends.postgres.schema import Schema
from hq.domain.settings import Settings

COUNT = "SELECT count(*) FROM hq.queues"


async def test_a_moment_sees_nothing_of_what_is_written_after_its_first_look(
    opened, postgres_url, postgres_schema
):
    backend = await opened()
    await backend.create("before", Settings())
    place = Place(postgres_url, Schema(postgres_schema), Limits(), prepared=True)
    engine = engine_for(place)
    pool = Pool(engine, place, 1)
    async with pool.lend() as connection:
        async with connection.moment():
            [(first,)] = await connection.rows(COUNT)
            await backend.create("meanwhile", Settings())
            [(second,)] = await connection.rows(COUNT)
        [(after,)] = await connection.rows(COUNT)
    await pool.close()
    await engine.dispose()
    assert (first, second, after) == (1, 1, 2)
