"""Whatever storage does, nothing acknowledged is lost and memory equals storage."""

from collections import Counter

import pytest

from tests.simulation.on_postgres import simulate_on
from tests.simulation.world import simulate

SEEDS = 60
SEEDS_ON_POSTGRES = 8
FATES = {
    "durable", "slow", "refused", "lost", "unheard", "late", "late and durable", "late and not_owner",
    "broken before", "broken after", "broken",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, 15))
def test_promises_hold_on_storage_that_fails(first):
    done = sum((simulate(seed) for seed in range(first, first + 15)), Counter())

    assert set(done) >= FATES


@pytest.mark.slow
def test_promises_hold_on_a_postgres_that_fails(postgres_url, postgres_schema):
    seeds = range(SEEDS_ON_POSTGRES)

    done = sum((simulate_on(postgres_url, seed, f"{postgres_schema}_{seed}") for seed in seeds), Counter())

    assert set(done) >= FATES - {"late and not_owner"}
