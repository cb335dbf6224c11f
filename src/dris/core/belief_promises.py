"""The promises that DRIS asks of a task that offers a belief."""

from __future__ import annotations

import torch

from dris.core.env import DivergedError, Env, EnvConfig
from dris.core.probe import NOT_OFFERED, MakeTask, actions, gap, outcome, require
from dris.core.task import Task


def a_belief_can_write_instances(make: MakeTask) -> str | None:
    """Writing back what was read changes nothing; gathered in another order, instances have that order.

    And the real one, instance 0, is not touched by what is written from 1 on.
    """
    if not make().offers_belief():
        return f"{NOT_OFFERED}: no belief can be put before its policies"
    sets, instances, order = 2, 5, torch.tensor([3, 0, 4, 1, 2])
    _states_come_first(make(), sets, instances)
    ends = []
    for way in ("untouched", "written", "gathered"):
        task = make()
        env = Env(task, EnvConfig(sets=sets, instances=instances, seed=7))
        env.reset()
        acting = actions(task, sets)
        for step, action in enumerate(acting[: max(6, len(acting) // 2 + 2)]):
            if step in (3, len(acting) // 2) and way == "written":  # late, too: things may touch then
                task.write_instances(task.read_instances())
            if step == 3 and way == "gathered":
                task.gather_instances(order.expand(sets, instances))
            env.step(action)
        ends.append(task.states())
    scale = torch.tensor(task.noise_scale)
    untouched, same, permuted = (end / scale for end in ends)
    off = (same - untouched).abs().max(), (permuted - untouched[:, order]).abs().max()
    require(
        off[0] < 0.05,
        f"writing back what was read changes states by {off[0]:.3g} noise deviations: is a range of "
        "instance_tensors narrower than what the domain draws?",
    )
    require(
        off[1] < 0.05,
        f"gathered in another order, instances differ by {off[1]:.3g} noise deviations: is a tensor that "
        "differs between instances missing from instance_tensors?",
    )
    wished, real = task.states() + 0.1 * scale, task.read_instances()[:, :1]
    task.write_instances(task.read_instances()[:, 1:], first=1)
    task.gather_instances(torch.tensor([1, 1, 2, 4]).expand(sets, 4), first=1)
    copies = task.read_instances()
    require(torch.equal(copies[:, 1], copies[:, 2]), "gathered twice, an instance has two different copies")
    task.place_states(wished[:, 1:], first=1)
    require(torch.equal(task.read_instances()[:, :1], real), "written from instance 1 on, instance 0 changes")
    missed = ((task.states() - wished)[:, 1:] / scale).abs().median()
    require(missed < 0.05, f"place_states puts instances {missed:.3g} noise deviations from where it should")
    return None


def _states_come_first(task: Task, sets: int, instances: int) -> None:
    """Of what is read of an instance; a task with methods of its own keeps what it likes."""
    if not task.instance_tensors:
        return
    Env(task, EnvConfig(sets=sets, instances=instances, seed=7)).reset()
    size, read = len(task.state_names), task.read_instances()
    first = next(iter(task.instance_tensors))
    require(
        read.shape[2] >= size and torch.equal(read[..., :size], task.states()),
        f"instance_tensors must name the states first, and '{first}' does not hold what states() gives",
    )


def looking_ahead_changes_nothing(make: MakeTask) -> str | None:
    """What `restore_state` brings back goes on as if nobody had looked ahead."""
    task = make()
    if not (task.instance_tensors or type(task).save_state is not Task.save_state):
        return f"{NOT_OFFERED}: no belief can look ahead over a delay"
    paths = []
    for looks in (False, True):
        task = make()
        env = Env(task, EnvConfig(sets=3, instances=4, seed=7))
        env.reset()
        path = []
        for action in actions(task, 3):
            if looks:
                saved = task.save_state()
                for _ in range(2):
                    task.advance(task.initial_command(), task.step_s)
                task.restore_state(saved)
            done = env.step(action).done
            path.append(outcome(task))
            if bool(done.any()):
                break
        paths.append(path)
    require(
        not (found := gap(*paths)),
        f"after save_state, advance and restore_state an episode goes on otherwise, {found}: save all that "
        "advance changes, a clock or a simulator's memory, too",
    )
    return None


def the_real_instance_alone_ends_an_episode(make: MakeTask) -> str | None:
    """Where instance 0 is the real one, it ends an episode, and where others are believed to be does not."""
    if not make().offers_belief():
        return f"{NOT_OFFERED}: no belief can be put before its policies"
    for moved, meaning in (
        ("believed", "follows from instances that are only believed"),
        ("real", "does not follow from the real instance alone"),
    ):
        for off in (1000.0, 30.0, 3.0):  # noise deviations: nearer and nearer to where they may well be
            alone, among = (_ends(make, instances, off, moved) for instances in (1, 4))
            found = "" if alone is None or among is None else gap(alone, among)
            require(
                not found, f"terminated() {meaning}, {found}: where `first_is_real`, look at instance 0 alone"
            )
    return None


def _ends(make: MakeTask, instances: int, off: float, moved: str) -> list[torch.Tensor] | None:
    """Which of three sets have terminated [3] before and after every step, some instances placed so far off.

    None where such instances leave physics, as a belief would replace them.
    """
    task = make()
    task.first_is_real = True
    env = Env(task, EnvConfig(sets=3, instances=instances, seed=7))
    env.reset()
    ends = []
    away = off * torch.tensor(task.noise_scale) * torch.tensor([[1.0], [-1.0], [3.0]])
    for action in actions(task, 3):
        states = task.states().clone()
        if moved == "real":
            states[:, :1] += away[:, None]
            task.place_states(states)
        elif instances > 1:
            task.place_states(states[:, :1] + away[:, None].expand(-1, instances - 1, -1), first=1)
        ends.append(task.terminated().expand(3).float())
        try:
            step = env.step(action)
        except DivergedError:
            return None
        ends.append(step.terminated.float())
        if bool(step.done.any()):
            break
    return ends
