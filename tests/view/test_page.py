"""The page in a real browser: every control is moved, a ball thrown, its outcome read."""

import os
import re
import time
from pathlib import Path

import pytest

from dris.view.serve import session_of

SLIDERS = {
    "Distance [m]": ("start/distance", "1.8"), "Direction [deg]": ("start/direction", "30"),
    "Speed [m/s]": ("start/speed", "5.5"), "Spin [rad/s]": ("start/spin", "20"),
    "Radius [m]": ("physics/radius", "0.025"), "Static friction": ("physics/static_friction", "0.08"),
    "Dynamic friction": ("physics/dynamic_friction", "0.06"), "Restitution": ("physics/restitution", "0.45"),
    "Instances": ("instances", "12"), "Noise [sigma]": ("noise", "1"),
    "Noise correlation": ("noise_correlation", "0.5"), "Delay [ms]": ("delay_ms", "20"),
}  # fmt: skip
CHOICES = {
    "Start": ("start", "drawn"), "Ball": ("physics", "rubber"), "World": ("world", "twin"),
    "Belief": ("belief", "ensemble"), "Policy": ("policy", "veltrack"), "Colour by": ("colour_by", "radius"),
    "Speed": ("speed", "real time"),
}  # fmt: skip


def row(page, label):
    """The inputs that a label stands before."""
    return page.locator(f"xpath=//label[normalize-space()='{label}']/ancestor::*[.//input][1]//input")


def until(found, wanted, seconds=120):
    end = time.monotonic() + seconds
    while found() != wanted:
        assert time.monotonic() < end, f"{found()} is not {wanted}"
        time.sleep(0.05)


def value(session, name):
    group, _, key = name.rpartition("/")
    return (
        {"start": session.chosen, "physics": session.physics}[group][key]
        if group
        else getattr(session.settings, key)
    )


def choose(page, label, option):
    row(page, label).first.click()
    page.get_by_role("option", name=option, exact=True).click()


def test_a_person_moves_every_control_throws_and_reads_the_outcome(browser, serve_here, tmp_path):
    session = session_of("dris-200")
    session.change("start/direction", -20.0)
    address, asked, server = serve_here(session)
    page = browser.new_page()
    page.goto(address)
    page.get_by_text("this session").wait_for()  # the first throw is over by itself
    assert row(page, "Direction [deg]").last.input_value() == "-20"
    for label, (name, number) in SLIDERS.items():
        field = row(page, label).last
        field.fill(number)
        field.press("Enter")
        until(lambda name=name: value(session, name), pytest.approx(float(number)))
    assert (session.settings.start, session.settings.physics) == ("own", "own")
    for label, (name, option) in CHOICES.items():
        choose(page, label, option)
        until(lambda name=name: value(session, name), option)
    page.get_by_text("radius 0.0").first.wait_for()  # the legend
    for label, option in (("World", "training"), ("Belief", "none"), ("Policy", "dris-200"), ("Ball", "own")):
        choose(page, label, option)
    choose(page, "Start", "own")
    until(lambda: session.settings.start, "own")

    for label in ("Again by itself", "Camera follows"):
        box = row(page, label).first
        box.click()
        assert box.is_checked()
        box.click()
    until(lambda: session.settings.again, False)
    away = session.offered.sketch(session.chosen | {"distance": 1.25, "direction": -45.0})[0]
    asked._asked.put(lambda: asked._drag(away))  # as a drag of the hand ends
    until(lambda: session.chosen["distance"], pytest.approx(1.25))
    for label, number in (("Distance [m]", "1.25"), ("Direction [deg]", "-45")):
        until(lambda label=label: row(page, label).last.input_value(), number)
    for name in ("Thrower", "Close-up", "Whole", "Reset"):
        page.get_by_role("button", name=name, exact=True).click()
    until(lambda: session.throws, 0)

    throws = session._number
    page.get_by_role("button", name="Throw", exact=True).click()
    until(lambda: session._number, throws + 1)
    until(lambda: session.outcome is not None, True)
    assert session.outcome.success  # dris-200 at one sigma and 20 ms: 0.99 and more of all throws
    page.get_by_text(re.compile(rf"caught, {round(12 * session.outcome.share)} of 12 of the set")).wait_for()
    page.get_by_text(f"{session.successes} of {session.throws}").first.wait_for()

    page.get_by_role("button", name="Step", exact=True).click()  # first, or a slow click meets the end
    until(lambda: session.paused, True)
    begun = session.begun
    page.get_by_role("button", name="Reset", exact=True).click()
    until(lambda: session.begun, begun + 1)  # not the outcome's end: that comes before there is a new frame
    before = session.frame.time_s
    page.get_by_role("button", name="Step", exact=True).click()
    until(lambda: session.frame.time_s > before, True)
    page.get_by_role("button", name="Pause", exact=True).click()
    until(lambda: session.paused, False)
    until(lambda: session.outcome is not None, True)

    asked._asked.put(lambda: asked._change("policy", "../../etc/passwd"))  # as a forged message would
    page.get_by_text("policy must be one of dris-200").wait_for()
    assert session.settings.policy == "dris-200"

    second = browser.new_page()
    second.set_viewport_size({"width": 400, "height": 800})
    second.goto(address)
    second.get_by_text(f"{session.successes} of {session.throws}").first.wait_for()  # sees the same session
    assert len(server.get_clients()) == 2
    shots = Path(os.environ.get("DRIS_SCREENSHOTS", tmp_path))
    page.get_by_role("button", name="Close-up", exact=True).click()
    page.wait_for_timeout(1000)
    page.screenshot(path=shots / "view-1200.png")
    second.screenshot(path=shots / "view-400.png")
    second.close()
    page.close()
    until(lambda: len(server.get_clients()), 0)

    assert browser.errors == []
    elsewhere = [
        url for url in browser.asked if not re.match(rf"(blob:)?(http|ws)://{address[7:]}/|data:|about:", url)
    ]
    assert elsewhere == [] and f"ws://{address[7:]}/" in browser.asked
