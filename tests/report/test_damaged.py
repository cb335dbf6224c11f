"""Damaged result files: a page about what is there, or one line that names the file, and nothing written."""

import json
import random
import shutil

import pytest
from test_report import make_run

from dris.learning.config import TrainConfig
from dris.learning.run_folder import claim_folder
from dris.report import figures
from dris.report.pages import report_folder

DEEP = "[" * 100_000
ODD = (
    None, True, 0, -1, 7, 2.5, 1e308, -1e308, 10**30, float("nan"), float("inf"), "", "x", "../x", "a\nb",
    "\x00", "\ud800", "$", [], {}, [1], [None], {"a": 1}, [[]] * 50,
)  # fmt: skip


def score(success, **more):
    return {"success": success, "reward": success, "low": 0.0, "high": 1.0, **more}


def study(folder):
    """Two methods of two seeds, in the form of before kinds were written, and the outside check."""
    conditions = ["clean", "noise-2", "restitution"]
    jobs = [{"method": m, "preset": "paper", "seed": s} for m in ("e2e", "dris-10") for s in (0, 1)]
    plan = {"name": "paper", "jobs": jobs, "conditions": conditions, "episodes": 10, "seed": 1}
    rows = [{"world": "training", "condition": c, **score(0.5), "success_0.2": 0.6} for c in conditions]
    files = {"study.json": plan, "../released/outside.json": {"kind": "outside", "schema": 1, "rows": rows}}
    for job in jobs:
        files[f"paper/{job['method']}/{job['seed']}.json"] = {
            **job, "stamp": {"config": {"sets": 8, "iterations": 100}}, "seconds": 60.0, "peak_memory_mb": 512.0,
            "scores": {c: score(0.5 + 0.1 * job["seed"]) for c in conditions},
            "curve": [{"iteration": k, "clean/success": 0.5, "noise-2/reward": 0.1} for k in (30, 90)],
        }  # fmt: skip
    return {folder / name: content for name, content in files.items()}


def theory(folder):
    down, sizes = [1.0, 0.5, 0.2], [1, 2, 5]
    return {
        folder / "theory.json": {
            "kind": "theory", "schema": 1, "config": {"policy": "dris-50", "sets": 8, "std": 0.1, "step": 8, "seed": 1},
            "propagation": {"largest_difference": 0.0, "instances": 20},
            "gradient": {"sizes": sizes, "variance": down, "seen": down, "falling": down[:2], "fitted": down[:2], "rho": 0.3, "power": 1.0},
            "local_cost": {"sizes": sizes, "noise": down, "signal": down, "signal_spread": down, "true": 0.1, "power": -0.5, "convex": 0.9, "step": 8},
            "estimation": {"sizes": sizes, "error": down, "power": -0.5},
        }
    }  # fmt: skip


def trials(folder):
    outcome = {"caught": True, "speed_share": 0.9, "torque_share": 0.5, "torque_rate_share": 1.5}
    config = {
        "kind": "ramps",
        "policies": ["e2e", "still"],
        "trials": 2,
        "seed": 1,
        "drive": "ideal",
        "sight": "perfect",
    }
    table = {
        f"{p}/foam/R = 0.20 m/{k}": dict(outcome, caught=k == 0) for p in config["policies"] for k in (0, 1)
    }
    return {
        folder / "ramps.json": {
            "kind": "trials",
            "schema": 1,
            "config": config,
            "trials": table,
            "totals": {},
        }
    }


def run(folder):
    make_run(folder)
    names = ("config.json", "versions.json", "scores.json")
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {folder / name: json.loads((folder / name).read_text()) for name in names} | {
        folder / "metrics.jsonl": lines
    }


def text_of(file, content):
    if file.suffix == ".jsonl" and isinstance(content, list):
        return "".join(json.dumps(row) + "\n" for row in content)
    return json.dumps(content)


def write(files):
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text_of(file, content))


def places(content):
    """Containers of a document with a key of theirs."""
    keys = (
        content.keys()
        if isinstance(content, dict)
        else range(len(content))
        if isinstance(content, list)
        else ()
    )
    for key in keys:
        yield content, key
        yield from places(content[key])


def damaged(file, content, chance: random.Random) -> bytes:
    """The file's text after one mishap."""
    way = chance.randrange(10)
    if way < 6:
        container, key = chance.choice(list(places(content)))
        if way < 4:
            container[key] = chance.choice(ODD)
        elif way == 4:
            del container[key]
        elif isinstance(container, dict):
            container[chance.choice(("kind", "schema", "extra", "success", "a$b/success"))] = chance.choice(
                ODD
            )
        else:
            container.append(chance.choice(ODD))
        return text_of(file, content).encode()
    text = text_of(file, content).encode()
    at = chance.randrange(len(text))
    return (
        text[:at],
        text[:at] + bytes(chance.randrange(256) for _ in range(3)) + text[at + 3 :],
        text[:at] + DEEP.encode() + text[at:],
        chance.choice(
            (b"", b"null", b"[]", b"{}", b"3", b'"x"', b"[" + b"0," * 100_000 + b"0]", DEEP.encode())
        ),
    )[way - 6]


