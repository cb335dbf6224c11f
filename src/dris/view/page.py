"""The page: viser's widgets around a session. Clicks wait in a queue until the session's own thread asks."""

from __future__ import annotations

import gc
import html
import math
import queue
import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dris.core.rollout import wilson
from dris.view.drawn import FIELD, Drawn
from dris.view.session import LIMITS, Session

TOLD_EVERY_S = 0.1
"""Figures and chart are told no more often: nobody reads faster [s]."""
LABELS = {
    "policy": "Policy", "world": "World", "start": "Start", "physics": "Ball", "belief": "Belief",
    "speed": "Speed", "colour_by": "Colour by", "instances": "Instances", "noise": "Noise [sigma]",
    "noise_correlation": "Noise correlation", "delay_ms": "Delay [ms]", "again": "Again by itself",
}  # fmt: skip
HINTS = {
    "policy": "Who acts, from the next throw on",
    "world": "training: where policies learn; twin: the laboratory, with perfect sight",
    "start": "own: as the sliders say; drawn: as in training",
    "physics": "of the ball that counts; the others of the set are drawn",
    "belief": "What stands between what is seen and the policy",
    "instances": "Balls in the set; with a belief, the real one and the belief's",
    "noise_correlation": "From one control step to the next (training world)",
    "delay_ms": "From seeing to acting (training world)",
}
AFAR = np.array([0.1, -1.1, 0.35])
"""From where one sees a throw's way as a whole, in its sizes from its middle."""
SERIES = ("#2f6fb0", "#db3236", "#3cba54", "#d9a400")


