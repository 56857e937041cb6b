"""Calls token_bucket.lua as a user of redis-py does. Arguments: port, path of the script, calls as JSON.

A call is [key, capacity, refill per second, now in ms, cost]; the output is one reply each: three values, or "error".
"""

import json
import sys

import redis

port, path, calls = sys.argv[1:]
client = redis.Redis(port=int(port))
with open(path, encoding="utf-8") as script:
    token_bucket = client.register_script(script.read())

replies = []
for key, *args in json.loads(calls):
    try:
        allowed, remaining, wait = token_bucket(keys=[key], args=args)
        replies.append([allowed, remaining, wait])
    except redis.exceptions.ResponseError:
        replies.append("error")
print(json.dumps(replies))
