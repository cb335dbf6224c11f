"""What is looked at before an arm moves: everything that can be known without moving it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dris.catching.joint_limits import JointLimits
from dris.catching.kinematics import Kinematics
from dris.catching.robot_model import robot_model
from dris.catching.settings import CatchingConfig
from dris.robot.arm import Arm, ArmError
from dris.robot.clearance import Clearance
from dris.robot.paths import WayHome
from dris.robot.payload import compare
from dris.robot.ready import at_end, stricter, why_not
from dris.robot.runtime import Runtime
from dris.robot.safety import outside
from dris.robot.safety_config import Clause, SafetyConfig
from dris.robot.site_config import SiteConfig

MEDIAN_S, SLOWEST_S = 0.001, 0.02
"""A policy may take so long in the median, and at the 99th percentile, of a control step of 50 ms."""
MASS_SHARE = 0.1
"""A link may be so much heavier or lighter than the model's: so much was the filter tried with [design]."""
WAY_S = 0.02
"""The way home is looked at so often [s]: at its speeds, a centimetre of the plate."""
SIDES = ("behind (-x)", "right of (-y)", "below", "ahead of (+x)", "left of (+y)", "above")
WALLS: dict[Clause, tuple[str, ...]] = {
    "workspace": tuple(f"the plate is {{:.3f}} m {side} its workspace" for side in SIDES),
    "keep-out": (
        "the arm is {:.3f} m too near to the table",
        "plate, hand or wrist are {:.3f} m too near to the arm",
    ),
}
"""What `outside` tells, in its order."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    found: str
    """What is there, and, if that is wrong, what to do."""


def passed(checks: Iterator[Check]) -> bool:
    """Say what was looked at, a line a check; whether all is well."""
    good = True
    for check in checks:
        print(f"{'ok' if check.ok else 'FAILED':>6}  {check.name:<8} {check.found}", flush=True)
        good = good and check.ok
    return good


def preflight(
    runtime: Runtime,
    arm: Arm,
    speed_share: float = 1.0,
    site: SiteConfig | None = None,
    is_real: bool = False,
) -> Iterator[Check]:
    """Look at policy and arm; nothing is sent but questions.

    Args:
        runtime: With the policy.
        arm: At rest.
        speed_share: Of what the arm may do on its way home.
        site: Where it stands; by default as `SiteConfig` says.
        is_real: Whether a real arm is to catch, which only a policy of its limits may.
    """
    contract, site = runtime.contract, site or SiteConfig()
    yield Check("policy", True, f"{contract.policy}, of dris {contract.dris}, answers its golden cases")
    yield _latency(runtime)
    try:
        config = contract.catching()
    except ValueError as error:
        yield Check("task", False, str(error))
        return
    if config.torque_rate is None:
        found = "trained without an FR3's limits of torque rate and speed"
        but = "no policy for a real arm" if is_real else "the law holds it back, and it may miss"
        yield Check("task", not is_real, f"{found}: {but}; --preset fr3 trains inside them, as belief-robot")
    yield _asked("driver", lambda: Check("driver", True, arm.versions() or "tells no versions"))
    yield _asked("arm", lambda: _state(arm))
    yield _asked("limits", lambda: _limits(arm, config))
    yield _asked("masses", lambda: _masses(arm, config))
    yield _asked("posture", lambda: _posture(arm, config))
    yield Check("site", True, f"{site}; look whether the room is so")
    yield _asked("way", lambda: _way(arm, config, speed_share, site))
    yield _asked("payload", lambda: Check("payload", *compare(arm.carries(), config.mount)))


def _asked(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except ArmError as error:
        return Check(name, False, str(error))


def _latency(runtime: Runtime) -> Check:
    states, condition = (
        np.zeros(len(runtime.contract.states.names)),
        np.zeros(runtime.contract.condition.size),
    )
    taken = []
    for _ in range(500):
        began = time.perf_counter()
        runtime.act_one(states, condition)
        taken.append(time.perf_counter() - began)
    median, slowest = np.quantile(taken, (0.5, 0.99))
    found = f"an action takes {1e3 * median:.2f} ms, {1e3 * slowest:.2f} ms at the 99th percentile"
    ok = bool(median <= MEDIAN_S and slowest <= SLOWEST_S)
    return Check("latency", ok, found if ok else f"{found}: close what else runs on this machine")


def _state(arm: Arm) -> Check:
    state = arm.state()
    if why := why_not(state):
        return Check("arm", False, why)
    return Check("arm", True, f"answers, at rest at {np.round(state.q, 2).tolist()} rad")


def _limits(arm: Arm, config: CatchingConfig) -> Check:
    """An arm that is slower than the training's would be stopped by the filter all the time."""
    told, published = arm.limits(), Kinematics(config.home, config.mount).limits
    slower = ~(told.speed >= published.speed - 1e-3)  # a number that is none is slower
    if slower.any():
        joint = int(np.argmax(slower)) + 1
        now, then = told.speed[joint - 1], published.speed[joint - 1]
        found = f"joint {joint} may go at {now:.2f} rad/s, in training {then:.2f}"
        return Check("limits", False, f"{found}: this is another arm than the policy was trained for")
    kept = stricter(told, published)
    others = [
        f"{words}: {parts}, {what_counts}"
        for words, parts, what_counts in (
            ("narrower than in training", _differ(kept, published), "which the filter keeps to"),
            ("wider than published", _differ(kept, told), "of which the published ones count"),
        )
        if parts
    ]
    same = "ranges, speeds and what bounds them near an end are those of the training's arm"
    return Check("limits", True, "; ".join(others) or same)


