-- Checks of 100,000 subjects in turn, each thread beginning elsewhere.
local threads = 0
function setup(thread)
  threads = threads + 1
  thread:set("at", threads * 7919)
end

function request()
  at = (at + 1) % 100000
  local body = '{"checks":[{"policy":"wide","key":"user-' .. at .. '"}]}'
  return wrk.format("POST", "/v1/check", { ["Content-Type"] = "application/json" }, body)
end

function done(summary, latency)
  io.write(string.format("RESULT %d %d %d %d\n", summary.requests, summary.duration,
    summary.errors.status + summary.errors.timeout, latency:percentile(99)))
end
