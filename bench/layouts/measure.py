#!/usr/bin/env python3
"""Measures how a bucket could be stored in Redis: bytes a bucket, scripts a second, commands a script.

    python3 bench/layouts/measure.py > bench/layouts/RESULTS.md

Needs redis-server, redis-cli and redis-benchmark on the PATH, 2 GB of memory and about 15 minutes. Each *.lua here is
one layout, but for one_bucket.lua, which they share; the last row is the service's own script. Nothing is measured
before all of them have answered the same takes alike.
"""

import functools
import os
import platform
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
LUA = HERE.parent.parent / "lua"
BUCKETS = 1_000_000
KEY = "sg:{bench:%s}:minute"  # 30 bytes with 12 digits
ROUNDS, CLIENTS = 9, 64
REQUESTS = {1: 20_000, 16: 100_000}  # by pipeline depth; short, as other work on the machine comes and goes
CASES = [(pipeline, allowed) for pipeline in REQUESTS for allowed in (True, False)]

# Capacity, refill, per in ms. No bucket is full again, and so gone, while it is measured.
EVEN = (100, 1, 86_400_000)
UNEVEN = (10_000, 7, 3_000)


def one(policy, cost):
    return [*policy, cost]


def service(policy, cost):
    return [0, 2**53, 1, 0, 1, cost, 0, 0, 0, 0, 1, "g", *policy]


# Name, file, its arguments, where its reply has granted and tokens.
LAYOUTS = [
    ("hash", HERE / "hash.lua", one, (0, 1)),
    ("text", HERE / "text.lua", one, (0, 1)),
    ("binary", HERE / "binary.lua", one, (0, 1)),
    ("time (GCRA)", HERE / "gcra.lua", one, (0, 1)),
    ("integer, part inside", HERE / "integer_part.lua", one, (0, 1)),
    ("**integer**", HERE / "integer.lua", one, (0, 1)),
    ("`lua/take.lua`", LUA / "take.lua", service, (1, 5)),
]

# A clock that the last argument sets, and no expiry, so that pauses cost no time.
VIRTUAL_CLOCK = """
local real, now = redis, table.remove(ARGV)
local redis = setmetatable({ call = function(command, key, ...)
  if command == "TIME" then return { string.sub(now, 1, -4), string.sub(now, -3) .. "000" } end
  if command == "PEXPIRE" then return 1 end
  if command == "SET" then return real.call("SET", key, (...)) end
  return real.call(command, key, ...)
end }, { __index = real })
"""


@functools.cache
def script_text(path):
    """A script with each `--@include FILE` replaced by that file, from here or from lua/parts; read once in a run."""

    def part(match):
        found = HERE / match[1]
        return script_text(found if found.exists() else LUA / "parts" / match[1])

    return re.sub(r"^--@include (.+)$", part, path.read_text(), flags=re.MULTILINE)


