-- A check: a policy's limits for one subject, with the keys that stand beside them.
--
-- In KEYS: the override where the policy allows one, the ban where it has one, then a key for each limit.
-- In ARGV: override 0/1, ban after, within ms, for ms (0 0 0 without), the number of limits, then each limit.

-- An override that nobody gave an end lives as long as it is used.
local KEEP_MS = 366 * 86400 * 1000

local function next_override()
  if next_arg() ~= "1" then
    return nil
  end
  local key = next_key()
  local override, fault = get(key)
  if override and string.sub(override, 1, 4) == "keep" then
    redis.call("PEXPIRE", key, string.format("%.0f", KEEP_MS))
  end
  return override, fault
end

-- A ban is stored as when it struck, negative, and before that how many ms it lasts where that isn't the policy's; or
-- while denials are counted as their number and when the first was.
local function next_ban()
  local after, within, length = next_number(), next_number(), next_number()
  if after == 0 then
    return nil
  end
  local ban = { key = next_key(), after = after, within = within, length = length, denials = 0, since = now, left = 0 }
  local stored, fault = get(ban.key)
  if not stored then
    return ban, fault
  end
  local sign, digits = string.match(stored, "^(%-?)(%d+)$")
  local denials, time
  if digits then
    denials, time = decode(digits)
  end
  if not time then
    return ban, foreign(ban.key)
  end
  if sign == "-" then
    local lasts = denials > 0 and denials or length
    -- After the clock went back, at most a whole ban from now.
    ban.left = math.min(lasts, math.max(0, time + lasts - now))
  elseif math.abs(now - time) < within then
    ban.denials, ban.since = denials, time
  end
  return ban
end

-- The next check, with the first thing that is wrong in `fault`.
local function next_check()
  local check = { limits = {} }
  local override_fault, ban_fault
  check.override, override_fault = next_override()
  check.ban, ban_fault = next_ban()
  check.fault = override_fault or ban_fault
  for i = 1, next_number() do
    local limit = next_limit(check.override)
    check.limits[i] = limit
    check.fault = check.fault or limit.fault
  end
  return check
end
