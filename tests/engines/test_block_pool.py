"""Blocks are free or held, by one or by several, and none is ever lost."""

from random import Random

import numpy as np
import pytest

from engines.builtin.block_pool import BlockPool


def test_never_leaks_over_10_000_steps():
    random, pool = Random(0), BlockPool(97)
    free, held = set(range(97)), []
    for _ in range(10_000):
        if held and random.random() < 0.5:
            blocks = held.pop(random.randrange(len(held)))
            pool.free(blocks)
            free |= set(blocks.tolist())
        elif (count := random.randint(0, 12)) <= len(free):
            blocks = pool.allocate(count)
            assert blocks.dtype == np.int32
            taken = set(blocks.tolist())
            assert len(taken) == count
            assert taken <= free
            free -= taken
            held.append(blocks)
        else:
            with pytest.raises(MemoryError, match=f"{count} KV blocks wanted, {len(free)} free"):
                pool.allocate(count)
        assert pool.num_free == len(free)
    for blocks in held:
        pool.free(blocks)
    assert sorted(pool.allocate(97).tolist()) == list(range(97))


def test_shared_blocks_are_free_when_the_last_holder_lets_go():
    """Against a list: free blocks in the order in which they came free, and a count of holders."""
    random, pool = Random(1), BlockPool(23)
    free, holders, held = list(range(23)), [0] * 23, []
    for _ in range(10_000):
        action = random.random()
        if held and action < 0.45:
            several = [held.pop(random.randrange(len(held))) for _ in range(min(len(held), 2))]
            blocks = [block for each in several for block in each]
            pool.free(np.array(blocks, np.int32))
            for block in blocks:
                holders[block] -= 1
            free += [block for block in dict.fromkeys(blocks) if not holders[block]]
        elif action < 0.6:
            blocks = random.sample(range(23), random.randint(0, 5))
            pool.touch(np.array(blocks, np.int32))
            free = [block for block in free if block not in blocks]
            held.append(blocks)
            for block in blocks:
                holders[block] += 1
        elif (count := random.randint(0, 6)) <= len(free):
            blocks = pool.allocate(count).tolist()
            assert blocks == free[:count], "the one free longest goes first"
            free = free[count:]
            held.append(blocks)
            for block in blocks:
                holders[block] += 1
        assert pool.num_free == len(free)
        assert pool.ref_cnt.tolist() == holders


def test_what_was_given_is_not_given_back_by_a_later_step():
    pool = BlockPool(4)
    first = pool.allocate(2)
    before = first.copy()
    pool.free(first)
    pool.allocate(4)
    assert (first == before).all()


def test_a_refused_call_changes_nothing():
    pool = BlockPool(8)
    blocks = pool.allocate(5)
    with pytest.raises(MemoryError):
        pool.allocate(4)
    pool.free(blocks[:2])
    for again in (blocks[:2], blocks[1:3]):
        with pytest.raises(ValueError, match=f"given back twice: .*{blocks[1]}"):
            pool.free(again)
    with pytest.raises(ValueError, match=rf"given back twice: \[{blocks[3]}\]"):
        pool.free(blocks[[2, 3, 4, 3]])
    pool.touch(blocks[2:3])
    with pytest.raises(ValueError, match=rf"given back twice: \[{blocks[3]}\]"):
        pool.free(blocks[[2, 3, 4, 3]])
    pool.free(blocks[2:3])
    assert pool.num_free == 5
    pool.free(blocks[2:])
    assert sorted(pool.allocate(8).tolist()) == list(range(8))
