-- Bans a subject from now on, whatever it was denied before. A policy without a ban doesn't look at it.
--
-- KEYS[1]  the ban
-- ARGV[1]  ms it lasts
-- Output   1

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call("SET", KEYS[1], string.format("-%s%013.0f", ARGV[1], now), "PX", ARGV[1])
return { 1 }
