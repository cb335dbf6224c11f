"""A study on a Ray cluster of two nodes, one of which dies in mid-run: nothing is lost or counted twice."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from test_study import small

from dris.experiments.study.plan import Job
from dris.experiments.study.runner import cell_file, run_study

HERE = Path(__file__).parent

SCRIPT = """
import json, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from ray.cluster_utils import Cluster
from dris.experiments.study.runner import run_study
from test_cluster import plan

if __name__ == "__main__":
    out = Path(sys.argv[1])
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    doomed = cluster.add_node(num_cpus=1)
    ended = []
    for job, error in run_study(plan(), out / "out", out / "work", ray=cluster.address):
        ended.append([job.name, error])
        if len(ended) == 1:
            cluster.remove_node(doomed, allow_graceful=False)
    (out / "ended.json").write_text(json.dumps(ended))
"""


def plan():
    """Four runs of a few seconds."""
    jobs = tuple(Job(method, "", seed) for seed in range(2) for method in ("e2e", "dris-10"))
    study = small(jobs=jobs)
    return replace(study, recipe=replace(study.recipe, iterations=24, evaluate_every=12))


def test_a_lost_node_loses_no_result(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path), str(HERE), str(HERE.parent / "helpers")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    ended = json.loads((tmp_path / "ended.json").read_text())
    assert sorted(ended) == sorted([job.name, ""] for job in plan().jobs)  # each once, none failed
    for job in plan().jobs:
        assert cell_file(tmp_path / "out", job).exists()
    # What a cluster finds is what this machine finds.
    one = plan().jobs[1]
    list(run_study(replace(plan(), jobs=(one,)), tmp_path / "here", tmp_path / "work-here"))
    here, there = (json.loads(cell_file(tmp_path / d, one).read_text()) for d in ("here", "out"))
    assert here["scores"] == there["scores"] and here["curve"] == there["curve"]
