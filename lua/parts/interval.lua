-- A bucket that refills in steps: `refill` tokens at each whole `per` ms after `last`, which is the first take or the
-- step before.

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

-- The ms until `wanted` tokens more are there, at least 1; a `last` ahead of the clock is not counted.
local function steps_ms(wanted, last, now, refill, per)
  return math.max(1, divide_up(wanted, refill) * per - math.max(0, now - last))
end
