"""Gain identification: K and D with which the twin answers references as the training world does.

The paper did this on its robot ("identified ... by matching the controller's behavior to that in
simulation"). The excitation is what the robot will be asked for: references of a policy's catches, recorded
in the training world with the joints' answers. The twin, which has friction, latency and a limited torque
rate, gets the same references; its 14 gains are fitted by least squares on the joints' difference, each
joint weighed by how far it moves the plate. Other seeds than those of the fit say how good it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import least_squares

from dris.catching.kinematics import Kinematics
from dris.catching.settings import CatchingConfig
from dris.catching.task import CatchingTask
from dris.core.env import Env, EnvConfig, Observation
from dris.evaluation.registry import find_policy
from dris.lab.drives import drive
from dris.lab.launch import Placed
from dris.lab.model import JOINTS
from dris.lab.objects import BALLS
from dris.lab.trial import catching_config
from dris.lab.twin import TICK_S, Twin, TwinConfig

SAMPLE_S = 0.01
"""Joints are compared this often [s]."""
HOLD = 0.01
"""A gain that is off the common factor by e counts as this much error of the plate [m]."""
FIT_SEED, CHECK_SEED = 30_011, 30_013
"""Episodes of the fit and of its check. The first is also the study's, whose scores know no twin; no trial in
the twin uses either."""


@dataclass(frozen=True)
class Motion:
    """References of one second and the training world's answer."""

    start: np.ndarray
    """[7]"""
    references: np.ndarray
    """[T, 7], one a control step."""
    joints: np.ndarray
    """[S, 7], one every `SAMPLE_S`, from the first sample after the start."""
    step_s: float


@dataclass(frozen=True)
class Identified:
    """Gains and how well the twin follows with them; errors are RMS over samples, in metres of the plate."""

    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    catch_before: float
    catch_after: float
    step_before: float
    step_after: float


def catch_motions(policy: str, count: int, seed: int) -> list[Motion]:
    """What a policy asks of the joints in the training world, and how they answer."""
    handle = find_policy(policy)
    task = CatchingTask(catching_config(handle))
    Env(task, EnvConfig(sets=count, instances=1, seed=seed)).reset()
    agent = handle.make_agent(task, count)
    start, references, joints = task.world.q.clone(), [], []
    for _ in range(task.horizon):
        with torch.inference_mode():
            action = agent(Observation(task.states(), task.condition())).clamp(-1, 1)
        command, _ = task.command(action)
        references.append(command.clone())
        for _ in range(round(task.step_s / SAMPLE_S)):
            task.advance(command, SAMPLE_S)
            joints.append(task.world.q.clone())
    asked, answered = torch.stack(references).double().numpy(), torch.stack(joints).double().numpy()
    return [Motion(start[k].double().numpy(), asked[:, k], answered[:, k], task.step_s) for k in range(count)]


def step_motions(trained: CatchingConfig, size: float = 0.05, steps: int = 10) -> list[Motion]:
    """A step of every joint by itself from home, and the training world's answer."""
    start = np.tile(np.array(trained.home), (JOINTS, 1))
    asked = start + size * np.eye(JOINTS)
    references = np.tile(asked[:, None], (1, steps, 1))
    step_s = CatchingTask(trained).step_s
    answered = training_answer(trained, start, references, step_s)
    return [Motion(*rows, step_s) for rows in zip(start, references, answered, strict=True)]


def training_answer(
    trained: CatchingConfig, start: np.ndarray, references: np.ndarray, step_s: float
) -> np.ndarray:
    """How the training world's arms answer: joints [K, S, 7] every `SAMPLE_S`.

    Args:
        trained: The task.
        start: [K, 7] where arms are at rest.
        references: [K, T, 7], one every `step_s`.
        step_s: A multiple of `SAMPLE_S`.
    """
    task = CatchingTask(trained)
    task.allocate(len(start), 1)
    single = lambda values: torch.as_tensor(np.array(values), dtype=torch.float32)  # noqa: E731
    task.world.place_arms(torch.arange(len(start)), single(start), torch.zeros(len(start), JOINTS))
    joints = []
    for t in range(references.shape[1]):
        command = single(references[:, t])
        for _ in range(round(step_s / SAMPLE_S)):
            task.advance(command, SAMPLE_S)
            joints.append(task.world.q.clone())
    return torch.stack(joints, 1).double().numpy()


