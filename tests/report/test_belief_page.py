"""The page of the belief's study, from files written by hand."""

import json

from dris.report.pages import report_folder


def row(success, slower):
    return {"success": success, "success_0.2": slower, "reward": 0.5}


def cell(folder, method, without, with_one, ramp):
    scores = {"none/noise-4": row(without, 0.9), "ensemble/noise-4": row(with_one, 0.95)}
    scores |= {"ensemble/ramp-2.0": {"success": ramp, "reward": 0.1}}
    found = {
        "kind": "study-run", "schema": 1, "method": method, "preset": "released", "seed": 0,
        "stamp": {"config": {"sets": 2, "iterations": 3}}, "seconds": 1.0, "peak_memory_mb": 1.0,
        "scores": scores, "curve": [],
    }  # fmt: skip
    file = folder / "released" / method / "0.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(found))


def test_it_sets_sets_and_filter_side_by_side_and_tells_what_a_belief_lacks(tmp_path):
    plan = {
        "kind": "study", "schema": 1, "name": "belief", "episodes": 10, "seed": 1,
        "jobs": [{"method": m, "preset": "released", "seed": 0} for m in ("e2e", "dris-10")],
        "conditions": ["none/noise-4", "ensemble/noise-4", "ensemble/ramp-2.0"],
    }  # fmt: skip
    (tmp_path / "study.json").write_text(json.dumps(plan))
    cell(tmp_path, "e2e", 0.51, 0.89, 0.71)
    cell(tmp_path, "dris-10", 0.61, 0.83, 0.97)
    told = [
        {"policy": "paper/e2e/0", "known": known, "noise": noise, "success": success, "success_0.2": 0.9875}
        for known, noise, success in (([], 4.0, 0.895), (["start"], 4.0, 0.965), ([], 2.0, 0.9775))
    ]
    ablation = {"kind": "ablation", "schema": 1, "episodes": 2000, "seed": 777, "rows": told}
    (tmp_path / "ablation.json").write_text(json.dumps(ablation))
    page = " ".join(report_folder(tmp_path, tmp_path / "page").read_text().split())
    purpose = page[page.index("What is the set for") : page.index("Preset <code>released</code></h2>")]
    e2e, sets = purpose.split('<td class="name">')[1:3]
    assert e2e.startswith("e2e") and sets.startswith("dris-10")
    # Without, behind it; the same at 0.2 m/s; ramps were not scored without.
    places = [e2e.index(text) for text in ("0.51 ", "0.89 ", "0.90 ", "0.95 ", "&ndash;", "0.71 ")]
    assert places == sorted(places) and "0.97 " in sets
    known = page[page.index("What it does not know") :]
    assert "noise-2</th><th>noise-4" in known and "2000 episodes, seed 777" in known
    assert '<td class="name">nothing more</td><td>0.978 / 0.988</td><td>0.895 / 0.988</td>' in known
    assert '<td class="name">start</td><td>0.965 / 0.988</td>' in known
