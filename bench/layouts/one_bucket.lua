-- What the measured layouts share: one take from one greedy bucket, by the arithmetic of lua/parts. A layout brings
-- `read(key)`, which gives tokens, last and part or nothing, and `write(key, tokens, last, part, ttl)`.
--
-- KEYS[1]  the bucket
-- ARGV     capacity, refill, per in ms (reduced), cost
-- Output   granted (0 or 1), then the bucket as it was before the take: tokens, last ms, part

--@include arithmetic.lua
--@include greedy.lua
local function take_one(read, write)
  local capacity, refill, per, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
  local clock = redis.call("TIME")
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local tokens, last, part = read(KEYS[1])
  if tokens then
    if last - now > divide_up(capacity * per, refill) then
      last, part = now, 0
    end
    tokens, last, part = refilled(tokens, last, part, now, capacity, refill, per)
  else
    tokens, last, part = capacity, now, 0
  end
  if tokens < cost then
    return { 0, tokens, last, part }
  end
  local left = tokens - cost
  local ttl = refill_ms(capacity - left, last, part, now, refill, per)
  write(KEYS[1], left, last, part, string.format("%.0f", ttl))
  return { 1, tokens, last, part }
end
