-- A measured alternative, not used by the service: the time when the bucket will be full, as GCRA keeps its theoretical
-- arrival time (ITU-T I.371). That is `part / refill` ms before `full`; the two are one number, 13 digits of ms, then
-- the part, which Redis keeps without a string while the part has up to 5 digits. Exact, and the least work, but only
-- while clock and policy stay as they are: it knows how long until full, not how many tokens were there and when. Steps
-- of whole periods have no place in it either.
--
-- KEYS[1]  the bucket
-- ARGV     capacity, refill, per in ms (reduced), cost
-- Output   granted (0 or 1), tokens before the take, full ms, part

--@include arithmetic.lua
local capacity, refill, per, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local full, part = now, 0
local stored = redis.call("GET", KEYS[1])
if stored then
  full, part = tonumber(string.sub(stored, 1, 13)), tonumber(string.sub(stored, 14)) or 0
end

-- In units: one ms adds `refill` of them, a token is `per`. More than a bucket can't be missing, unless the clock went
-- back or the policy changed.
local size = capacity * per
local missing = math.min(size, math.max(0, (full - now) * refill - part))
local tokens = divide(size - missing, per)
if tokens < cost then
  return { 0, tokens, full, part }
end
missing = missing + cost * per
local ms = divide_up(missing, refill)
local rest = ms * refill - missing
local text = string.format(rest > 0 and "%013.0f%.0f" or "%013.0f", now + ms, rest)
redis.call("SET", KEYS[1], text, "PX", string.format("%.0f", ms))
return { 1, tokens, full, part }
