"""see-f: a sweep on a Ray cluster that loses a node, and one that is killed, end as a serial one.

Ray is installed into a folder of its own, at the release that the extra `cluster` names.
"""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
POINTS = 60
SWEEP = [
    *("sweep", "matmul", "--config", "tiny,small", "--set", "M=8,24,40", "--set", "N=8,16"),
    *("--set", "K=8,16,24,32,40"),
]
#: Fields that are times of the machine.
TIMES = ("compile_seconds", "run_seconds")
ON_A_CLUSTER = """
import sys, threading, time
from pathlib import Path
from ray.cluster_utils import Cluster
import tilewright
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
node = cluster.add_node(num_cpus=1)
log = Path(sys.argv[1]) / "points.jsonl"
def lines():
    return log.read_bytes().count(b"\\n") if log.exists() else 0
def kill():
    while lines() < 15:
        time.sleep(0.05)
    cluster.remove_node(node, allow_graceful=False)
    print("killed after", lines(), flush=True)
threading.Thread(target=kill, daemon=True).start()
code = tilewright.main([*sys.argv[2:], "--out", sys.argv[1], "--cluster", cluster.address])
sys.exit(code)
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def environment(*folders):
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, *folders)))}


def records(folder):
    """Records of a sweep by key, without the times of the machine; each key once."""
    lines = [json.loads(line) for line in (folder / "points.jsonl").read_text().splitlines()]
    assert len({line["key"] for line in lines}) == len(lines)
    return {
        line["key"]: {name: value for name, value in line.items() if name not in TIMES}
        for line in lines
    }


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serial")
    command = [sys.executable, "-m", "tilewright", *SWEEP, "--workers", "1", "--out", str(folder)]
    subprocess.run(command, env=environment(), check=True, capture_output=True, timeout=900)
    found = records(folder)
    assert len(found) == POINTS
    assert {each["status"] for each in found.values()} == {"verified"}
    return found


@pytest.fixture(scope="module")
def ray_folder(tmp_path_factory):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folder = tmp_path_factory.mktemp("ray")
    wanted = extras["optional-dependencies"]["cluster"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *wanted]
    subprocess.run(command, check=True, timeout=600)
    return folder


@pytest.mark.must("see-f", goal="60 points on two nodes, one killed: each once, as the serial run")
def test_a_cluster_that_loses_a_node_loses_no_point(tmp_path, serial, ray_folder, figure):
    command = [sys.executable, "-c", ON_A_CLUSTER, str(tmp_path), *SWEEP]
    done = subprocess.run(
        command, env=environment(ray_folder), capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (killed,) = [line for line in done.stdout.splitlines() if line.startswith("killed after")]
    assert int(killed.split()[-1]) < POINTS
    assert records(tmp_path) == serial
    figure(f"node {killed} of {POINTS} points; all {POINTS} once, equal to the serial run")


@pytest.mark.must("see-f", goal="a sweep killed midway continues: no finished point runs again")
def test_a_killed_sweep_continues(tmp_path, serial, figure):
    command = [sys.executable, "-m", "tilewright", *SWEEP, "--workers", "2", "--out", str(tmp_path)]
    log = tmp_path / "points.jsonl"
    kills = []
    for wanted in (10, 30):
        sweep = subprocess.Popen(
            command, env=environment(), stdout=subprocess.DEVNULL, start_new_session=True
        )
        while not log.exists() or log.read_bytes().count(b"\n") < wanted:
            assert sweep.poll() is None
            time.sleep(0.02)
        os.killpg(sweep.pid, signal.SIGKILL)
        sweep.wait()
        kills.append(log.read_bytes())
    done = subprocess.run(
        command, env=environment(), check=True, capture_output=True, text=True, timeout=900
    )
    finished = kills[-1].count(b"\n")
    assert f"{POINTS} points, {finished} of them" in done.stdout
    # Whole lines of a killed sweep stay as they are.
    assert log.read_bytes().startswith(kills[-1][: kills[-1].rindex(b"\n") + 1])
    assert records(tmp_path) == serial
    figure(f"killed at {kills[0].count(bytes([10]))} and {finished} of {POINTS} points")