class Page:
    """Widgets and scene of one server. The thread that owns the session calls `update` over and over."""

    def __init__(self, server: Any, session: Session):
        """Lay out the page of a `viser.ViserServer`."""
        self._server, self._session = server, session
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._drawn = Drawn(server.scene)
        self._problem, self._told_s, self._follow = "", 0.0, False
        self._widgets: dict[str, Any] = {}
        server.gui.configure_theme(show_logo=False, show_share_button=False)
        server.gui.main_panel.dock_right()
        server.gui.set_panel_label("dris view")
        self._outcome = server.gui.add_html("")
        self._legend = server.gui.add_html("")
        self._lay_out()
        position, target = session.stage.camera
        server.initial_camera.position, server.initial_camera.look_at = position, target
        server.initial_camera.fov = FIELD
        _interval(0, 1)  # the first call takes a second
        self._begin()
        self._tell()

    def _lay_out(self) -> None:
        gui, session = self._server.gui, self._session
        self._button("Throw", self._throw, color="green")
        with gui.add_folder("Show"):
            self._dropdown("speed")
            self._group("Play", {"Pause": self._toggle_pause, "Step": self._step, "Reset": self._reset})
            self._checkbox("again")
            self._dropdown("colour_by")
            follow = gui.add_checkbox("Camera follows", False)
            follow.on_update(
                lambda event: self._ask(event, lambda: setattr(self, "_follow", bool(follow.value)))
            )
            looks = {"Whole": lambda: session.stage.camera, "Close-up": lambda: session.stage.close_up}
            if session.controls:
                looks["Thrower"] = self._afar
            self._group("Camera", {name: partial(self._look, of) for name, of in looks.items()})
        with gui.add_folder("Throw: how"):
            if session.controls:
                self._dropdown("start")
            for control in session.controls:
                unit = f" [{control.unit}]" if control.unit else ""
                span = (control.low, control.high)
                label = f"{control.name.capitalize()}{unit}"
                value = session.chosen[control.name]
                self._slider(f"start/{control.name}", label, span, value, control.meaning)
        with gui.add_folder("What is thrown"):
            self._dropdown("physics")
            for name, of in session.domain.items():
                unit, span = f" [{of.unit}]" if of.unit else "", session.physics_limits(name)
                label = f"{name.replace('_', ' ').capitalize()}{unit}"
                self._slider(f"physics/{name}", label, span, session.physics[name], of.meaning)
        with gui.add_folder("Who, and how well it sees"):
            for name in ("policy", "world", "belief"):
                self._dropdown(name)
            for name, limits in LIMITS.items():
                value = getattr(session.settings, name)
                self._slider(name, LABELS[name], (limits.low, limits.high), value, HINTS.get(name, ""))
        self._sketch()
        self._chart_of(session.stage.charted)

    def _chart_of(self, names: tuple[str, ...]) -> None:
        import viser.uplot

        series = (viser.uplot.Series(label="time [s]"),) + tuple(
            viser.uplot.Series(label=name, stroke=colour, width=2)
            for name, colour in zip(names, SERIES, strict=False)
        )
        self._charted = names
        empty = tuple(np.zeros(1) for _ in range(len(series)))
        self._chart = self._server.gui.add_uplot(
            empty, series, aspect=1.6, visible=bool(names),
            scales={"x": viser.uplot.Scale(time=False, auto=True), "y": viser.uplot.Scale(auto=True)},
        )  # fmt: skip

    # Widgets, each of which asks the session for something.

    def _ask(self, event: Any, what: Callable[[], None]) -> None:
        """From viser's threads: do something before the next frame, if a person asked and not the program."""
        if event.client is not None:
            self._asked.put(what)

    def _button(self, label: str, what: Callable[[], None], **look: Any) -> Any:
        button = self._server.gui.add_button(label, **look)
        button.on_click(lambda event: self._ask(event, what))
        return button

    def _group(self, label: str, buttons: dict[str, Callable[[], None]]) -> None:
        group = self._server.gui.add_button_group(label, tuple(buttons))
        group.on_click(lambda event: self._ask(event, buttons[group.value]))

    def _changing(self, name: str, widget: Any) -> Any:
        self._widgets[name] = widget
        widget.on_update(lambda event: self._ask(event, lambda: self._change(name, widget.value)))
        return widget

    def _dropdown(self, name: str) -> None:
        options, value = self._session.options()[name], getattr(self._session.settings, name)
        widget = self._server.gui.add_dropdown(
            LABELS[name], options, initial_value=value, hint=HINTS.get(name)
        )
        self._changing(name, widget)

    def _checkbox(self, name: str) -> None:
        value = getattr(self._session.settings, name)
        self._changing(name, self._server.gui.add_checkbox(LABELS[name], value))

    def _slider(self, name: str, label: str, span: tuple[float, float], value: float, hint: str) -> None:
        low, high = span
        whole = name == "instances"
        step = 1 if whole else _step_of(low, high)
        numbers = [int(x) if whole else float(x) for x in (low, high, step, value)]
        self._changing(name, self._server.gui.add_slider(label, *numbers, hint=hint or None))

    def _change(self, name: str, value: Any) -> None:
        self._session.change(name, value)
        if name == "policy":
            self._follow_policy()
        elif name == "colour_by":
            self._drawn.colour(self._session.frame.scene, value)
            self._show()
        elif name.startswith("start/"):
            self._widgets["start"].value = "own"
            self._session.change("start", "own")
            self._sketch()
        elif name.startswith("physics/"):
            self._widgets["physics"].value = "own"
            self._session.change("physics", "own")

    def _follow_policy(self) -> None:
        """Widgets show what the session kept for another policy."""
        for group, values in (("start", self._session.chosen), ("physics", self._session.physics)):
            for name, value in values.items():
                if (widget := self._widgets.get(f"{group}/{name}")) is not None:
                    widget.value = value

    def _throw(self) -> None:
        self._session.throw()
        self._session.paused = False
        self._begin()

    def _reset(self) -> None:
        self._session.reset()
        self._begin()

    def _step(self) -> None:
        self._session.step()
        self._show()

    def _toggle_pause(self) -> None:
        self._session.paused = not self._session.paused

    def _look(self, camera: Callable[[], tuple[Any, Any]]) -> None:
        for client in self._server.get_clients().values():
            client.camera.position, client.camera.look_at = camera()

    def _afar(self) -> tuple[Any, Any]:
        """From where the whole way of the chosen throw is seen, with the hand that can be dragged."""
        path = self._session.offered.sketch(self._session.chosen)
        if path is None:
            return self._session.stage.camera
        middle, size = path.mean(axis=0), np.linalg.norm(np.ptp(path, axis=0))
        return middle + size * AFAR, middle

    # The way that the chosen throw would take; its hand can be dragged.

    def _sketch(self) -> None:
        path = self._session.offered.sketch(self._session.chosen) if self._session.chosen else None
        if path is None:
            return
        self._server.scene.add_spline_catmull_rom(
            "/sketch", path, thickness=0.004, color=(90, 140, 90), segments=48
        )
        if "hand" not in self._widgets:
            hand = self._server.scene.add_transform_controls(
                "/hand", scale=0.25, active_axes=(True, True, False), disable_rotations=True, position=path[0]
            )
            self._widgets["hand"] = hand
            hand.on_update(lambda event: self._ask(event, lambda: self._drag(hand.position.copy())))
        elif np.linalg.norm(self._widgets["hand"].position - path[0]) > 1e-3:
            self._widgets["hand"].position = path[0]

    def _drag(self, point: np.ndarray) -> None:
        for name, value in self._session.offered.dragged(point).items():
            self._session.change(f"start/{name}", value)
            self._widgets[f"start/{name}"].value = value
        self._widgets["start"].value = "own"
        self._session.change("start", "own")
        self._sketch()

    # What the thread that owns the session calls.

    @property
    def watched(self) -> bool:
        """Whether anybody looks."""
        return bool(self._server.get_clients())

    def update(self, elapsed_s: float) -> None:
        """Do what was asked for, let time pass, and show it."""
        self.take()
        begun, over = self._session.begun, self._session.throws
        if self._session.play(elapsed_s):
            if self._session.begun != begun:  # again by itself
                self._begin()
            self._show(force=self._session.throws != over)

    def take(self) -> None:
        """Do what was asked for."""
        while True:
            try:
                asked = self._asked.get_nowait()
            except queue.Empty:
                return
            try:
                self._problem = ""
                asked()
            except ValueError as error:  # of what was asked for; the attempt goes on
                self._problem = str(error)
            self._tell()

    def _begin(self) -> None:
        """A new attempt is there; the last one, which holds megabytes and refers to itself, is let go."""
        gc.collect()
        session = self._session
        self._drawn.begin(session.stage, session.frame.scene, session.settings.colour_by)
        self._show(force=True)

    def _show(self, force: bool = False) -> None:
        with self._server.atomic():
            self._drawn.show(self._session.frame)
        if (legend := boxed(self._drawn.legend())) != self._legend.content:
            self._legend.content = legend
        if self._follow:
            for client in self._server.get_clients().values():
                client.camera.look_at = self._session.frame.scene.points[0]
        if force or self._session.paused or time.monotonic() - self._told_s > TOLD_EVERY_S:
            self._tell()

    def _tell(self) -> None:
        """Words, figures and chart."""
        self._told_s = time.monotonic()
        self._outcome.content = told(self._session, self._problem)
        rows = list(self._session.chart)
        if self._charted and rows:
            self._chart.data = tuple(np.ascontiguousarray(column) for column in np.array(rows, dtype=float).T)


