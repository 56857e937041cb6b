-- The layout that the service uses, in the frame of the alternatives, so that layouts alone are compared.

--@include one_bucket.lua
--@include state.lua
local function read(key)
  local stored = redis.call("GET", key)
  if stored then
    return decode_bucket(stored)
  end
end

local function write(key, tokens, last, part, ttl)
  redis.call("SET", key, encode_bucket(tokens, last, part), "PX", ttl)
end

return take_one(read, write)
