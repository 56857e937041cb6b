-- A measured alternative, not used by the service: text, "tokens:last:part". Exact, but each bucket has a string
-- in Redis.

--@include one_bucket.lua
local function read(key)
  local stored = redis.call("GET", key)
  if not stored then
    return nil
  end
  local tokens, last, part = string.match(stored, "^(%d+):(%d+):(%d+)$")
  return tonumber(tokens), tonumber(last), tonumber(part)
end

local function write(key, tokens, last, part, ttl)
  redis.call("SET", key, string.format("%.0f:%.0f:%.0f", tokens, last, part), "PX", ttl)
end

return take_one(read, write)
