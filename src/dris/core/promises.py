"""The promises that DRIS asks of a task.

Each promise is one function below, named as a sentence. The audit asks of every domain parameter
that changing it changes what happens: randomization that has no effect is the commonest silent bug.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from dris.core.belief_promises import (
    a_belief_can_write_instances,
    looking_ahead_changes_nothing,
    the_real_instance_alone_ends_an_episode,
)
from dris.core.env import Env, EnvConfig
from dris.core.observed import what_is_observed_is_as_declared
from dris.core.probe import (
    MakeTask,
    TaskError,
    actions,
    episode,
    gap,
    global_draws,
    go_on,
    outcome,
    require,
)
from dris.core.rng import KeyedRng
from dris.core.task import Task

LEAST_EFFECT = 0.01
"""Least effect of a parameter that the audit accepts, in standard deviations of observation noise."""


def sizes_are_as_declared(make: MakeTask) -> None:
    """States, conditions, commands, rewards and successes have the declared shapes."""
    task, sets, instances = make(), 3, 4
    size = len(task.state_names)
    require(len(set(task.state_names)) == size, f"state_names repeat: {task.state_names}")
    require(len(task.noise_scale) == size, f"noise_scale has {len(task.noise_scale)} of {size} values")
    way_out = "what no sensor shows has one, too, the unit of the audit: leave it out of observed()"
    positive = all(s > 0 for s in task.noise_scale)
    require(positive, f"noise_scale must be positive: {task.noise_scale}; {way_out}")
    env = Env(task, EnvConfig(sets=sets, instances=instances))
    observation = env.reset()
    answer = task.command(torch.zeros(sets, task.action_size))
    pair = isinstance(answer, tuple) and len(answer) == 2
    require(pair, f"command() must return commands and what was limited, got {type(answer).__name__}")
    command, limited = answer
    found = {
        "states()": (observation.states, (sets, instances, size)),
        "condition()": (observation.condition, (sets, task.condition_size)),
        "command()[0]": (command, (sets, task.command_size)),
        "command()[1]": (limited, (sets,)),
        "initial_command()": (task.initial_command(), (sets, task.command_size)),
        "success()": (task.success(), (sets, instances)),
        **{f"reward_terms()['{n}']": (t, (sets, instances)) for n, t in task.reward_terms().items()},
    }
    for name, (tensor, shape) in found.items():
        require(tuple(tensor.shape) == shape, f"{name} has shape {tuple(tensor.shape)}, not {shape}")
        kind = torch.bool if name in ("success()", "command()[1]") else torch.float32
        require(tensor.dtype == kind, f"{name} is {tensor.dtype}, not {kind}")
    require(len(task.reward_terms()) > 0, "reward_terms() is empty: give the reward at least one term")
    ended = task.terminated()
    good = tuple(ended.shape) in ((sets,), (1,)) and ended.dtype == torch.bool
    require(good, f"terminated() is {tuple(ended.shape)} of {ended.dtype}, not ({sets},) of bool")


def all_instances_start_alike(make: MakeTask) -> None:
    """Instances of a set differ in their parameters, not in their first state."""
    task = make()
    first = Env(task, EnvConfig(sets=3, instances=5, seed=7)).reset().states
    require((first == first[:, :1]).all(), "states() differ between instances at the start")


def nothing_returned_is_reused(make: MakeTask) -> None:
    """Tensors handed out do not change when the task goes on."""
    task = make()
    env = Env(task, EnvConfig(sets=2, instances=3))
    before = env.reset().states
    kept = before.clone()
    env.step(actions(task, 2)[0])
    require((before == kept).all(), "states() returns the task's own memory: return a new tensor")


def an_episode_lasts_its_horizon(make: MakeTask) -> None:
    """Time-outs are truncations, and states and rewards stay finite until then."""
    task = make()
    env = Env(task, EnvConfig(sets=4, instances=3))
    env.reset()
    for count, action in enumerate(actions(task, 4), start=1):
        step = env.step(action)
        late = count == task.horizon
        require((step.truncated | step.terminated).all() == late or step.terminated.any(),
                 f"step {count} of {task.horizon}: truncated is {step.truncated.tolist()}")  # fmt: skip
        if bool(step.done.any()):
            return


def the_same_seed_gives_the_same_bits(make: MakeTask) -> None:
    """Two runs with one seed agree bit for bit, two seeds do not."""
    one, two, other = episode(make, 3, 4), episode(make, 3, 4), episode(make, 3, 4, seed=8)
    found = f"two runs with one seed differ, {differ}: " if (differ := gap(one, two)) else ""
    found = found or ("the seed has no effect: " if torch.equal(one[-1], other[-1]) else "")
    if drawn := global_draws(lambda: episode(make, 3, 4)):
        found += f"the task uses the global generator of {' and of '.join(drawn)}"
    elif found:
        found += "look for a generator of its own, the clock, or memory that was never set"
    require(
        not found,
        f"{found}. Take random numbers from the rng that begin() is given, rng.uniform(...) and "
        "rng.normal(...); draw there what later steps need",
    )


def a_set_does_not_depend_on_the_others(make: MakeTask) -> None:
    """The first sets of many are bit-identical to the same sets alone."""
    few, many = episode(make, 2, 3), episode(make, 5, 3)
    found = gap(few, [one[:2] for one in many])
    require(not found, f"states or rewards of sets 0 and 1 change when there are five sets, not two: {found}")


def an_instance_does_not_depend_on_the_others(make: MakeTask) -> None:
    """The first instances of a large set are bit-identical to a smaller set's (paper, Eq. 5)."""
    few, many = episode(make, 2, 1), episode(make, 2, 40)
    found = gap(few, [one[:, :1] for one in many])
    require(not found, f"states or rewards of instance 0 change when its set has 40 instances: {found}")


