"""Damaged policy files with a valid checksum: each ends in one line that names the file, or works."""

import copy
import random
from dataclasses import replace

import pytest
import torch

from dris.core.errors import DrisError
from dris.evaluation.registry import find_policy, policy_file
from dris.learning.checkpoint import load_checkpoint, save_checkpoint

CASES = 200
VALUES = (
    None, True, 5, -1, 0, 2.5, 1e30, 10**9, 10**400, "", "x", "no.such:Task", ".:x", "fakes.py:", [], [1], {}, {"a": 1},
    float("inf"), "\x00", [[[[]]]],
)  # fmt: skip


def places(tree, path=()):
    """Every place in a tree of dictionaries."""
    for key, value in tree.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


def damaged(config, rng):
    """The configuration with one or two places changed, removed or added to."""
    config = copy.deepcopy(config)
    for _ in range(rng.choice((1, 1, 2))):
        *way, last = rng.choice(sorted(places(config)))
        at = config
        for key in way:
            at = at[key]
            if not isinstance(at, dict):
                break
        if not isinstance(at, dict):
            continue
        if rng.random() < 0.2:
            at.pop(last, None)
        elif rng.random() < 0.1:
            at["colour"] = 1
        else:
            at[last] = rng.choice(VALUES)
    return config


def test_a_damaged_policy_is_refused_in_one_line_or_works(tmp_path):
    whole = load_checkpoint(policy_file("dris-10"), "policy")
    refused = 0
    for case in range(CASES):
        rng = random.Random(case)
        file = tmp_path / f"{case}.safetensors"
        save_checkpoint(file, replace(whole, config=damaged(whole.config, rng)))
        try:
            find_policy(str(file))
        except (DrisError, ValueError) as error:
            words = str(error)
            assert len(words.splitlines()) == 1 and len(words) < 1500, words
            assert file.name in words, words
            refused += 1
        file.unlink()
    assert refused > CASES // 2 and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [torch.float8_e4m3fn, torch.float64, torch.int32])
def test_tensors_of_another_type_are_refused(tmp_path, kind):
    whole = load_checkpoint(policy_file("dris-10"), "policy")
    name = next(iter(whole.tensors))
    tensors = {**whole.tensors, name: whole.tensors[name].to(kind)}
    file = tmp_path / "other.safetensors"
    try:
        save_checkpoint(file, replace(whole, tensors=tensors))
        find_policy(str(file))
    except DrisError as error:
        assert name.removeprefix("actor.").removeprefix("encoder.") in str(
            error
        ) and "other.safetensors" in str(error)
    else:
        raise AssertionError(f"{kind} was taken")


def test_equal_runs_give_equal_files(tmp_path):
    whole = load_checkpoint(policy_file("dris-10"), "policy")
    for name in ("a", "b"):
        save_checkpoint(tmp_path / name, whole)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
