"""A belief behind eyes whose sights are worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from sights import PLAIN, parabola, pinhole

from dris.belief.config import BeliefConfig
from dris.catching.ball_belief_config import BallBeliefConfig
from dris.catching.belief_observer import GIVE_UP, BeliefObserver, beside_one_robot
from dris.catching.control import BallEstimate, troubles_of
from dris.catching.kinematics import Kinematics
from dris.catching.settings import CatchingConfig
from dris.evaluation.registry import find_policy
from dris.perception.detect import Detection
from dris.perception.track import BallTracker

TASK = CatchingConfig()
KINEMATICS = Kinematics(TASK.home, TASK.mount)
START, VELOCITY = np.array([0.9, 0.1, 1.0]), np.array([-0.8, 0.1, 2.0])


class Tracked:
    """A tracker without pictures as the eyes of an observer."""

    radius_m, found_share = 0.03, 1.0

    def __init__(self):
        self.eyes = SimpleNamespace(tracker=BallTracker(PLAIN), monitor=SimpleNamespace(doubts_rig=False))
        self.on_sight = None

    def show(self, time_s, camera, centre):
        """A sight of a ball, for the tracker and for whoever listens."""
        radius_px = 600 * self.radius_m / PLAIN[camera].to_camera(centre)[2]
        found = Detection(pinhole(PLAIN[camera], centre), radius_px, 1.0)
        self.on_sight(self.eyes.tracker.observe(time_s, camera, found))

    def estimate(self, time_s):
        state = self.eyes.tracker.state(time_s)
        if state is None or not state.valid:
            return None
        return BallEstimate(state.ball_in_base, state.velocity_in_base, state.age_s)


def throw(observer, from_s, duration_s=0.3):
    """A throw that both cameras see 80 times a second; when it was seen last."""
    for frame in range(round(80 * duration_s)):
        for camera in (0, 1):
            since_s = 0.0125 * frame + 0.005 * camera
            observer.observe_joints(from_s + since_s, np.array(TASK.home))
            observer.inner.show(from_s + since_s, camera, parabola(START, VELOCITY, since_s))
    return from_s + since_s


@pytest.fixture
def observer():
    return BeliefObserver(Tracked(), KINEMATICS, seed=1)


def test_a_clock_that_begins_again_begins_a_new_belief(observer):
    """Before, it refused every sight as too old until the clock had come to where it was."""
    before_s = throw(observer, 10.0)
    assert observer.belief.time_s == before_s and observer.restarts == 0
    last_s = throw(observer, 0.0)
    assert observer.belief.time_s == last_s and observer.restarts == 1
    seen, tracked = observer.estimate(last_s), observer.inner.estimate(last_s)
    assert np.linalg.norm(seen.position - parabola(START, VELOCITY, last_s)) < 0.003
    assert not np.array_equal(seen.position, tracked.position)  # its own, not the track passed on


def test_an_estimate_tells_how_sure_the_belief_is(observer):
    last_s = throw(observer, 0.0)
    seen, (mean, deviation) = observer.estimate(last_s), observer.belief.at(last_s)
    np.testing.assert_array_equal(np.concatenate((seen.position, seen.velocity)), mean)
    np.testing.assert_array_equal(seen.deviation, deviation)
    assert (deviation > 0).all()
    observer.belief.time_s = None  # what is passed on is the track, and nobody knows how exact it is
    assert observer.estimate(last_s).deviation is None


def test_what_a_belief_did_not_expect_is_counted(observer):
    last_s = throw(observer, 0.0)
    assert observer.troubles._replace(repaired=0) == (0, 0, 0)
    for k in range(GIVE_UP):
        at_s = last_s + 0.0025 * (k + 1)
        observer.inner.show(at_s, k % 2, parabola(START, VELOCITY, at_s) + (0.0, 0.15, 0.1))
    assert observer.troubles[:2] == (GIVE_UP, 1)
    assert troubles_of(observer) == observer.troubles and troubles_of(observer.inner) is None


def test_a_sight_that_is_only_late_is_left_out(observer):
    last_s = throw(observer, 10.0)
    before = observer.estimate(last_s).position
    observer.inner.show(last_s - 0.1, 0, parabola(START, VELOCITY, last_s - 0.1 - 10.0))
    assert observer.belief.time_s == last_s and observer.restarts == 0
    np.testing.assert_array_equal(observer.estimate(last_s).position, before)


def test_a_prior_widens_what_a_robot_s_belief_takes_things_for():
    own = BallBeliefConfig()
    stored = BeliefConfig(instances=7, prior=(("restitution", 0.1, 0.6), ("static_friction", 0.1, 0.8)))
    found = beside_one_robot(stored)
    assert (found.instances, found.restitution, found.static_friction) == (7, (0.1, 0.9), (0.0, 0.8))
    # What is narrower, no robot's to say, or of training alone changes nothing.
    others = (("restitution", 0.3, 0.85), ("radius", 0.02, 0.03), ("dynamic_friction", 0.0, 1.0))
    stored = BeliefConfig(prior=others, told_noise=8.0, noise_floor=1.0, jitter=0.5, look_ahead=False)
    assert beside_one_robot(stored) == own
    with pytest.raises(ValueError, match=r"restitution must be a range in \[0, 1\], got \(0.2, 1.5\)"):
        beside_one_robot(BeliefConfig(prior=(("restitution", 0.3, 1.5),)))


def test_the_policy_for_a_robot_believes_what_it_did():
    """Figures of its trials rest on this."""
    assert beside_one_robot(find_policy("belief-robot").belief) == BallBeliefConfig(50)
