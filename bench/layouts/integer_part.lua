-- A measured alternative, not used by the service: as the service's integer, but a part of up to 9 digits makes it
-- negative: tokens, part, the part's number of digits, last. Redis keeps that without a string up to 18 digits.

--@include one_bucket.lua
--@include state.lua
local function read(key)
  local stored = redis.call("GET", key)
  if not stored then
    return nil
  elseif string.byte(stored) ~= 45 then
    return decode_bucket(stored)
  end
  local front, width = string.sub(stored, 2, -15), tonumber(string.sub(stored, -14, -14))
  local tokens = tonumber(string.sub(front, 1, -width - 1)) or 0
  return tokens, tonumber(string.sub(stored, -13)), tonumber(string.sub(front, -width))
end

local function write(key, tokens, last, part, ttl)
  local stored
  if part > 0 and part < 1e9 then
    local digits = string.format("%.0f", part)
    stored = string.format("-%s%s%d%013.0f", tokens > 0 and string.format("%.0f", tokens) or "", digits, #digits, last)
  else
    stored = encode_bucket(tokens, last, part)
  end
  redis.call("SET", key, stored, "PX", ttl)
end

return take_one(read, write)
