#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes the exporter, and the examples are what it takes:
prometheus.py TOOL NVML ROOT

It skips where prometheus and promtool (Debian: prometheus) are not installed.
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import pages
from server import Exporter, has_server

tool, driver, root = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
examples = root / "example" / "monitoring"
here = pathlib.Path(__file__).resolve().parent
SCRAPES = 3
CONFIG = """\
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [{rules}]
scrape_configs:
  - job_name: drystone
    static_configs: [{{targets: ["{target}"]}}]
"""


def promtool(*words):
    done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def check_files():
    """The alerts and the configuration are well formed, and the alerts fire when they should."""
    promtool("check", "rules", examples / "alerts.yml")
    promtool("check", "config", examples / "prometheus.yml")
    promtool("test", "rules", here / "alerts_test.yml")


def panels():
    return json.loads((examples / "dashboard.json").read_text())["panels"]


def check_dashboard():
    """Grafana 10 can import it: panels in a grid, each with queries of the chosen data source."""
    board = json.loads((examples / "dashboard.json").read_text())
    assert board["schemaVersion"] == 38 and board["id"] is None and board["uid"]
    names = [variable["name"] for variable in board["templating"]["list"]]
    assert names == ["datasource", "instance", "name"], names
    cells, ids = set(), set()
    for panel in panels():
        assert panel["type"] in ("timeseries", "stat") and panel["title"], panel
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel
        ids.add(panel["id"])
        grid = panel["gridPos"]
        mine = {(x, y) for x in range(grid["x"], grid["x"] + grid["w"])
                for y in range(grid["y"], grid["y"] + grid["h"])}
        assert not mine & cells and grid["x"] + grid["w"] <= 24, panel["title"]
        cells |= mine
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters)) and letters[0] == "A", letters
        for target in panel["targets"]:
            assert target["expr"] and target["datasource"] == panel["datasource"], target
            assert set(re.findall(r"\$\w+", target["expr"])) <= {"$instance", "$name",
                                                                 "$__rate_interval"}
    assert len(ids) == len(panels()) and len(panels()) >= 12


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as peer:
        return peer.getsockname()[1]


class Prometheus:
    """A Prometheus with data of its own, which scrapes one target."""

    def __init__(self, work, target):
        (work / "prometheus.yml").write_text(
            CONFIG.format(rules=examples / "alerts.yml", target=target))
        self.port = free_port()
        self.log = open(work / "log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={work / 'prometheus.yml'}",
             f"--storage.tsdb.path={work / 'data'}",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            stdout=self.log, stderr=subprocess.STDOUT)

    def get(self, path, **words):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=30) as reply:
            told = json.load(reply)
        assert told["status"] == "success", told
        return told["data"]

    def ask(self, expression):
        """[(labels, value)] of an instant query."""
        return [(row["metric"], float(row["value"][1]))
                for row in self.get("query", query=expression)["result"]]

    def wait_for(self, expression, is_so):
        """Ask until it is so, for a minute at most."""
        told = None
        for _ in range(240):
            try:
                told = self.ask(expression)
                if told and is_so(told[0][1]):
                    return told
            except OSError:
                assert self.process.poll() is None, pathlib.Path(self.log.name).read_text()
            time.sleep(0.25)
        raise AssertionError((expression, told, self.get("targets")))

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def check_scrapes(prometheus, page):
    """Figures arrive, and change with the page; the target has nothing to complain of."""
    prometheus.wait_for("count_over_time(up[1m])", lambda count: count >= SCRAPES)
    (labels, value), = prometheus.ask('drystone_process_reserved_bytes{rank="0"}')
    assert value == 9 << 30, value
    assert labels["name"] == 'a"\\é' and labels["exported_pod"] == "train-0", labels
    assert labels["job"] == "drystone" and labels["allocator"] == "torch", labels
    page.update(0, reserved=(9 << 30) + 4096, ooms=8)
    prometheus.wait_for('drystone_process_reserved_bytes{rank="0"}',
                        lambda value: value == (9 << 30) + 4096)
    assert prometheus.ask('drystone_process_ooms_total{rank="0"}')[0][1] == 8
    target, = prometheus.get("targets")["activeTargets"]
    assert target["health"] == "up" and not target["lastError"], target
    kinds = {name: told[0] for name, told in prometheus.get("metadata").items()}
    assert kinds["drystone_process_ooms"]["type"] == "counter", kinds  # by OpenMetrics
    assert kinds["drystone_process_reserved_bytes"]["unit"] == "bytes"
    told = pathlib.Path(prometheus.log.name).read_text()
    assert "level=warn" not in told and "level=error" not in told, told


def check_expressions(prometheus):
    """Each query of the dashboard has a value here, and each alert is one; two fire."""
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in (("$instance", ".*"), ("$name", ".*"),
                                ("$__rate_interval", "1m")):
                expression = expression.replace(name, value)
            prometheus.wait_for(expression, lambda value: value >= 0)
    for group in prometheus.get("rules")["groups"]:
        assert len(group["rules"]) == 7
        for rule in group["rules"]:
            assert rule["health"] == "ok" and rule["annotations"]["command"], rule
    for name in "DrystoneStranded", "DrystoneOutOfMemory":
        prometheus.wait_for(f'ALERTS{{alertname="{name}"}}', lambda value: value == 1)


class Growing:
    """A program that takes a little more each moment, while others run out and end."""

    def __init__(self, folder):
        self.folder, self.is_over = folder, threading.Event()
        self.page = pages.Page(folder, b"grows", rank=1)
        self.page.add(reserved=1 << 30, limit=64 << 30)
        self.thread = threading.Thread(target=self.grow)

    def grow(self):
        moment = 0
        while not self.is_over.wait(0.25):
            moment += 1
            self.page.update(0, reserved=(1 << 30) + moment * (1 << 20), retries=moment)
            if moment % 8 == 0:
                page = pages.Page(self.folder, b"ends")
                page.add(reserved=1, ooms=1)
                self.is_over.wait(1.2)
                page.close_and_leave()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *what):
        self.is_over.set()
        self.thread.join()


def main():
    check_dashboard()
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        print("SKIPPED: prometheus and promtool (Debian: prometheus) are not installed")
        sys.exit(77)
    check_files()
    if not has_server(tool):
        print("SKIPPED: libmicrohttpd was not found: there is no server to scrape")
        sys.exit(77)
    work = pathlib.Path(tempfile.mkdtemp())
    folder = work / "pages"
    folder.mkdir()
    page = pages.Page(folder, 'a"\\é'.encode(), b"pod=train-0", 0)
    page.add(b"torch", reserved=9 << 30, limit=10 << 30, ooms=5,
             lanes=[(1, (0, 0), 9 << 30, 0, 0, 0, 9 << 30, 0)],
             sums=(9 << 30, 0, 0, 8 << 30, 1))
    page.add(b"pinned", kind=pages.PINNED, device=-1, reserved=1 << 30)
    (work / "nvml").write_text(f"device NVIDIA_H100 GPU-0 {80 << 30} {9 << 30}\n"
                               f"process 0 {os.getpid()} {9 << 30}\n")
    try:
        with Exporter(tool, folder, "--lanes", 4, driver=(driver, work / "nvml")) as exporter, \
                Prometheus(work, exporter.place) as prometheus, Growing(folder):
            check_scrapes(prometheus, page)
            check_expressions(prometheus)
            exporter.end()
    finally:
        shutil.rmtree(work)


main()
