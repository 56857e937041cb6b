-- An atomic token bucket in one key, for callers in any language.
--
-- KEYS[1]  the bucket, for example rl:{user-42}
-- ARGV[1]  capacity: the most tokens it holds, at least 1; a fraction of a token is dropped
-- ARGV[2]  refill per second: may be fractional; 0 never refills
-- ARGV[3]  now in ms by the caller's clock, or 0 for Redis TIME; no bucket goes back in time
-- ARGV[4]  cost: a whole number of tokens to take; 0 only looks
-- Output   allowed (0 or 1), whole tokens remaining, seconds to wait (rounded up; 0 when allowed, -1 when it can never
--          succeed)
--
-- The bucket starts full, a denied call changes nothing, and the key expires when the bucket is full again.

-- Exact for integers up to 2^53, where floor(a / b) is not: fmod never rounds.
local function divide(a, b)
  local left = math.fmod(a, b)
  return (a - left) / b, left
end

local function divide_up(a, b)
  local quotient, left = divide(a, b)
  return left > 0 and quotient + 1 or quotient
end

-- What a key holds is one integer, which Redis keeps without a string: a count, then a time in 13 digits of ms. For a
-- bucket that is its tokens, and when it held just those; `:part` follows where a refill doesn't divide evenly into ms.
-- For a quota it is negative: what was used of it, and when that window began.

-- The count and the time in a string of digits; nothing where somebody else wrote it.
local function decode(digits)
  local count = #digits > 13 and tonumber(string.sub(digits, 1, -14)) or 0
  if #digits == 0 or count > 9007199254740992 then
    return nil
  end
  return count, tonumber(string.sub(digits, -13))
end

local function decode_bucket(stored)
  local digits, part = string.match(stored, "^(%d+):?(%d*)$")
  local tokens, last
  if digits and #part <= 16 then
    tokens, last = decode(digits)
  end
  return tokens, last, tonumber(part) or 0
end

local function encode_bucket(tokens, last, part)
  local stored = tokens > 0 and string.format("%.0f%013.0f", tokens, last) or string.format("%.0f", last)
  return part > 0 and string.format("%s:%.0f", stored, part) or stored
end

-- A greedy bucket in exact integers. It refills `refill` tokens in `per` ms, reduced, so one ms adds `refill` units and
-- a token is `per` units. It held exactly `tokens` tokens at the instant `part / refill` ms before `last`; what has
-- come in since then is never rounded, only not yet a whole token.

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

-- The fraction nearest to x with a denominator of at most `limit`, by continued fractions: 7 / 3 per second arrives as
-- 2.3333333333333335 and is 7 / 3 again, so that slow rates don't drift.
local function fraction(x, limit)
  local p0, q0, p1, q1 = 0, 1, 1, 0
  local rest = x
  for _ = 1, 64 do
    local whole = math.floor(rest)
    local p2, q2 = whole * p1 + p0, whole * q1 + q0
    if q2 > limit or p2 > 9007199254740992 then
      break
    end
    p0, q0, p1, q1 = p1, q1, p2, q2
    if rest == whole or p1 / q1 == x then
      break
    end
    rest = 1 / (rest - whole)
  end
  return p1, q1
end

-- tonumber alone takes nan, inf, 0x10 and blanks.
local function number(text)
  local value = text and string.find(text, "^[0-9.eE+-]+$") and tonumber(text)
  return value and value < math.huge and value or nil
end

local capacity, rate, now, cost = number(ARGV[1]), number(ARGV[2]), number(ARGV[3]), number(ARGV[4])
if #KEYS ~= 1 or #ARGV ~= 4 then
  return redis.error_reply("ERR token_bucket: one key and four arguments: capacity, refill per second, now ms, cost")
elseif not capacity or capacity < 1 or capacity > 9007199254740992 then
  return redis.error_reply("ERR token_bucket: capacity is a number from 1 to 2^53")
elseif not rate or rate < 0 then
  return redis.error_reply("ERR token_bucket: refill per second is a number of at least 0")
elseif not now or now < 0 or now >= 1e13 then
  return redis.error_reply("ERR token_bucket: now is in ms, 0 for the server's own time")
elseif not cost or cost < 0 or cost > 9007199254740992 or cost % 1 ~= 0 then
  return redis.error_reply("ERR token_bucket: cost is a whole number from 0 to 2^53")
end
capacity, now = math.floor(capacity), math.floor(now)
local from_server = now == 0
if from_server then
  local clock = redis.call("TIME")
  now = clock[1] * 1000 + math.floor(clock[2] / 1000)
end

-- More than a full bucket a ms is the same as just that. Within the first bound all that follows is exact; a capacity
-- over 2^26.5 needs the second, so that a whole refill is right to one token.
local refill, per = fraction(math.min(rate / 1000, capacity), math.max(9007199254740992 / capacity, capacity))
local tokens, last, part = capacity, now, 0
local stored = redis.call("GET", KEYS[1])
if stored then
  tokens, last, part = decode_bucket(stored)
  if not tokens then
    return redis.error_reply("ERR token_bucket: the key holds something else")
  elseif refill == 0 then
    tokens = math.min(tokens, capacity)
  else
    if from_server and last - now > divide_up(capacity * per, refill) then
      -- The server's clock went back by more than a whole refill: this is the time now, and nothing has come in.
      last, part = now, 0
    end
    tokens, last, part = refilled(tokens, last, part, now, capacity, refill, per)
  end
end

if tokens >= cost then
  if cost > 0 then
    tokens = tokens - cost
    -- The longest that any key is kept.
    local ttl = 366 * 86400 * 1000
    if refill > 0 then
      ttl = math.min(ttl, refill_ms(capacity - tokens, last, part, now, refill, per))
    end
    redis.call("SET", KEYS[1], encode_bucket(tokens, last, part), "PX", string.format("%.0f", ttl))
  end
  return { 1, tokens, 0 }
elseif refill == 0 or cost > capacity then
  return { 0, tokens, -1 }
end
local wait_ms = math.max(0, last - now) + refill_ms(cost - tokens, last, part, now, refill, per)
return { 0, tokens, math.min(divide_up(wait_ms, 1000), 9007199254740992) }