@pytest.mark.parametrize(("make", "cases"), [(run, 100), (study, 40), (theory, 100), (trials, 100)])
def test_a_damaged_file_is_named_in_a_line_and_nothing_is_written(make, cases, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "png", lambda *arguments, **options: b"")  # slow, and past all reading
    chance, told, shown = random.Random(make.__name__), 0, 0
    for case in range(cases):
        folder, out = tmp_path / str(case) / "results", tmp_path / str(case) / "page"
        folder.parent.mkdir()
        files = make(folder)
        write(files)
        file = chance.choice(list(files))
        file.write_bytes(damaged(file, files[file], chance))
        try:
            assert report_folder(folder, out) == out / "index.html"
            shown += 1
        except ValueError as error:
            words = str(error)
            assert "\n" not in words and any(one.name in words for one in files), words
            assert not out.exists(), words
            told += 1
        shutil.rmtree(folder.parent)
    assert told > cases / 3 and shown > 0  # both happen


@pytest.mark.parametrize(
    ("file", "keys", "value", "words"),
    [
        ("paper/e2e/0.json", ("scores",), None, "0.json: scores: Expected `object`, got `null`"),
        ("paper/e2e/0.json", ("scores", "clean"), 3, "0.json: scores.clean: Expected `object`, got `int`"),
        ("paper/e2e/0.json", ("scores", "clean", "success"), None, "0.json: scores.clean.success: Expected `float`"),
        ("paper/e2e/0.json", ("scores", "clean", "success"), float("nan"), "0.json: scores.clean.success = nan"),
        ("paper/e2e/0.json", ("scores", "clean", "success"), 7, "0.json: scores.clean.success = 7: Expected `float` <= 1"),
        ("paper/e2e/0.json", ("curve",), [1], "0.json: curve[0]: Expected `object`, got `int`"),
        ("paper/e2e/0.json", ("seconds",), "x", "0.json: seconds: Expected `float | null`, got `str`"),
        ("paper/e2e/0.json", ("kind",), "trials", "0.json is of kind 'trials', schema 1, not of 'study-run', 1"),
        ("study.json", ("jobs",), 3, "study.json: jobs: Expected `array`, got `int`"),
        ("study.json", ("conditions",), 5, "study.json: conditions: Expected `array`, got `int`"),
        ("study.json", ("jobs", 0, "method"), "../../x", "study.json: jobs[0].method: Expected `str` matching"),
        ("study.json", ("schema",), 2, "study.json is of kind 'study', schema 2"),
        ("../released/outside.json", ("rows", 0, "reward"), None, "outside.json: rows[0].reward: Expected `float`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(tmp_path, file, keys, value, words):
    files = study(tmp_path / "results")
    content = files[tmp_path / "results" / file]
    for key in keys[:-1]:
        content = content[key]
    content[keys[-1]] = value
    write(files)
    with pytest.raises(ValueError) as error:
        report_folder(tmp_path / "results", tmp_path / "page")
    assert words in str(error.value) and not (tmp_path / "page").exists()


def test_a_missing_key_is_named_with_its_file(tmp_path):
    files = study(tmp_path / "results")
    del files[tmp_path / "results/paper/dris-10/1.json"]["scores"]["noise-2"]
    write(files)
    with pytest.raises(ValueError, match=r"dris-10/1\.json: scores: there is no noise-2"):
        report_folder(tmp_path / "results", tmp_path / "page")


def test_a_folder_with_results_of_two_kinds_is_refused(tmp_path):
    write(theory(tmp_path) | trials(tmp_path))
    with pytest.raises(ValueError, match=r"several kinds \(theory, trials\)"):
        report_folder(tmp_path, tmp_path / "page")


def test_json_that_is_too_deep_is_refused_wherever_it_is_read(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(DEEP)
    with pytest.raises(ValueError, match="config.json is not JSON"):
        claim_folder(tmp_path, TrainConfig(), write=False)


def test_files_from_before_kinds_are_known_by_their_place(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "png", lambda *arguments, **options: b"")
    write(study(tmp_path / "study") | theory(tmp_path / "theory") | trials(tmp_path / "trials"))
    found = {}
    for name in ("study", "theory", "trials"):
        for file in (tmp_path / name).rglob("*.json"):
            content = json.loads(file.read_text())
            file.write_text(json.dumps({k: v for k, v in content.items() if k not in ("kind", "schema")}))
        found[name] = report_folder(tmp_path / name, tmp_path / f"{name} page").read_text()
    assert "4 of 4 runs are in" in found["study"] and "The theory, measured" in found["theory"]
    # Of two policies: the one cell, all, all below the speed limit; their torques change too fast.
    assert [found["trials"].count(f"{k} / 2 <small>") for k in (0, 1, 2)] == [2, 6, 0]
