"""A belief between the twin's eyes and the policy."""

from dataclasses import replace

import numpy as np
import pytest

from dris.belief.config import BELIEFS, BeliefConfig
from dris.catching.belief_observer import BeliefObserver
from dris.catching.settings import CatchingConfig
from dris.evaluation.registry import find_policy
from dris.lab.belief_observer import with_belief
from dris.lab.camera_observer import CameraObserver
from dris.lab.drives import drive
from dris.lab.launch import Ramp
from dris.lab.objects import thing
from dris.lab.observer import TruthObserver
from dris.lab.trial import run_trial
from dris.lab.twin import Twin
from dris.perception.monitor import Verdict


@pytest.fixture(scope="module")
def twin():
    twin = Twin(drive("fitted-gains", CatchingConfig()))
    yield twin
    twin.close()  # here: garbage is collected by any thread, and a renderer may not be


def errors(trial):
    return trial.position_error, trial.velocity_error


def test_it_sees_through_noise_in_a_world_whose_physics_it_does_not_know(twin):
    """Ball, launch, noise: the same. Twenty sights a second take a quarter of the error away, or more."""
    policy, ball, found = find_policy("e2e"), thing("ping-pong"), {}
    for name in ("none", "ensemble"):
        twin.reset(ball, Ramp(0.2), 3)
        eyes = TruthObserver(twin, noise=2.0, seed=3)
        handle = replace(policy, belief=BELIEFS[name])
        found[name] = run_trial(handle, ball, Ramp(0.2), 3, twin, eyes, duration_s=1.5, until_lost=False)
    # Seen with 2 cm and 10 cm/s along each axis, sqrt(3) times that in space.
    position, velocity = errors(found["none"])
    assert position == pytest.approx(0.02 * 3**0.5, rel=0.25)
    assert velocity == pytest.approx(0.1 * 3**0.5, rel=0.25)
    assert errors(found["ensemble"])[0] < 0.75 * position and errors(found["ensemble"])[1] < velocity


def test_single_sights_of_single_cameras_pull_it(twin):
    ball = thing("foam")
    twin.reset(ball, Ramp(0.2), 4)
    eyes = BeliefObserver(CameraObserver(twin, ball, seed=4), twin.kinematics, seed=4)
    trial = run_trial("e2e", ball, Ramp(0.2), 4, twin, eyes, duration_s=1.0)
    assert trial.caught and trial.found_share > 0.9
    assert eyes.belief.time_s > 0.9 and eyes.restarts == 0
    assert trial.position_error < 0.01
    assert trial.belief == eyes.troubles._asdict() and trial.belief["restarts"] == 0
    drag = eyes.belief._balls.drag
    assert drag.std() < np.std(np.random.default_rng(0).uniform(0, 0.2, 50))  # flight tells of it
    assert eyes.estimate(twin.time_s) is not None
    eyes.inner.monitor.verdict = Verdict("stop", "frozen camera")  # eyes that are wrong mislead a belief, too
    assert eyes.estimate(twin.time_s) is None


def test_without_a_belief_the_eyes_are_asked_themselves(twin):
    eyes = TruthObserver(twin)
    assert with_belief(eyes, BELIEFS["none"], CatchingConfig(), twin.kinematics, 0) is eyes
    for belief in (*map(BELIEFS.get, ("particles", "kalman", "nominal")), BeliefConfig(view="set")):
        with pytest.raises(ValueError, match="an ensemble of any physics and shows its mean, not"):
            with_belief(eyes, belief, CatchingConfig(), twin.kinematics, 0)
    with pytest.raises(ValueError, match="needs cameras or the truth to look with, got object"):
        with_belief(object(), BELIEFS["ensemble"], CatchingConfig(), twin.kinematics, 0)


def test_an_old_belief_is_not_acted_on(twin):
    """Older sights stop an arm; a ball out of sight should hold it."""
    ball = thing("foam")
    twin.reset(ball, Ramp(0.2), 4)
    eyes = with_belief(TruthObserver(twin), BELIEFS["ensemble"], CatchingConfig(), twin.kinematics, 0)
    for time_s in (0.0, 0.3):
        eyes.observe_joints(time_s, twin.joints())
    assert eyes.estimate(0.0) is not None
    eyes.inner.estimate = lambda time_s: None  # out of sight
    assert eyes.estimate(0.19).age_s == pytest.approx(0.19)
    assert eyes.estimate(0.21) is None


def test_a_belief_behind_the_truth_follows_a_clock_that_begins_again(twin):
    twin.reset(thing("foam"), Ramp(0.2), 4)
    eyes = with_belief(TruthObserver(twin), BELIEFS["ensemble"], CatchingConfig(), twin.kinematics, 0)
    for time_s in (10.0, 0.0):
        eyes.observe_joints(time_s, twin.joints())
        assert eyes.estimate(time_s) is not None and eyes.belief.time_s == time_s
    assert eyes.restarts == 1