def answer(twin: Twin, motion: Motion) -> np.ndarray:
    """Joints [S, 7] of the twin under a motion's references, with nothing to catch near it."""
    away = Placed((30.0, 0.0, 8.0), (0.0, 0.0, 0.0), tuple(motion.start))
    twin.reset(BALLS["ping-pong"], away, 0)
    per_sample, samples = round(SAMPLE_S / TICK_S), round(motion.step_s / SAMPLE_S)
    joints = []
    for reference in motion.references:
        twin.set_reference(reference)
        for _ in range(samples):
            twin.advance(per_sample)
            joints.append(twin.data.qpos[:JOINTS].copy())
    return np.array(joints)


def plate_weights(config: TwinConfig) -> np.ndarray:
    """[7] metres that a radian of each joint moves the plate at home; a radian of turning counts 0.3 m."""
    jacobian = Kinematics(config.home, config.mount).jacobian(np.array(config.home))
    return np.sqrt((jacobian[:3] ** 2).sum(axis=0) + (0.3**2) * (jacobian[3:] ** 2).sum(axis=0))


def errors(config: TwinConfig, motions: list[Motion]) -> np.ndarray:
    """Differences between twin and training world [K, S, 7], in metres of the plate."""
    twin, weights = Twin(config), plate_weights(config)
    return np.stack([(answer(twin, motion) - motion.joints) * weights for motion in motions])


def rms(differences: np.ndarray) -> float:
    """Root of the mean over samples of the joints' summed squares."""
    return float(np.sqrt((differences**2).sum(axis=-1).mean()))


def identify(policy: str, motions: int = 10, evaluations: int = 6) -> Identified:
    """Fit the twin's gains to the training world's answers; the policy's own are where it begins.

    Args:
        policy: Whose catches excite the joints.
        motions: Catches of the fit; as many others check it.
        evaluations: Iterations of the fit at most.
    """
    trained = catching_config(find_policy(policy))
    config = drive("rate-limit", trained)
    fit = catch_motions(policy, motions, FIT_SEED)
    first = np.log(np.concatenate((trained.stiffness, trained.damping)))

    def with_gains(logs: np.ndarray) -> TwinConfig:
        gains = np.exp(logs)
        return replace(config, stiffness=tuple(gains[:JOINTS]), damping=tuple(gains[JOINTS:]))

    def cost(logs: np.ndarray) -> np.ndarray:
        return errors(with_gains(logs), fit).ravel()

    # Two common factors first: the rate limit makes stiff gains oscillate, and no gradient leads out of it.
    grid = [
        np.repeat(np.log((scale, scale * extra)), JOINTS)
        for scale in (1.0, 0.5, 0.3, 0.2, 0.1)
        for extra in (1.0, 1.25, 1.5)
    ]
    common = first + min(grid, key=lambda factors: float((cost(first + factors) ** 2).sum()))
    # Then joint by joint, held near the common factors: catches excite some joints too little to tell.
    scale = HOLD * np.sqrt(sum(motion.joints.shape[0] for motion in fit))
    found = least_squares(
        lambda logs: np.concatenate((cost(logs), scale * (logs - common))),
        common,
        diff_step=0.02,
        max_nfev=evaluations,
    )
    after = with_gains(found.x)
    check, steps = catch_motions(policy, motions, CHECK_SEED), step_motions(trained)
    return Identified(
        stiffness=tuple(float(f"{gain:.4g}") for gain in after.stiffness),
        damping=tuple(float(f"{gain:.4g}") for gain in after.damping),
        catch_before=rms(errors(config, check)),
        catch_after=rms(errors(after, check)),
        step_before=rms(errors(config, steps)),
        step_after=rms(errors(after, steps)),
    )
