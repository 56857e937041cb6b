-- A measured alternative, not used by the service: a hash with a field for each number. Exact, but a take that
-- is allowed needs a fourth command, for the TTL.

--@include one_bucket.lua
local function read(key)
  local stored = redis.call("HMGET", key, "t", "l", "p")
  return tonumber(stored[1] or nil), tonumber(stored[2] or nil), tonumber(stored[3] or nil)
end

local function write(key, tokens, last, part, ttl)
  local format = string.format
  redis.call("HSET", key, "t", format("%.0f", tokens), "l", format("%.0f", last), "p", format("%.0f", part))
  redis.call("PEXPIRE", key, ttl)
end

return take_one(read, write)