def _differ(kept: JointLimits, limits: JointLimits) -> str:
    """In which parts and joints limits are not those that are kept."""
    off = {name: ~(np.abs(values - getattr(limits, name)) <= 1e-3) for name, values in vars(kept).items()}
    return ", ".join(
        f"{name} of joint {', '.join(str(joint + 1) for joint in np.flatnonzero(joints))}"
        for name, joints in off.items()
        if joints.any()
    )


def _masses(arm: Arm, config: CatchingConfig) -> Check:
    """Filter, law and identification compute with the model's masses; names and limits tell no variants."""
    told, model = np.array(arm.masses()), robot_model(config.mount)
    known = np.array([model.body(f"link{number}").mass.item() for number in range(1, 8)])
    off = np.abs(told / known - 1)
    worst = int(np.argmax(off))
    if not off[worst] <= MASS_SHARE:
        found = (
            f"link {worst + 1} weighs {told[worst]:.2f} kg by the robot, {known[worst]:.2f} kg by the model"
        )
        most = f"at most {100 * MASS_SHARE:.0f} % apart"
        way_out = (
            "this package's model is of the FR3, another variant needs its own, and policies trained on it"
        )
        return Check("masses", False, f"{found}, {most}: {way_out}")
    return Check("masses", True, f"all links weigh what the model's do, within {100 * off[worst]:.0f} %")


def _posture(arm: Arm, config: CatchingConfig) -> Check:
    q, limits = arm.state().q, stricter(arm.limits(), Kinematics(config.home, config.mount).limits)
    if why := at_end(q, limits):
        return Check("posture", False, why)
    if why := at_end(np.array(config.home), limits, limits.margin(0.0) + SafetyConfig.position_margin):
        found = why.partition(":")[0]
        return Check("posture", False, f"at the policy's home {found}: this arm cannot go there")
    way = float(np.abs(q - np.array(config.home)).max())
    return Check("posture", True, f"{way:.2f} rad from home, the furthest joint")


def _way(arm: Arm, config: CatchingConfig, speed_share: float, site: SiteConfig) -> Check:
    """Whether plate and wrist stay clear where the arm is and all the way home, by what the model knows."""
    kinematics = Kinematics(config.home, config.mount)
    clearance = Clearance(kinematics.home, config.mount)
    safety = site.safety(config.stiffness, config.damping)
    limits = stricter(arm.limits(), kinematics.limits).slowed(speed_share)
    if met := _met(safety, clearance, kinematics.home):
        return Check("way", False, f"at its home {met}: no way leads there; correct the --site flags")
    way = WayHome(arm.state().q, kinematics.home, limits)
    steps = max(math.ceil(way.duration_s / WAY_S), 1)
    for step in range(steps + 1):
        at_s = way.duration_s * step / steps
        if met := _met(safety, clearance, way.at(at_s)):
            when = f"{at_s:.1f} s into its way home" if step else "where it is now"
            return Check("way", False, f"{when} {met}: guide it by hand to near its home")
    found = f"inside workspace and keep-out for all {way.duration_s:.1f} s of the way home"
    return Check("way", True, f"{found}; what no model knows, people too, only you see")


def _met(safety: SafetyConfig, clearance: Clearance, q: np.ndarray) -> str:
    """What plate or wrist pass at joints q [M], and how far; nothing if they are inside."""
    passed_by = [
        words.format(metres)
        for clause, beyond in outside(safety, clearance, q).items()
        for words, metres in zip(WALLS[clause], beyond.tolist(), strict=True)
        if not metres <= 0  # nor a number that is none
    ]
    return ", ".join(passed_by)