class Redis:
    """A server of its own on a free port, with one layout's script, stopped at the end of a `with`."""

    def __init__(self, layout, prelude=""):
        self.name, path, self.arguments, self.reply_at = layout
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        self.folder = tempfile.TemporaryDirectory()
        command = ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder.name]
        command += ["--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while "PONG" not in self.cli("PING"):
            if self.process.poll() is not None:
                sys.exit("redis-server did not start")
            time.sleep(0.05)
        self.sha = self.cli("SCRIPT", "LOAD", prelude + script_text(path)).strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def cli(self, *command, **options):
        run = subprocess.run(["redis-cli", "-p", self.port, *command], capture_output=True, text=True, **options)
        return run.stdout

    def take(self, key, policy, cost, *more):
        return " ".join(map(str, ["EVALSHA", self.sha, 1, key, *self.arguments(policy, cost), *more]))

    def replies(self, takes):
        """What takes under the virtual clock reply: granted, and tokens before, for each."""
        lines = self.cli(input="".join(take + "\n" for take in takes)).split("\n")
        numbers = [int(line) for line in lines if line]
        size = len(numbers) // len(takes)
        return [tuple(numbers[at + i] for i in self.reply_at) for at in range(0, len(numbers), size)]

    def fill(self, policy, cost):
        """One take from each bucket."""
        pipe = subprocess.Popen(
            ["redis-cli", "-p", self.port, "--pipe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        take = self.take(KEY % "%012d", policy, cost) + "\r\n"
        for i in range(BUCKETS):
            pipe.stdin.write(take % i)
        said, _ = pipe.communicate()
        assert f"errors: 0, replies: {BUCKETS}" in said, said

    def info(self, section):
        return dict(line.split(":", 1) for line in self.cli("INFO", section).splitlines() if ":" in line)

    def used_memory(self):
        return int(self.info("memory")["used_memory"])

    def cpu_seconds(self):
        cpu = self.info("cpu")
        return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])

    def commands(self):
        """The Redis commands that scripts have called since the last reset of the statistics."""
        calls = {
            name.removeprefix("cmdstat_"): int(re.match(r"calls=(\d+)", stats)[1])
            for name, stats in self.info("commandstats").items()
        }
        return {name: count for name, count in calls.items() if name.split("|")[0] not in ("evalsha", "info", "config")}

    def commands_of(self, policy, cost):
        self.cli("CONFIG", "RESETSTAT")
        self.cli(*self.take(KEY % f"{0:012}", policy, cost).split())
        return self.commands()

    def bytes_a_bucket(self, policy, costs):
        """The growth of used_memory over the buckets, each taken from once for each of `costs`."""
        before = self.used_memory()
        for cost in costs:
            self.fill(policy, cost)
        grown = self.used_memory() - before
        assert int(self.cli("DBSIZE")) == BUCKETS, "a bucket expired or is missing"
        return grown / BUCKETS

    def benchmark(self, policy, cost, pipeline, allowed):
        """Scripts a second, and the server's CPU time for one in µs."""
        requests = REQUESTS[pipeline]
        self.cli("CONFIG", "RESETSTAT")
        before = self.cpu_seconds()
        options = ["-p", self.port, "-n", str(requests), "-r", str(BUCKETS), "-c", str(CLIENTS), "-P", str(pipeline)]
        take = self.take(KEY % "__rand_int__", policy, cost).split()
        run = subprocess.run(["redis-benchmark", *options, "--csv", *take], capture_output=True, text=True, check=True)
        cpu = (self.cpu_seconds() - before) / requests * 1e6
        commands = self.commands()
        wrote = commands.get("set", 0) + commands.get("hset", 0)
        assert wrote == (commands["time"] if allowed else 0), f"not what was meant to be measured: {commands}"
        return float(run.stdout.splitlines()[-1].split('","')[1]), cpu


def log(text):
    print(f"{time.strftime('%H:%M:%S')} load {os.getloadavg()[0]:.1f}  {text}", file=sys.stderr, flush=True)


def check_that_all_agree():
    """One sequence of takes, with a clock that goes forward and with policies that stay, on every layout."""
    dice, now, takes = random.Random(1), 1_700_000_000_000, []
    policies = [EVEN, UNEVEN, (3, 7, 3_000), (5, 2, 172_801_000), (1, 1, 1), (2**40, 2**20 + 1, 8191)]
    for _ in range(5_000):
        at = dice.randrange(len(policies))
        capacity, refill, per = policies[at]
        now += int(dice.choice([0, 1, per / refill, 3 * per / refill]) * dice.random())
        cost = dice.randint(1, max(1, capacity // dice.choice([1, 3, 50])))
        takes.append((KEY % f"{at:012}", policies[at], cost, now))
    answers = {}
    for layout in LAYOUTS:
        with Redis(layout, VIRTUAL_CLOCK) as redis:
            answers[redis.name] = redis.replies([redis.take(*take) for take in takes])
    expected = answers["`lua/take.lua`"]
    assert len(expected) == len(takes) and 1_000 < sum(granted for granted, _ in expected) < 4_000
    for name, answer in answers.items():
        wrong = next((i for i in range(len(takes)) if answer[i : i + 1] != expected[i : i + 1]), None)
        assert wrong is None, f"{name}: take {wrong} {takes[wrong]} gave {answer[wrong]}, not {expected[wrong]}"
    log(f"{len(takes)} takes: all layouts agree")


# What a time alone can't know: first a take, then what the bucket holds under another clock or policy.
A_SECOND = (10, 1, 1_000)
RULES = [
    ("6 of 10 left, clock back by 5 s: 6", (A_SECOND, 4), (A_SECOND, -5_000)),
    ("6 of 10 left, clock back by 1 h: 6", (A_SECOND, 4), (A_SECOND, -3_600_000)),
    ("12 of 16 left at 10 in 20 s, now 1000 in 20 s: 12", ((16, 1, 2_000), 4), ((16, 1, 20), 0)),
    ("0 of 10 left at 10 a second, now 1 a second: 0", ((10, 1, 100), 10), (A_SECOND, 0)),
]


def held_by_rule():
    rows = [[rule] for rule, _, _ in RULES]
    for layout in LAYOUTS:
        with Redis(layout, VIRTUAL_CLOCK) as redis:
            for at, (_, (policy, cost), (later_policy, step)) in enumerate(RULES):
                now, key = 1_700_000_000_000, KEY % f"{at:012}"
                takes = [redis.take(key, policy, cost, now), redis.take(key, later_policy, 1, now + step)]
                _, held = redis.replies(takes)[1]
                rows[at].append(str(held))
    return rows


def spread(samples):
    return f"{statistics.median(samples):.1f} ({min(samples):.1f}–{max(samples):.1f})"


def measure():
    """For each layout its sizes, its commands and by case its speeds and CPU times; and the machine's loads."""
    sizes, samples, loads = {}, {}, []
    with ExitStack() as servers:
        layouts = [servers.enter_context(Redis(layout)) for layout in LAYOUTS]
        for redis, layout in zip(layouts, LAYOUTS):
            with Redis(layout) as spare:
                uneven = spare.bytes_a_bucket(UNEVEN, [9_000, 1])
            even = redis.bytes_a_bucket(EVEN, [1])
            allowed, denied = redis.commands_of(EVEN, 1), redis.commands_of(EVEN, EVEN[0])
            sizes[redis.name] = [f"{even:.1f}", f"{uneven:.1f}", *(f"{sum(c.values())}" for c in (allowed, denied))]
            log(f"{redis.name}: {sizes[redis.name]}, {' '.join(allowed)}")
        for turn in range(ROUNDS):
            for pipeline, allowed in CASES:
                # Another order each time, so that none always comes after the same one.
                for redis in random.sample(layouts, len(layouts)):
                    speed, cpu = redis.benchmark(EVEN, 1 if allowed else EVEN[0], pipeline, allowed)
                    samples.setdefault((redis.name, pipeline, allowed), []).append((speed / 1000, cpu))
                    loads.append(os.getloadavg()[0])
            log(f"round {turn + 1} of {ROUNDS}")
    return sizes, samples, loads


def print_table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|---|" + "--:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def main():
    for _, path, *_ in LAYOUTS:
        script_text(path)
    check_that_all_agree()
    sizes, samples, loads = measure()
    version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split()
    processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
    print(f"""# Layouts of a bucket, measured

By `bench/layouts/measure.py`: Redis {version[2][2:]} ({version[4]}), {processor}, {os.cpu_count()} cores, Linux
{platform.release()}. Load of the machine, this included: {spread(loads)}.

Bytes a bucket are the growth of `used_memory` over {BUCKETS:,} keys of 30 bytes, their TTL included: after one take at
1 a day, and after a second one at 7 in 3 s, which leaves a part in about 6 of 7. Commands are those of one take.
""")
    head = ["layout", "bytes", "bytes with a part", "commands allowed", "denied"]
    print_table(head, [[name, *row] for name, row in sizes.items()])
    print(f"""
Thousands of scripts a second, and the server's CPU time for one script: `redis-benchmark`, {CLIENTS} connections, on
random ones of these buckets without a part; median of {ROUNDS} rounds (least–most), the layouts by turns.
""")
    head = ["layout", "allowed, k/s", "denied, k/s", "allowed, pipeline of 16", "denied, pipeline of 16"]
    rows = []
    for name in sizes:
        speeds = [spread([speed for speed, _ in samples[name, *case]]) for case in CASES]
        cpus = [spread([cpu for _, cpu in samples[name, *case]]) for case in CASES[2:]]
        rows.append([name, *speeds, *cpus])
    print_table([*head, "CPU allowed, µs", "CPU denied, µs"], rows)
    print("""
CPU times are those of the pipelines; where other work took its share of the machine, the least says most.

What a bucket holds after its clock or policy changed, the right number after the colon:
""")
    print_table(["tokens", *sizes], held_by_rule())


if __name__ == "__main__":
    main()
