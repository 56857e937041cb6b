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
