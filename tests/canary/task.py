"""Runs inside a task of the canary suite: says every secret in every way that a program might."""

import base64
import json
import os
import re
import sys
import time
import urllib.parse


def ways(value):
    data = value.encode()
    yield value
    yield json.dumps(value)
    yield json.dumps({"token": value}, ensure_ascii=False)
    yield json.dumps(value).replace("/", "\\/")
    yield urllib.parse.quote(value, safe="")
    yield urllib.parse.quote(value)
    yield urllib.parse.quote_plus(value)
    yield re.sub("%..", lambda digits: digits.group().lower(), urllib.parse.quote_plus(value))
    yield urllib.parse.quote(value, safe="!'()*")
    for before in (b"", b"u:", b"user:", b"x"):
        yield base64.b64encode(before + data).decode()
        yield base64.urlsafe_b64encode(before + data + b"\n").decode()
    yield f"https://me:{value}@host/path"


for name in sys.argv[1:]:
    value = os.environ[name]
    for each in ways(value):
        print("says", each, flush=True)
        print("says", each, file=sys.stderr, flush=True)
    for size in (1, 3, 7):
        said = f"split {value} {base64.b64encode(value.encode()).decode()}\n".encode()
        for start in range(0, len(said), size):
            os.write(1, said[start : start + size])
            time.sleep(0.0005)
    with open(os.path.join(os.environ["PAI_SECRETS_DIR"], name), "rb") as stream:
        os.write(2, b"file " + stream.read() + b"\n")
print("all said", flush=True)
