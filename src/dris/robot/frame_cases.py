"""Golden cases of the frames and of what an action asks for: written by export, tried by a runtime."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dris.catching.actions import decode, keep_inside
from dris.catching.frames import motion_to_base, normal_of_tilt, tilt_of_normal, to_motion
from dris.catching.kinematics import Kinematics
from dris.catching.settings import CatchingConfig
from dris.core.constants import EVALUATION_SEED

FRAME_CASES = 40


def frame_cases(config: CatchingConfig) -> dict[str, np.ndarray]:
    """What is seen in the base frame and what comes of it, by the code that training uses."""
    rng, count = np.random.default_rng(EVALUATION_SEED), FRAME_CASES
    home = Kinematics(config.home, config.mount).home_position
    begin_plate, begin_ball = home + rng.normal(0, 0.1, (count, 3)), home + rng.normal(0, 0.7, (count, 3))
    plate, ball = begin_plate + rng.normal(0, 0.1, (count, 3)), begin_ball + rng.normal(0, 0.3, (count, 3))
    velocity, action = rng.normal(0, 3.0, (count, 3)), rng.uniform(-1.2, 1.2, (count, 5))
    normal = normal_of_tilt(rng.normal(0, 0.3, (count, 2)))
    cases = {
        "begin_plate": begin_plate, "begin_ball": begin_ball, "ball_position": ball,
        "ball_velocity": velocity, "plate_position": plate, "plate_normal": normal, "action": action,
    }  # fmt: skip
    return cases | {"expected": frame_answers(config, cases)}


def frame_answers(config: CatchingConfig, cases: Mapping[str, np.ndarray]) -> np.ndarray:
    """States, condition, plate position and tilt [K, 13] of K cases."""
    home = Kinematics(config.home, config.mount).home_position
    begin_plate, plate = cases["begin_plate"], cases["plate_position"]
    offset = cases["begin_ball"] - begin_plate
    to_base = motion_to_base(np.arctan2(offset[:, 1], offset[:, 0]))
    displacement, tilt, _ = decode(config, cases["action"].clip(-1, 1))
    wished = plate + (to_base @ displacement[..., None])[..., 0]
    middle = begin_plate if config.workspace_around == "start" else np.broadcast_to(home, wished.shape)
    answers = (
        to_motion(cases["ball_position"] - plate, to_base),
        to_motion(cases["ball_velocity"], to_base),
        tilt_of_normal(to_motion(cases["plate_normal"], to_base)),
        keep_inside(config, wished, middle, to_base),
        (to_base[:, :2, :2] @ tilt[..., None])[..., 0],
    )
    return np.concatenate(answers, axis=1)
