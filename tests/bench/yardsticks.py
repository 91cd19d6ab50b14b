"""What this machine takes for things that panto cannot avoid, measured beside it."""

from __future__ import annotations

import math

from tests.bench.figures import Figure
from tests.bench.place import Place

BARE, HTTPX, READ_CPU, READ_WALL = "bare Python", "import httpx", "plain read, CPU a delta", "plain read, 5,000"

# Reads the stream as bytes and counts the events, without decoding any: what remains cannot be avoided.
READER = """
import http.client, json, sys, time
host, path, prompt = sys.argv[1:]
body = {"model": "fake", "stream": True, "messages": [{"role": "user", "content": prompt}]}
began, cpu = time.perf_counter(), time.process_time()
link = http.client.HTTPConnection(host)
link.request("POST", path, json.dumps(body), {"content-type": "application/json"})
answer, count = link.getresponse(), 0
while data := answer.read1(1 << 16):
    count += data.count(b"\\n\\n")
print(count, time.perf_counter() - began, time.process_time() - cpu)
"""


def measure(place: Place) -> list[Figure]:
    """All yardsticks."""
    python = place.python
    place.run(python, "-c", "import httpx")
    bare = [place.run(python, "-c", "pass").wall for _ in range(place.runs)]
    httpx = [place.run(python, "-c", "import httpx").wall for _ in range(place.runs)]
    host = place.root_url.partition("://")[2]
    walls, cpus = [], []
    for _ in range(place.runs):
        done = place.run(python, "-c", READER, host, "/v1/chat/completions", "FAKE(flood:5000)")
        count, wall, cpu = done.output.split()
        walls.append(float(wall))
        cpus.append(float(cpu) / int(count) * 1e6)
    return [
        Figure(BARE, [s * 1000 for s in bare], "ms", note="start and end"),
        Figure(HTTPX, [s * 1000 for s in httpx], "ms", note="bare Python included"),
        Figure(READ_WALL, walls, "s", note="5,000 deltas read as bytes"),
        Figure(READ_CPU, cpus, "µs"),
    ]


def reference(measured: dict[str, float]) -> float:
    """How many times slower the machine of the goals was: bare Python took 24 ms there, importing httpx 222 ms."""
    return math.sqrt((24 / measured[BARE]) * (222 / measured[HTTPX]))
