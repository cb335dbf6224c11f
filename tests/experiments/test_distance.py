"""The distance to the paper, by hand."""

import json
import math

import pytest

from dris.cli.experiments import study
from dris.experiments.study.distance import distance, distances, outside_distance, published
from dris.experiments.study.published import load_published
from dris.experiments.study.results import FIVE, NOISE, Cell, Plan, PlannedRun, Results, Size, Stamp

CONDITIONS = (*NOISE, "execution", "restitution")


def results(success, reward, measures=("success", "success_0.2"), methods=FIVE):
    """One run of each method that scores the same everywhere."""
    scores = {c: {**dict.fromkeys(measures, success), "reward": reward} for c in CONDITIONS}
    plan = Plan("", [PlannedRun(method, "released", 0) for method in methods], list(CONDITIONS), 100, 1)
    cells = {("released", method): [cell(method, scores)] for method in methods}
    return Results(plan, cells, [])


def cell(method, scores):
    return Cell(method, "released", 0, Stamp(Size(128, 1000)), None, 1.0, scores, [])


def flat(value):
    """A paper whose bands are 0.1 wide about one value."""
    bands = {method: dict.fromkeys(CONDITIONS, [value - 0.05, value + 0.05]) for method in FIVE}
    return {"success": bands, "reward": bands}


def test_a_constant_miss_is_the_distance_and_no_difference():
    found = distance(results(0.8, 0.9), flat(0.5), "released")
    assert found["success_rms"] == pytest.approx(0.3) and found["reward_rms"] == pytest.approx(0.4)
    assert found["success_0.2_rms"] == pytest.approx(0.3)
    assert found["success_difference_rms"] == pytest.approx(0.0, abs=1e-12)
    assert [found[f"{m}_cells"] for m in ("success", "success_0.2", "reward")] == [35, 35, 35]


def test_one_condition_that_misses_counts_as_one_of_35():
    ours = results(0.5, 0.5)
    scores = {c: {"success": 0.5, "reward": 0.5} for c in CONDITIONS}
    scores["execution"] = {"success": 1.0, "reward": 0.5}
    ours.cells["released", "dris-10"] = [cell("dris-10", scores)]
    found = distance(ours, flat(0.5), "released")
    assert found["success_rms"] == pytest.approx(math.sqrt(0.25 / 35))
    assert found["success_difference_rms"] == pytest.approx(math.sqrt(0.25 / 28))
    assert found["success_0.2_cells"] == 28  # dris-10 was not told at 0.2 m/s


def test_what_is_missing_is_left_out_and_counted():
    found = distance(results(0.8, 0.9, ("success",), FIVE[1:]), flat(0.5), "released")
    assert found["success_cells"] == 28 and found["success_rms"] == pytest.approx(0.3)
    assert found["success_difference_rms"] is None  # no E2E to differ from
    assert found["success_0.2_rms"] is None and found["success_0.2_cells"] == 0


def test_the_outside_check_is_held_against_the_row_of_dris_200_in_one_world():
    row = {"success": 0.4, "success_0.2": 0.6, "reward": 0.5}
    rows = [{"world": "training", "condition": c, **row} for c in ("clean", "noise-2")]
    rows.append({"world": "twin", "condition": "clean", **row, "success": 9.0})
    found = outside_distance(rows, flat(0.5))
    assert found["success_rms"] == pytest.approx(0.1) and found["success_0.2_rms"] == pytest.approx(0.1)
    assert found["reward_rms"] == pytest.approx(0.0) and found["reward_cells"] == 2


def test_the_paper_publishes_seventy_means():
    means = [
        published(load_published(), key, m, c)
        for key in ("success", "reward")
        for m in FIVE
        for c in CONDITIONS
    ]
    assert len(means) == 70 and None not in means
    assert published(load_published(), "success", "e2e", "noise-2") == pytest.approx((0.471 + 0.609) / 2)


def test_the_command_writes_the_distances_by_preset(tmp_path, capsys):
    assert study("distance", json_file=tmp_path / "distance.json") == 0
    found = json.loads((tmp_path / "distance.json").read_text())
    assert {"paper", "exact"} <= found.keys() and found["paper"]["reward_cells"] == 35
    assert f"reward {found['paper']['reward_rms']:.3f}" in capsys.readouterr().out
    assert distances(results(0.8, 0.9), flat(0.5)).keys() == {"released"}
    with pytest.raises(ValueError, match="--json is of `dris study distance`"):
        study("theory", json_file=tmp_path / "x.json")
