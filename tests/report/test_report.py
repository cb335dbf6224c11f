"""The page about a run."""

import json
import re

import pytest

from dris.evaluation.scores import glossary
from dris.report import figures
from dris.report.run_page import report_run


def make_run(folder, success=0.8):
    folder.mkdir()
    config = {
        "task": "a:B", "preset": "", "sets": 4, "instances": 10, "seed": 3, "noise": 0.0,
        "policy": {"encoder": "frozen"},
    }  # fmt: skip
    rows = [{"iteration": k, "reward": 0.1 * k} for k in range(5)]
    rows[4]["clean/success"] = 0.5
    scores = [
        {"policy": "runs/mine", "condition": "clean", "seed": 9, "episodes": 100, "success": success,
         "low": 0.71, "high": 0.87, "success_0.2": 0.9},
        {"policy": "still", "condition": "clean", "seed": 9, "episodes": 100, "success": 0.1, "low": 0.06, "high": 0.17},
        {"policy": "still", "condition": "noise-2", "seed": 9, "episodes": 100, "success": 0.2, "low": 0.1, "high": 0.3},
    ]  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "versions.json").write_text('{"dris": "0.1", "changed files": "secret.py"}')
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "scores.json").write_text(json.dumps(scores))
    return folder


def test_the_page_shows_what_the_files_say(tmp_path):
    run = make_run(tmp_path / "run")
    (run / "catch.mp4").write_bytes(b"")
    page = report_run(run, run).read_text()
    assert "DRIS with N = 10" in page and "5 iterations of 4 sets, seed 3" in page
    assert '<td class="best">0.80 <small>[0.71, 0.87]' in page  # the better of the two is bold
    assert page.count("success 0.2: 0.90") == 1  # another measure, where there is one
    assert "<td>0.10" in page
    assert page.count("&ndash;") == 1  # mine was never measured at noise-2: shown as missing
    assert "catch.mp4" in page and "secret.py" not in page
    assert "with uncommitted changes" in page
    assert all((run / f"{name}.png").stat().st_size > 5000 for name in ("reward", "success"))


def test_the_page_says_what_names_mean(tmp_path):
    run, meant = make_run(tmp_path / "run"), glossary("catching")
    assert meant["success"] == "On the plate, and slower than 0.1 m/s"
    assert glossary("examples/no_task.py:CraneTask") == {}
    page = report_run(run, run, lambda task: meant | {"runs/mine": "a < b", "nobody": "gone"}).read_text()
    said = re.findall("<li>(.*)</li>", page)
    assert said == [
        "success: On the plate, and slower than 0.1 m/s",
        "success 0.2: On the plate, and slower than the speed in the name, in m/s",
        "runs/mine: a &lt; b",
        "still: Keep the plate level and where it is",
    ]


@pytest.mark.parametrize(
    ("iterations", "ticks"),
    [
        (1, [0, 1]),
        (4, [0, 1, 2, 3, 4]),
        (9, [0, 2, 4, 6, 8]),
        (400, [0, 100, 200, 300, 400]),
        (1000, [0, 200, 400, 600, 800, 1000]),
    ],
)
def test_iterations_are_counted_in_round_numbers(monkeypatch, iterations, ticks):
    monkeypatch.setattr(figures, "png", lambda figure, axes, **_: axes)
    metrics = [{"iteration": k, "reward": 0.1 * k} for k in range(iterations)]
    metrics[-1]["clean/success"] = 0.0  # a single point has no reach of its own
    for axes in figures.learning_curve(metrics).values():
        low, high = axes.get_xlim()
        assert [tick for tick in axes.get_xticks() if low <= tick <= high] == ticks


def test_the_page_says_how_often_success_was_measured(tmp_path):
    run = make_run(tmp_path / "run")
    assert "<figcaption>Success on single objects.</figcaption>" in report_run(run, run).read_text()
    config = json.loads((run / "config.json").read_text()) | {"evaluate_every": 2, "evaluate_episodes": 50}
    (run / "config.json").write_text(json.dumps(config))
    words = "Success on 50 single objects, after every 2 iterations and after the last."
    assert words in report_run(run, run).read_text()


def test_a_changed_score_changes_the_page(tmp_path):
    runs = make_run(tmp_path / "a", 0.8), make_run(tmp_path / "b", 0.83)
    pages = [report_run(run, run).read_text() for run in runs]
    assert [page.count("0.80 <small>") for page in pages] == [1, 0]
    assert [page.count("0.83 <small>") for page in pages] == [0, 1]


@pytest.mark.parametrize(("instances", "name"), [(1, "E2E"), (10, "DRIS with N = 10 and a learned encoder")])
def test_a_learned_encoder_is_end_to_end_for_one_instance(tmp_path, instances, name):
    run = make_run(tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    config |= {"instances": instances, "policy": {"encoder": "learned"}}
    (run / "config.json").write_text(json.dumps(config))
    assert f"<h1>run: {name}</h1>" in report_run(run, run).read_text()


def test_names_cannot_break_the_page(tmp_path):
    run = make_run(tmp_path / "a<b>")
    (run / "50% #1.mp4").write_bytes(b"")
    page = report_run(run, run).read_text()
    assert "a&lt;b&gt;" in page and "<b>" not in page and 'src="50%25%20%231.mp4"' in page


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no config.json, metrics.jsonl, versions.json"):
        report_run(tmp_path, tmp_path)
    run = make_run(tmp_path / "run")
    (run / "scores.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"scores.json: \[0\]: Expected `object`, got `int`"):
        report_run(run, run)
    (run / "metrics.jsonl").write_text("")
    with pytest.raises(ValueError, match="has not finished an iteration"):
        report_run(run, run)
