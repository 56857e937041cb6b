-- A measured alternative, not used by the service: packed binary, in 10 bytes where the numbers are small enough, else
-- in 20, which hold any number of a policy. Exact, but each bucket has a string in Redis, nobody can read it there, and
-- `struct` is Redis's own library, which the embedded store would have to bring.

--@include one_bucket.lua
local SMALL, LARGE = ">I4I6", ">I7I6I7"

local function read(key)
  local stored = redis.call("GET", key)
  if not stored then
    return nil
  elseif #stored == 10 then
    local tokens, last = struct.unpack(SMALL, stored)
    return tokens, last, 0
  end
  return struct.unpack(LARGE, stored)
end

local function write(key, tokens, last, part, ttl)
  local small = part == 0 and tokens < 4294967296
  local stored = small and struct.pack(SMALL, tokens, last) or struct.pack(LARGE, tokens, last, part)
  redis.call("SET", key, stored, "PX", ttl)
end

return take_one(read, write)
