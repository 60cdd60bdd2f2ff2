"""A session's owner is a process, and whether it runs does not depend on what its host is called."""

import os
import subprocess
import sys

import pytest

from turnkeeper.model.status import Owner
from turnkeeper.workspace.owner import is_alive, this_process

HERE = this_process()
pytestmark = pytest.mark.skipif(not HERE.boot, reason="this system does not tell which boot it is in")


def a_dead_process() -> Owner:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    return HERE.but(pid=gone.pid, started="long ago")


def test_this_process_is_alive() -> None:
    assert is_alive(HERE)


def test_a_process_is_alive_though_its_host_got_another_name() -> None:
    assert is_alive(HERE.but(host="the-former-name"))


def test_a_dead_process_is_dead_though_its_host_got_another_name() -> None:
    assert not is_alive(a_dead_process().but(host="the-former-name"))


def test_a_dead_process_is_dead_before_its_parent_asks_for_its_exit_code() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(HERE.but(pid=gone.pid, started=""))
    gone.wait()


def test_a_later_process_with_the_same_number_is_not_the_owner() -> None:
    assert not is_alive(HERE.but(host="the-former-name", started="1"))


def test_a_process_from_before_the_machine_was_started_anew_is_dead() -> None:
    assert not is_alive(HERE.but(boot="another boot"))
    assert not is_alive(HERE.but(boot="another boot", machine="")), "the host name stands in for the machine"


@pytest.mark.skipif(not HERE.machine, reason="this machine has no id")
def test_a_process_from_before_a_restart_is_dead_though_its_host_got_another_name() -> None:
    assert not is_alive(HERE.but(boot="another boot", host="the-former-name"))


def test_a_process_on_another_machine_counts_as_running() -> None:
    assert is_alive(HERE.but(host="elsewhere", machine="another", boot="another boot"))
    assert is_alive(a_dead_process().but(machine="another", boot="another boot")), "two machines may share a name"


def test_a_process_in_another_container_counts_as_running() -> None:
    assert is_alive(a_dead_process().but(host="a-container", namespace="pid:[1]"))


def test_a_container_made_anew_under_its_old_name_finds_the_former_process_dead() -> None:
    assert not is_alive(a_dead_process().but(namespace="pid:[1]"))


def test_an_owner_of_an_older_version_is_told_by_its_host_name() -> None:
    old = {"machine": "", "boot": "", "namespace": ""}
    assert is_alive(HERE.but(**old))
    assert not is_alive(a_dead_process().but(**old))
    assert is_alive(a_dead_process().but(host="elsewhere", **old))
