"""The verb `fci-twin`."""

import signal
import subprocess
import sys

import pytest
from fci import RawClient

from dris.cli import laboratory


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop(stop):
    command = [sys.executable, "-m", "dris", "fci-twin", "--address", "127.0.4.1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = process.stdout.readline()
    assert "FCI version 10 on 127.0.4.1:1337" in first, process.stderr.read()
    client = RawClient("127.0.4.1")
    state = client.start()
    client.command(state, tau_J_d=[5.0] * 7)
    assert client.answer()[0] == 8
    process.send_signal(stop)
    said, wrong = process.communicate(timeout=30)
    client.close()
    assert process.returncode == 130 and wrong == ""
    came, began, stopped, ended, summary, left = said.splitlines()
    assert came.startswith("client 127.0.0.1:") and came.endswith(" came")
    assert began == "motion: external, none"
    assert stopped == "reflex: controller_torque_discontinuity"
    assert ended == "motion ended: reflex_aborted"
    assert ", 1 reflexes" in summary and left == "client left: the server ends"


def test_an_address_that_others_can_reach_is_refused():
    with pytest.raises(ValueError, match="must be a loopback address, 127.0.0.1 for instance, got '0.0.0.0'"):
        laboratory.fci_twin(address="0.0.0.0")