def permuting_instances_permutes_results(make: MakeTask) -> None:
    """Order carries no meaning."""
    sets, instances = 2, 6
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    index = torch.arange(sets)
    ends = []
    for permutation in (torch.arange(instances), order):
        task = make()
        task.allocate(sets, instances)
        rng = KeyedRng(3, index, index * 0, index * 0)
        parameters = task.domain.sample(rng, instances)[:, permutation]
        task.begin(index, parameters, rng)
        for action in actions(task, sets):
            task.advance(task.command(action)[0], task.step_s)
        ends.append(outcome(task))
    require(torch.equal(ends[0][:, order], ends[1]), "permuted parameters give other states or rewards")


def a_partial_reset_leaves_the_others_alone(make: MakeTask) -> None:
    """Beginning anew in one set changes nothing in another."""
    paths = []
    for partial in (False, True):
        task = make()
        env = Env(task, EnvConfig(sets=3, instances=2))
        env.reset()
        tried = actions(task, 3)
        env.step(tried[0])
        before = task.states()
        if partial:
            changed = env.reset(torch.tensor([1])).states[1]
            require(not torch.equal(changed, before[1]), "reset did not change set 1")
        env.step(tried[1])  # physics that was overwritten shows one step later
        paths.append(outcome(task)[[0, 2]])
    require(torch.equal(*paths), "resetting set 1 changed what becomes of sets 0 and 2")


def an_episode_leaves_nothing_behind(make: MakeTask) -> None:
    """The second episode of a set does not depend on what was done in its first."""
    ends = []
    for sign in (1.0, -1.0):
        task = make()
        env = Env(task, EnvConfig(sets=2, instances=2))
        tried = actions(task, 2)
        go_on(env, sign * tried)
        ends.append(go_on(env, tried))
    require(not gap(*ends), "the second episode depends on the first one's actions: clear it in begin()")


def actions_have_an_effect(make: MakeTask) -> None:
    """What is done changes what happens."""
    ends = []
    for sign in (1.0, -1.0):
        task = make()
        ends.append(go_on(Env(task, EnvConfig(sets=8, instances=1)), sign * actions(task, 8)))
    require(bool(gap(*ends)), "opposite actions give the same states and rewards")


