#!/usr/bin/env python3
"""How many connections to Redis (`store.connections`) serve distinct keys best.

    cargo build --release --bin sluicegate
    python3 bench/connections/measure.py target/release/sluicegate > bench/connections/RESULTS.md

Needs redis-server and wrk on PATH. Each round takes all numbers of connections by turns, so that what the machine
does meanwhile hits all alike.
"""

import os
import pathlib
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
CONNECTIONS = [1, 2, 3, 4, 8, 16]
ROUNDS = 5
SECONDS = 4
CLIENTS = 64

CONFIG = """
listen: 127.0.0.1:{data}
admin: {{ listen: 127.0.0.1:{admin} }}
store: {{ url: redis://127.0.0.1:{redis}, timeout: 1s, connections: {connections} }}
policies:
  wide: {{ limits: [{{ name: day, capacity: 1000000000, refill: 1000000000, per: 1d, interval: true }}] }}
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until_listening(port):
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise SystemExit(f"nothing listens on {port}")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(binary, directory, redis, connections):
    """Thousands of decisions a second, their 99th percentile in ms, CPU of service and Redis in us for one."""
    ports = {"data": free_port(), "admin": free_port(), "redis": redis["port"]}
    config = pathlib.Path(directory) / "sluicegate.yaml"
    config.write_text(CONFIG.format(connections=connections, **ports))
    service = subprocess.Popen([binary, "serve", "--config", config], stderr=subprocess.DEVNULL)
    try:
        until_listening(ports["data"])
        load = ["wrk", "-t2", f"-c{CLIENTS}", "-s", HERE / "distinct.lua", f"http://127.0.0.1:{ports['data']}"]
        subprocess.run(load + ["-d1s"], check=True, capture_output=True)
        before = [cpu_seconds(service.pid), cpu_seconds(redis["pid"])]
        out = subprocess.run(load + [f"-d{SECONDS}s"], check=True, capture_output=True, text=True).stdout
        after = [cpu_seconds(service.pid), cpu_seconds(redis["pid"])]
    finally:
        service.kill()
        service.wait()
    result = next(line for line in out.splitlines() if line.startswith("RESULT"))
    requests, duration_us, errors, p99_us = map(int, result.split()[1:])
    if errors:
        raise SystemExit(f"{errors} of {requests} checks were not allowed")
    cpu = [(end - begin) * 1e6 / requests for begin, end in zip(before, after)]
    return requests / duration_us * 1000, p99_us / 1000, *cpu


def shown(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def main(binary):
    figures = {connections: [] for connections in CONNECTIONS}
    loads = []
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--dir", directory]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            until_listening(port)
            for round_ in range(ROUNDS):
                turn = CONNECTIONS[round_ % len(CONNECTIONS):] + CONNECTIONS[:round_ % len(CONNECTIONS)]
                for connections in turn:
                    redis = {"port": port, "pid": server.pid}
                    figures[connections].append(measure(binary, directory, redis, connections))
                    loads.append(os.getloadavg()[0])
        finally:
            server.kill()
            server.wait()
    version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split()[2]
    print("# Connections to Redis, measured\n")
    print(f"By `bench/connections/measure.py`: Redis {version[2:]}, {os.cpu_count()} cores, Linux {platform.release()}.")
    print(f"Load of the machine, this included: {shown(loads, 1)}.\n")
    print(f"`POST /v1/check` of 100,000 distinct keys, wrk with 2 threads and {CLIENTS} connections, a release build; load,")
    print(f"service and Redis on the same cores. Median of {ROUNDS} rounds of {SECONDS} s (least–most), by turns. All were allowed.\n")
    print("| `store.connections` | decisions, k/s | p99, ms | service CPU, µs each | Redis CPU, µs each |")
    print("|--:|--:|--:|--:|--:|")
    for connections in CONNECTIONS:
        rate, p99, service_cpu, redis_cpu = zip(*figures[connections])
        print(f"| {connections} | {shown(rate, 1)} | {shown(p99, 1)} | {shown(service_cpu, 1)} | {shown(redis_cpu, 1)} |")


if __name__ == "__main__":
    main(sys.argv[1])
