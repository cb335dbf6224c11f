"""The view in a terminal: four lines that stay in place, and nothing where there is no terminal."""

import io
import re

import numpy as np
from arms_without_robots import HOME, TASK, SoftArm
from sessions import LAW, Sky

from dris.robot.session import Session
from dris.robot.terminal import LiveView, picture
from dris.robot.tick_times import TickTimes


class Screen(io.StringIO):
    """A terminal that understands lines, up, and what it is told to erase."""

    def isatty(self):
        return True

    def shown(self):
        rows, at = [], 0
        for piece in re.findall(r"\x1b\[\d*[AKJ]|\r|\n|[^\x1b\r\n]+", self.getvalue()):
            if piece.endswith("A") and piece.startswith("\x1b"):
                at -= int(piece[2:-1])
            elif piece == "\x1b[J":
                rows = rows[:at]
            elif piece == "\n":
                at += 1
            elif piece not in ("\r", "\x1b[K"):
                rows[at:] = [piece, *rows[at + 1 :]]
        return rows


def make():
    arm = SoftArm(q=HOME + 0.02)
    clock = lambda: arm.ticks * 1e-3  # noqa: E731
    sky = Sky(clock)
    return Session(arm, sky, lambda s, c: np.zeros(5), TASK, LAW, clock), arm, sky


def test_a_session_in_four_lines():
    session, arm, sky = make()
    assert picture(session)[1:3] == ["ball    none seen yet", "plate   the arm has told nothing yet"]
    session.connect()
    session.start()
    while session.state == "homing":
        session.tick()
    sky.thrown_s = session.clock()
    session.arm_now()
    while session.state != "catching":
        session.tick()
    for _ in range(10):
        session.tick()
    state, ball, plate, clauses = picture(session)
    assert state.startswith("state   catching, for 0.0 s; time")
    seen = session.seen.position
    assert (
        f"{seen[0]:+.3f} {seen[1]:+.3f} {seen[2]:+.3f} m" in ball and "last seen 11 ms ago" in ball
    )  # the tick it was seen in, and ten
    place = session.kinematics.plate(arm.q)[0]
    assert f"{place[0]:+.3f} {place[1]:+.3f} {place[2]:+.3f} m" in plate and "of its limit" in plate
    assert clauses.startswith("filter  now ")
    assert "give or take" not in ball
    sky.deviation = np.array([3e-3, 4e-3, 0.0, 0.0, 0.03, 0.04])
    for _ in range(50):  # until the next decision
        session.tick()
    assert "m/s, give or take 5 mm and 0.05 m/s; last seen" in picture(session)[1]
    session.stop("enough")
    assert picture(session)[0].startswith("state   stopped: enough, for 0.0 s")


def test_it_is_drawn_in_place_ten_times_a_second():
    session, _, _ = make()
    now, screen = [0.0], Screen()
    view = LiveView(screen, lambda: now[0])
    for tick in range(1000):  # a second
        now[0] = 1e-3 * tick
        view.show(session)
    assert screen.getvalue().count("state ") == 10 and len(screen.shown()) == 4
    view.clear()
    assert screen.shown() == []
    screen.write("caught\n")
    view.show(session)
    assert len(screen.shown()) == 5 and screen.shown()[0] == "caught"


def test_how_long_ticks_take_is_shown_in_a_line_of_its_own():
    session, _, _ = make()
    ticks, screen = TickTimes(), Screen()
    for _ in range(100):
        ticks.add(0.0012)
    LiveView(screen, lambda: 0.0).show(session, ticks)
    assert screen.shown()[4:] == ["ticks   1.20 ms, 1.20 ms at the 99th percentile; 0 over 20 ms so far"]


def test_nothing_is_written_where_there_is_no_terminal():
    session, _, _ = make()
    file = io.StringIO()
    view = LiveView(file)
    view.show(session)
    view.clear()
    assert file.getvalue() == "" and not view.on
