-- Reads a subject's own numbers, and changes nothing.
--
-- KEYS[1]  the override
-- Output   ms it still lasts, then its text, a number for each byte; nothing without an override

-- The longest text that somebody could have meant: 16 limits with the longest names and numbers.
local MAX_BYTES = 4096

local text = redis.pcall("GET", KEYS[1])
if type(text) == "table" then
  return redis.error_reply("ERR " .. KEYS[1] .. ": " .. text.err)
end
if not text then
  return {}
end
return { redis.call("PTTL", KEYS[1]), string.byte(text, 1, MAX_BYTES) }
