-- One request for ever, or one for each of many keys in turn, by wrk:
--
--   wrk … -s request.lua URL -- METHOD PATH BODY KEYS [HEADER VALUE]
--
-- `{key}` in path, body and value is the key. Of one key it is `hot`, of several `user-` and 12 digits, as long as those
-- that redis-benchmark makes.
local threads = 0

function setup(thread)
  threads = threads + 1
  thread:set("at", threads * 7919)
end

function init(arguments)
  local method, path, body = arguments[1], arguments[2], arguments[3]
  keys = tonumber(arguments[4])
  local headers = { ["Content-Type"] = "application/json" }
  if arguments[5] then
    headers[arguments[5]] = arguments[6]
  end
  local key = "hot"
  if keys > 1 then
    -- As long as the keys to come, so that Content-Length is right for all of them.
    key = string.rep("\1", 17)
  end
  local function with_key(text)
    return (text:gsub("{key}", key))
  end
  for name, value in pairs(headers) do
    headers[name] = with_key(value)
  end
  if body == "" then
    body = nil
  else
    body = with_key(body)
  end
  whole = wrk.format(method, with_key(path), headers, body)
  pieces = {}
  if keys > 1 then
    local from = 1
    while true do
      local first, last = whole:find(key, from, true)
      pieces[#pieces + 1] = whole:sub(from, (first or 0) - 1)
      if not first then
        break
      end
      from = last + 1
    end
  end
end

function request()
  if keys <= 1 then
    return whole
  end
  at = (at + 1) % keys
  return table.concat(pieces, string.format("user-%012d", at))
end

function done(summary, latency)
  local broken = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format("RESULT %d %d %d %d %d %d %d\n", summary.requests, summary.duration, summary.errors.status,
    broken, latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end