def a_step_can_be_cut(make: MakeTask) -> None:
    """Advancing twice by half a step is advancing once, as delays need it to be."""
    task = make()
    pieces = round(task.step_s / task.substep_s)
    whole, cut = make(), make()
    ends = []
    for candidate, parts in ((whole, (pieces,)), (cut, (pieces // 2, pieces - pieces // 2))):
        env = Env(candidate, EnvConfig(sets=4, instances=3))
        env.reset()
        for action in actions(candidate, 4)[:5]:
            command, _ = candidate.command(action)
            for part in parts:
                if part:
                    candidate.advance(command, part * candidate.substep_s)
        ends.append(candidate.states())
    off = ((ends[0] - ends[1]).abs() / torch.tensor(task.noise_scale)).max()
    require(off < 0.05, f"cutting a step changes the states by {float(off):.3g} noise deviations")


def its_hooks_answer_as_declared(make: MakeTask) -> None:
    """conditions(), baselines() and policies() are asked of the class; draw() gives a picture or nothing."""
    task = make()
    for name in ("conditions", "baselines", "policies"):
        try:
            found = getattr(type(task), name)()
        except TypeError as error:
            raise TaskError(f"{name}() is asked of the class: make it a classmethod ({error})") from error
        require(hasattr(found, "items"), f"{name}() must give values by name, got {type(found).__name__}")
    for condition in type(task).conditions().values():
        task.domain.shifted(**{key: (low, high) for key, low, high in condition.domain})
        if condition.task:
            task.with_config(**dict(condition.task))
    if type(task).draw is not Task.draw:
        Env(task, EnvConfig(sets=1, instances=2)).reset()
        picture = task.draw(0)
        good = picture is None or (picture.dtype == "uint8" and picture.ndim == 3 and picture.shape[2] == 3)
        require(good, "draw() must give [height, width, 3] of uint8, or None")


def every_parameter_has_an_effect(make: MakeTask) -> str:
    """The audit: raises a TaskError that names a parameter without effect; returns the effects."""
    effects = audit(make)
    for name, effect in effects.items():
        require(
            effect >= LEAST_EFFECT,
            f"domain parameter '{name}' has no effect: from one end of its range to the other, states "
            f"move by {effect:.2g} standard deviations of observation noise (least: {LEAST_EFFECT})",
        )
    return "in noise deviations: " + ", ".join(f"{name} {effect:.1f}" for name, effect in effects.items())


def audit(make: MakeTask, sets: int = 64) -> dict[str, float]:
    """How much each domain parameter matters, one at a time.

    Two instances per set, alike but for one parameter at the ends of its range, under the same random
    actions. The effect is the largest distance of their states in an episode, in standard deviations
    of observation noise, averaged over sets.
    """
    effects = {}
    index = torch.arange(sets)
    for name in make().domain:
        task = make()
        task.allocate(sets, 2)
        ranges = list(task.domain.values())
        parameters = torch.tensor([[0.5 * (r.low + r.high) for r in ranges]]).repeat(sets, 2, 1)
        column = list(task.domain).index(name)
        parameters[:, 0, column] = ranges[column].low
        parameters[:, 1, column] = ranges[column].high
        task.begin(index, parameters, KeyedRng(11, index, index * 0, index * 0))
        largest = torch.zeros(sets)
        for action in actions(task, sets):
            task.advance(task.command(action)[0], task.step_s)
            states = task.states()
            apart = ((states[:, 0] - states[:, 1]).abs() / torch.tensor(task.noise_scale)).amax(dim=1)
            largest = torch.maximum(largest, apart)
        effects[name] = float(largest.mean())
    return effects


def it_can_be_built_and_begun(make: MakeTask) -> None:
    """The task is made without arguments, has all methods and attributes, and starts an episode."""
    task = make()
    missing = [name for name in Task.__annotations__ if not hasattr(task, name)]
    require(not missing, f"the task has no {', '.join(missing)}; see dris.core.task.Task for what they mean")
    Env(task, EnvConfig(sets=2, instances=2)).reset()


PROMISES: tuple[Callable[[MakeTask], str | None], ...] = (
    it_can_be_built_and_begun,
    sizes_are_as_declared,
    all_instances_start_alike,
    nothing_returned_is_reused,
    an_episode_lasts_its_horizon,
    the_same_seed_gives_the_same_bits,
    a_set_does_not_depend_on_the_others,
    an_instance_does_not_depend_on_the_others,
    permuting_instances_permutes_results,
    a_partial_reset_leaves_the_others_alone,
    an_episode_leaves_nothing_behind,
    actions_have_an_effect,
    a_step_can_be_cut,
    a_belief_can_write_instances,
    looking_ahead_changes_nothing,
    the_real_instance_alone_ends_an_episode,
    what_is_observed_is_as_declared,
    its_hooks_answer_as_declared,
    every_parameter_has_an_effect,
)
