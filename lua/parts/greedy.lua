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
