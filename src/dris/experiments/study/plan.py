"""What studies run: methods as values of one recipe, jobs, and how runs are scored."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import Any

from dris.belief.config import BeliefConfig
from dris.core.conditions import WORST_CASE, Condition, find_condition
from dris.core.constants import STUDY_SEED
from dris.core.files import to_json
from dris.core.typed import to_plain
from dris.evaluation.registry import find_task, full_name
from dris.learning.config import LITERAL_PPO, PpoConfig, TrainConfig

_E2E = {"encoder": "learned"}

PAPER_METHODS: dict[str, dict[str, Any]] = {
    # The paper's five.
    "e2e": {"instances": 1, "policy": _E2E},
    "dris-1": {"instances": 1},
    "dris-10": {"instances": 10},
    "dris-50": {"instances": 50},
    "dris-200": {"instances": 200},
    # What a reviewer asks for.
    "e2e-noise": {"instances": 1, "policy": _E2E, "noise": 2.0},
    "e2e-decay": {"instances": 1, "policy": _E2E, "ppo": {"decay_encoder": True}},
    "dris-50-noise": {"instances": 50, "noise": 2.0},
    "mean-reward-50": {"instances": 50, "policy": {"visible": "first"}},
    "dris-50-moments": {"instances": 50, "encoder": {"pooling": "moments"}},
    "dris-50-concat": {"instances": 50, "policy": {"conditioning": "concat"}},
    # As many instances as dris-50, each in an environment of its own.
    "e2e-x50": {"instances": 1, "policy": _E2E, "sets": 6400},
    # The same comparison in a fifth of the iterations, each run with its whole schedule: an iteration of 6400
    # environments takes as long as twenty of dris-50.
    "e2e-x50-short": {"instances": 1, "policy": _E2E, "sets": 6400, "iterations": 200},
    "dris-50-short": {"instances": 50, "iterations": 200},
}

_LOOP = {"instances": 1, "policy": _E2E, "noise": 4.0, "least_noise": 0.0}
# A run that goes on from another explores little: its updates are kept small.
_THEN = {"iterations": 150, "ppo": {"learning_rate": 1e-3, "desired_kl": 0.02}}

_ROBOT_PPO = {
    "weight_decay": 0.07, "decay_encoder": False, "gamma": 0.97, "desired_kl": 0.02, "least_std": 0.08,
}  # fmt: skip
# Single balls, lively from the start, for a policy that is to be taken to a robot: docs/reports/policies.md.
_ROBOT = {
    "instances": 1, "policy": _E2E, "iterations": 1200, "randomize": (("restitution", 0.4, 0.85),),
    "ppo": _ROBOT_PPO,
}  # fmt: skip
_ROUGHER = (("static_friction", 0.0, 0.5), ("dynamic_friction", 0.0, 0.5))
_LIVELIER = {
    **_ROBOT, "randomize": (("restitution", 0.5, 0.85), *_ROUGHER),
    "ppo": {**_ROBOT_PPO, "learning_rate": 2e-3},
}  # fmt: skip
_ROBOT_LOOP = {
    **_ROBOT, "iterations": 160, "randomize": (("restitution", 0.4, 0.85), *_ROUGHER),
    "noise": 4.0, "least_noise": 0.0, "delay_s": (0.0, 0.05),
    "belief": {"prior": (("restitution", 0.3, 0.85), *_ROUGHER)},
    "ppo": {**_ROBOT_PPO, "learning_rate": 7e-4},
}  # fmt: skip
BELIEF_METHODS: dict[str, dict[str, Any]] = {
    # The belief in the loop: after training with single balls, with sets, or from the start.
    "loop": {**_LOOP, **_THEN, "belief": {}, "after": "e2e"},
    "dris-loop": {**_LOOP, **_THEN, "policy": {}, "belief": {}, "after": "dris-10"},
    "loop-scratch": {**_LOOP, "belief": {}},
    # Whose reward counts, and what is seen of the belief.
    "loop-truth": {**_LOOP, **_THEN, "belief": {"reward": "truth"}, "after": "e2e"},
    "loop-worst": {**_LOOP, **_THEN, "belief": {"worst_share": 0.3}, "after": "e2e"},
    "loop-spread": {**_LOOP, **_THEN, "belief": {"view": "spread"}, "after": "e2e"},
    # Three steps to a policy for a robot: to catch, to calm lively and rough balls, to see by a belief.
    "robot-skill": _ROBOT,
    "robot-livelier": {**_LIVELIER, "after": "robot-skill"},
    "belief-robot": {**_ROBOT_LOOP, "after": "robot-livelier"},
}  # fmt: skip
METHODS = PAPER_METHODS | BELIEF_METHODS
"""What defines each method: values of the recipe. All else is the same for all. `after` names the method
whose run of the same preset and seed it goes on from."""


@dataclass(frozen=True)
class Job:
    """One run of a study."""

    method: str
    preset: str
    seed: int

    @property
    def name(self) -> str:
        """Unique within a study; also the name of its files."""
        return f"{self.preset}/{self.method}/{self.seed}" if self.preset else f"{self.method}/{self.seed}"


@dataclass(frozen=True)
class Study:
    """What is run, and how the runs are scored."""

    name: str
    recipe: TrainConfig
    jobs: tuple[Job, ...]
    conditions: tuple[str, ...]
    """That every run is scored under,"""
    more_conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """those of a preset alone,"""
    widely: tuple[str, ...] = ()
    """and those of methods that are looked at under all of `wide_conditions`."""
    wide_conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    tuned_apart: tuple[tuple[str, PpoConfig], ...] = ()
    """How the policies of some presets learn, where that was tuned apart from the others."""
    episodes: int = 2000
    """Per run and condition."""
    seed: int = STUDY_SEED
    """Of the scoring's episodes."""

    def config(self, job: Job) -> TrainConfig:
        """The recipe of a job."""
        recipe, changes = self.recipe_of(job), dict(METHODS[job.method])
        changes.pop("after", None)
        if "belief" in changes:
            changes["belief"] = BeliefConfig(**changes["belief"])
        for part in ("policy", "encoder", "ppo"):
            if part in changes:
                changes[part] = replace(getattr(recipe, part), **changes[part])
        return replace(recipe, **changes)

    def before(self, job: Job) -> Job | None:
        """The job whose run a job goes on from, if there is one."""
        method = METHODS[job.method].get("after")
        return None if method is None else replace(job, method=method)

    def recipe_of(self, job: Job) -> TrainConfig:
        """What all methods of a job's preset and seed have in common."""
        ppo = dict(self.tuned_apart).get(job.preset, self.recipe.ppo)
        preset = find_task(self.recipe.task).preset(job.preset)
        return replace(self.recipe, task_config=preset, seed=job.seed, ppo=ppo)

    def conditions_of(self, preset: str, method: str = "") -> tuple[str, ...]:
        """All that a run of a preset, or of a method on it, is scored under."""
        names = self.conditions + dict(self.more_conditions).get(preset, ())
        if not method or method in self.widely:
            names += dict(self.wide_conditions).get(preset, ())
        return scored_with(method, names)

    def episodes_of(self, condition: str) -> int:
        """Episodes of a condition: fewer where each costs more.

        A quarter on ramps, which last ten times longer; an eighth at each point of the worst case's grid.
        """
        if condition == WORST_CASE:
            return max(1, self.episodes // 8)
        ramp = split(condition)[1].startswith("ramp")
        return max(1, self.episodes // 4) if ramp else self.episodes

    def stamp(self, job: Job) -> dict[str, Any]:
        """All that decides a job's result."""
        config = to_plain(self.config(job))
        del config["encoder_from"]  # always the same encoder: that of preset and seed
        del config["policy_from"]  # and the same run before
        # A condition's values, not its name alone: whoever changes one must score all runs again.
        own = find_task(self.recipe.task).conditions()
        meant = {}
        for name in self.conditions_of(job.preset, job.method):
            belief, condition = split(name)
            meant[name] = name if name == WORST_CASE else meaning(find_condition(condition, own))
            if belief:
                meant[name] = f"{self.config(job).belief.named(belief)}, {meant[name]}"
        scored = {"conditions": meant, "episodes": self.episodes, "seed": self.seed}
        stamp = {"config": config, "scored": scored}
        if (before := self.before(job)) is not None:
            stamp["before"] = self.stamp(before)["config"]
        return json.loads(to_json(stamp))


def scored_with(method: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Of beliefs and conditions, those that a method is scored under.

    One that learned behind a belief is scored with that and without, not behind other filters.
    """
    if "belief" not in METHODS.get(method, {}):
        return names
    return tuple(name for name in names if split(name)[0] in ("", "none", "ensemble"))


def split(name: str) -> tuple[str, str]:
    """Belief and condition of what is scored, `belief/condition`; without a belief, the policy's own."""
    belief, _, condition = name.rpartition("/")
    return belief, condition


def meaning(condition: Condition) -> str:
    """What a condition changes, as text; what it leaves alone is left out."""
    values = {f.name: v for f in fields(condition) if (v := getattr(condition, f.name)) != f.default}
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def paper_study(quick: bool = False) -> Study:
    """The paper's simulation section, with baselines; quick: one small run of two methods.

    Presets: `released`, the environment behind the paper's figures; `paper`, its text taken literally;
    `exact`, that with balls that bounce as their numbers say.
    """
    noise = ("clean", "noise-1", "noise-2", "noise-3", "noise-4")
    recipe = TrainConfig(
        task=full_name("catching"), threads=1, evaluate_every=25, evaluate_episodes=500, evaluate_on=noise
    )
    ramps = ("ramp-1.3", "ramp-2.0", "ramp-1.3-noise-2", "ramp-2.0-noise-2")
    shifts = ("execution", "restitution", "delay-20", "delay-40", "delay-60")
    if quick:
        recipe = replace(
            recipe, sets=16, iterations=4, evaluate_every=2, evaluate_episodes=20,
            encoder=replace(recipe.encoder, episodes=1, sets=16, instances=20, set_sizes=(1, 20), passes=1),
        )  # fmt: skip
        jobs = tuple(Job(method, "released", 0) for method in ("e2e", "dris-10"))
        return Study("paper-quick", recipe, jobs, (*noise, "execution", "restitution"), episodes=50)
    five = ("e2e", "dris-1", "dris-10", "dris-50", "dris-200")
    noisy = ("e2e-noise", "dris-50-noise")
    others = ("e2e-decay", "mean-reward-50", "dris-50-moments", "dris-50-concat")
    jobs = tuple(Job(method, "released", seed) for seed in range(5) for method in five)
    jobs += tuple(Job(method, "released", seed) for seed in range(3) for method in noisy)
    jobs += tuple(Job("e2e-x50-short", "released", seed) for seed in range(2))
    jobs += tuple(Job("dris-50-short", "released", seed) for seed in range(3))
    jobs += tuple(Job(method, "paper", seed) for seed in range(5) for method in five)
    jobs += (Job("e2e-x50", "paper", 0),)  # one, as it takes as long as twenty others; so it begins early
    jobs += tuple(Job(method, "paper", seed) for seed in range(3) for method in (*noisy, *others))
    jobs += tuple(Job(method, "exact", seed) for seed in range(3) for method in five[:4])
    # Three runs tell a difference from five others; against each other it takes four.
    jobs += tuple(Job(method, "paper", 3) for method in noisy)
    sight = tuple(f"correlated-{k}" for k in (1, 2, 3, 4)) + ("dropout-20", "dropout-40")
    scored = (*noise, *shifts, *ramps, WORST_CASE)
    literal = tuple((preset, LITERAL_PPO) for preset in ("paper", "exact"))
    return Study("paper", recipe, jobs, scored, more_conditions=(("released", sight),), tuned_apart=literal)


def belief_study(quick: bool = False) -> Study:
    """What a belief brings: presets by policies by filters by conditions; quick: two small runs.

    `e2e`, `dris-10`, `dris-200` and `e2e-noise` are those of the paper's study in 400 iterations,
    each with its whole schedule: half of the time is scoring anyway.
    """
    study = paper_study(quick)
    filters = ("none", "kalman", "nominal", "ensemble", "particles")

    def seen(beliefs: tuple[str, ...], *conditions: str) -> tuple[str, ...]:
        return tuple(f"{belief}/{condition}" for belief in beliefs for condition in conditions)

    everywhere = seen(filters, "clean", "noise-2", "noise-4", "correlated-2")
    if quick:
        few = (Job("e2e", "released", 0), Job("loop-scratch", "released", 0))
        return replace(study, name="belief-quick", jobs=few, conditions=everywhere)
    between = seen(("none", "ensemble"), "noise-1", "noise-3")
    sight = ("bias-2", "dropout-40", "delay-20", "delay-40", "delay-60")
    physics = ("restitution", "friction", "radius", "execution", "soft-gains", "stiff-gains")
    ramps = seen(("none", "ensemble"), "ramp-1.3", "ramp-1.3-noise-2", "ramp-2.0", "ramp-2.0-noise-2")
    wide = seen(filters, *sight) + seen(("none", "ensemble"), *physics)
    more = tuple((preset, between + ramps) for preset in ("released", "fr3"))
    more += (("paper", between), ("exact", between))
    plain = ("e2e", "dris-10", "dris-200", "e2e-noise")
    looped = ("loop", "dris-loop", "loop-scratch", "loop-truth", "loop-worst", "loop-spread")
    literal = ("e2e", "dris-10", "loop")
    # A seed of everything, then the next: an interrupted study has something to say.
    jobs = tuple(
        Job(method, preset, seed)
        for seed in range(3)
        for preset, methods in (
            ("fr3", ("belief-robot",)), ("released", (*plain, *looped)),
            ("paper", literal), ("exact", literal),
        )
        for method in methods
    )  # fmt: skip
    # Curves are not what this study is about: a look at them every hundred iterations will do.
    recipe = replace(study.recipe, iterations=400, evaluate_every=100)
    return replace(
        study, name="belief", recipe=recipe, jobs=jobs, conditions=everywhere, more_conditions=more,
        widely=("e2e", "dris-200", "loop", "belief-robot"),
        wide_conditions=(("released", wide), ("fr3", wide)), episodes=500,
    )  # fmt: skip
