"""How a task shows itself in 3-D (`dris view`, `dris play --html`), and what a person may choose of a start.

Plain values: nothing here draws. Lengths are in metres, quaternions (w, x, y, z), colours 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["box", "sphere", "ellipsoid", "capsule", "cylinder", "mesh"]
GREY = (0.75, 0.77, 0.80)
LOW, HIGH, LOST, GHOST = (1.0, 0.80, 0.10), (0.80, 0.05, 0.20), (0.55, 0.55, 0.60), (0.0, 0.43, 1.0)
"""Colours of the lowest and the highest value of a set, of what is lost, and of what the policy sees."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A rigid shape on a body."""

    body: int
    """Which of the scene's bodies it moves with."""
    kind: Kind
    size: tuple[float, ...] = ()
    """box: three half lengths; sphere: radius; ellipsoid: three radii; capsule, cylinder: radius and half
    length along z, a capsule's without its caps; mesh: nothing."""
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """In the body's frame."""
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    colour: tuple[float, float, float] = GREY
    vertices: np.ndarray | None = None
    """[V, 3] of a mesh."""
    faces: np.ndarray | None = None
    """[F, 3] of a mesh."""


@dataclass(frozen=True)
class Control:
    """A number that a person may choose for a start."""

    name: str
    low: float
    high: float
    default: float
    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True, eq=False)
class Scene:
    """One set as it is at a moment: K bodies, N instances."""

    positions: np.ndarray
    """[K, 3] of the bodies."""
    quaternions: np.ndarray
    """[K, 4]"""
    points: np.ndarray
    """[N, 3] centres of the instances, drawn as balls."""
    radii: np.ndarray
    """[N]"""
    lost: np.ndarray
    """[N] which are out of the game, and drawn grey."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Told beside the picture, by name and unit ("speed [m/s]"), of the first instance; NaN: none now."""
    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)
    """[N] each, what instances can be coloured by; empty: the domain's."""


@dataclass(frozen=True, eq=False)
class Frame:
    """What is shown at a moment."""

    time_s: float
    """Since the attempt began; negative: before it."""
    scene: Scene
    ghost: np.ndarray | None
    """[3] where the policy sees the first instance, or the mean of its belief; None: nowhere."""
    words: str = ""
    """Told beside the picture, such as the state of a robot's session."""


class Stage:
    """What a task shows of itself; `Task.stage` returns one, which looks at that task.

    Attributes:
        shapes: Of the robot and its surroundings.
        controls: What a person may choose of a start; without any, starts are drawn.
        charted: Names of the figures that are also drawn against time.
        camera: Where one looks from, and at what [m].
        close_up: The same, from near.
    """

    shapes: tuple[Shape, ...] = ()
    controls: tuple[Control, ...] = ()
    charted: tuple[str, ...] = ()
    camera: tuple[tuple[float, float, float], tuple[float, float, float]] = (
        (2.0, -2.0, 1.5),
        (0.0, 0.0, 0.0),
    )
    close_up: tuple[tuple[float, float, float], tuple[float, float, float]] = camera

    def scene(self, which: int) -> Scene:
        """One set as it is now."""
        raise NotImplementedError

    def points_of(self, which: int, states: Any) -> np.ndarray | None:
        """Where instances of a set with states [M, S] would be drawn [M, 3]: shows what a policy sees.

        None: that is not shown.
        """
        return None

    def configured(self, values: Mapping[str, float]) -> Any:
        """The task's configuration for a start with chosen values of `controls`."""
        raise NotImplementedError

    def sketch(self, values: Mapping[str, float]) -> np.ndarray | None:
        """The way [K, 3] that a start with chosen values would take; None: it is not sketched."""
        return None

    def dragged(self, point: np.ndarray) -> dict[str, float]:
        """Values of `controls` that put the sketch's first point nearest to a point [3]."""
        return {}

    def begun(self, which: int, values: Mapping[str, float], instances: int) -> None:
        """Change what a configuration cannot, such as spin, in the first instances of a set just begun."""

    def before(self, scene: Scene, time_s: float) -> Scene | None:
        """The scene so long before an episode that begins with `scene`; None: that is not known."""
        return None