def told(session: Session, problem: str = "") -> str:
    """What is going on, as HTML: outcome, running success, figures."""
    frame, outcome = session.frame, session.outcome
    if outcome is None:
        state = "paused" if session.paused else ("in flight" if frame.time_s < 0 else "at work")
    else:
        state = (
            "<b style='color:#1a7f37'>caught</b>" if outcome.success else "<b style='color:#cf222e'>lost</b>"
        )
        if outcome.instances > 1:
            state += f", {round(outcome.share * outcome.instances)} of {outcome.instances} of the set"
    rows = [("outcome", state), ("time [s]", f"{frame.time_s:.2f}")]
    if session.throws:
        low, high = _interval(session.successes, session.throws)
        rate = f"{session.successes} of {session.throws} <small>[{low:.2f}, {high:.2f}]</small>"
        rows.insert(1, ("this session", rate))
    for name, value in frame.scene.figures.items():
        rows.append((html.escape(name), "&ndash;" if math.isnan(value) else f"{value:.2f}"))
    cells = "".join(
        f"<tr><td>{name}</td><td style='text-align:right'>{value}</td></tr>" for name, value in rows
    )
    wrong = f"<p style='color:#cf222e'>{html.escape(problem)}</p>" if problem else ""
    return boxed(f"<table style='width:100%'>{cells}</table>{wrong}")


_interval = lru_cache(1)(wilson)  # milliseconds, and the figures are told ten times a second


def boxed(content: str) -> str:
    """HTML with viser's own margins."""
    return f"<div style='padding:.2em .8em;font-size:.85em'>{content}</div>"


def _step_of(low: float, high: float) -> float:
    """A round step, about a hundredth of the span."""
    return 10.0 ** math.floor(math.log10(max(high - low, 1e-6) / 20))
