"""Benchmarks that a shorter run can still check for sense."""

import pytest

from dris.experiments.bench.physics import bench_physics
from dris.experiments.bench.physics import table as physics_table
from dris.experiments.bench.train import bench_train
from dris.experiments.bench.train import table as train_table


def test_physics_errors_fall_with_the_substep():
    result = bench_physics(sets=16, instances=4, mujoco_sets=2)
    for contact in ("averaged", "exact"):
        rows = result[contact]
        # At 10 ms the arm is too stiff for one step and takes ten of its own: it is better than at 5 ms.
        assert (
            rows["10 ms"]["joint_rms_mrad"]
            < rows["2.5 ms"]["joint_rms_mrad"]
            < rows["5 ms"]["joint_rms_mrad"]
        )
        assert rows["2.5 ms"]["ball_median_mm"] < rows["5 ms"]["ball_median_mm"] < 2.0
    assert result["arm_against_mujoco"]["worst_joint_rms_mrad"] < 3.0
    assert result["arm_against_mujoco"]["plate_max_mm"] < 2.0
    assert "5 ms" in physics_table(result)


def test_the_parts_of_an_iteration_add_up():
    result = bench_train(instances=(2,), iterations=2)
    row = result["seconds"]["2"]
    parts = {name: value for name, value in row.items() if name not in ("iteration", "rest")}
    assert {"world", "inverse kinematics", "encoder", "policy", "update"} == set(parts)
    assert all(value > 0 for value in parts.values())
    assert 0 <= row["rest"] < 0.6 * row["iteration"]
    assert result["recipe_minutes"]["2"] == pytest.approx(row["iteration"] * 1000 / 60)
    assert "recipe" in train_table(result)
