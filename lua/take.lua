-- Takes tokens from several buckets in one step. The limits of one unit are taken from all together or not at all;
-- units don't see each other's outcome. Nothing is written for a unit that takes nothing.
--
-- KEYS    one bucket for each limit, unit after unit
-- ARGV    takes: how many equal takes to try, one after another, for each unit
--         then for each unit: the number of its limits, then for each of those
--           mode: "g" refills all the time, "i" in whole periods
--           cost, capacity, refill, per ms; for "g" refill / per is reduced and capacity * per at most 2^53
-- Output  now in ms; then for each unit: how many of the takes were granted, then for each of its limits the bucket as
--         it was before them: tokens, last ms, part

-- A greedy bucket in exact integers. It refills `refill` tokens in `per` ms, reduced, so one ms adds `refill` units and
-- a token is `per` units. It held exactly `tokens` tokens at the instant `part / refill` ms before `last`; what has
-- come in since then is never rounded, only not yet a whole token.
--
-- A bucket is stored as one integer, which Redis keeps without a string: the tokens, then `last` in 13 digits; then
-- `:part` where it isn't 0, which takes a refill that doesn't divide evenly into ms.

-- Exact for integers up to 2^53, where floor(a / b) is not: fmod never rounds.
local function divide(a, b)
  local left = math.fmod(a, b)
  return (a - left) / b, left
end

local function divide_up(a, b)
  local quotient, left = divide(a, b)
  return left > 0 and quotient + 1 or quotient
end

local function decode(stored)
  local digits, part = string.match(stored, "^(%d+):?(%d*)$")
  if not digits then
    return nil
  end
  local tokens = #digits > 13 and tonumber(string.sub(digits, 1, -14)) or 0
  return tokens, tonumber(string.sub(digits, -13)), tonumber(part) or 0
end

local function encode(tokens, last, part)
  local stored = tokens > 0 and string.format("%.0f%013.0f", tokens, last) or string.format("%.0f", last)
  return part > 0 and string.format("%s:%.0f", stored, part) or stored
end

-- The bucket as it is at `now`. A clock behind `last` adds nothing.
local function refilled(tokens, last, part, now, capacity, refill, per)
  if tokens >= capacity then
    return capacity, math.max(last, now), 0
  end
  -- Kept from a policy with a faster refill: at most one ms of this one's.
  part = math.min(part, refill - 1)
  local elapsed = math.max(0, now - last)
  if elapsed >= divide_up((capacity - tokens) * per - part, refill) then
    return capacity, now, 0
  end
  -- Less than what is missing, so within 2^53.
  local gained, left = divide(elapsed * refill + part, per)
  if gained == 0 then
    return tokens, last, part
  end
  local since, rest = divide(left, refill)
  return tokens + gained, now - since, rest
end

-- The ms until `wanted` tokens more are there, by what is missing alone, at least 1. A `last` ahead of the clock is not
-- counted, so that a TTL made of this heals the bucket within one refill.
local function refill_ms(wanted, last, part, now, refill, per)
  local elapsed = math.max(0, now - last)
  return math.max(1, divide_up(wanted * per - elapsed * refill - part, refill))
end

-- A bucket that refills in steps: `refill` tokens at each whole `per` ms after `last`, which is the first take or the
-- step before. It is stored like a greedy bucket, without a part.

local function stepped(tokens, last, now, capacity, refill, per)
  if tokens >= capacity then
    return capacity, math.max(last, now)
  end
  local steps = divide(math.max(0, now - last), per)
  if steps >= divide_up(capacity - tokens, refill) then
    return capacity, now
  end
  return tokens + steps * refill, last + steps * per
end

local function steps_ms(wanted, last, now, refill, per)
  return math.max(1, divide_up(wanted, refill) * per - math.max(0, now - last))
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local takes = tonumber(ARGV[1])
local reply = { now }
local key, arg = 0, 2

while arg <= #ARGV do
  local limits = {}
  local granted = takes
  local count = tonumber(ARGV[arg])
  arg = arg + 1
  for i = 1, count do
    key = key + 1
    local greedy = ARGV[arg] == "g"
    local cost, capacity = tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
    local refill, per = tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4])
    arg = arg + 5

    local tokens, last, part = capacity, now, 0
    local stored = redis.call("GET", KEYS[key])
    if stored then
      tokens, last, part = decode(stored)
      if not tokens then
        return redis.error_reply("SLUICEGATE not a bucket: " .. KEYS[key])
      end
      local fill_ms = greedy and divide_up(capacity * per, refill) or divide_up(capacity, refill) * per
      if last - now > fill_ms then
        -- The clock went back by more than a whole refill: this is the time now, and nothing has come in.
        last, part = now, 0
      end
      if greedy then
        tokens, last, part = refilled(tokens, last, part, now, capacity, refill, per)
      else
        tokens, last = stepped(tokens, last, now, capacity, refill, per)
        part = 0
      end
    end
    if cost > 0 then
      granted = math.min(granted, (divide(tokens, cost)))
    end
    limits[i] = { KEYS[key], greedy, cost, capacity, refill, per, tokens, last, part }
  end

  reply[#reply + 1] = granted
  for i = 1, count do
    local name, greedy, cost, capacity, refill, per, tokens, last, part = unpack(limits[i])
    reply[#reply + 1] = tokens
    reply[#reply + 1] = last
    reply[#reply + 1] = part
    if granted > 0 and cost > 0 then
      local left = tokens - granted * cost
      local ttl = greedy and refill_ms(capacity - left, last, part, now, refill, per)
        or steps_ms(capacity - left, last, now, refill, per)
      redis.call("SET", name, encode(left, last, part), "PX", string.format("%.0f", ttl))
    end
  end
end

return reply
