-- Gives tokens back to limits: a refund of what was taken, or a grant. Never above capacity, and never into a key that
-- isn't there: that limit is full.
--
-- KEYS    check after check, as described at "A check" below
-- ARGV    from, until: the time in ms that every quota's boundaries cover; outside of it nothing is done
--         then for each check: the tokens to give, then the check, then for each of its limits the begin of the window
--           that was charged, where only that one may be refunded, else 0
-- Output  now in ms, and nothing else outside of from..until; then for each limit of each check the tokens given

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

-- Limits, as the caller describes them and as the store holds them. KEYS and ARGV are read front to back.
--
-- A limit in ARGV is its mode and numbers:
--   "g" capacity refill per     a bucket that refills all the time; reduced, capacity * per at most 2^53
--   "i" capacity refill per     a bucket that refills in whole periods of `per` ms
--   "q" quota count boundaries  a calendar quota, and where its windows begin and end around now, in ms

local key_at, arg_at = 0, 0

local function next_key()
  key_at = key_at + 1
  return KEYS[key_at]
end

local function next_arg()
  arg_at = arg_at + 1
  return ARGV[arg_at]
end

local function next_number()
  return tonumber(next_arg())
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- What a key holds; where it can't be read, nothing, and what Redis says about it.
local function get(key)
  local stored = redis.pcall("GET", key)
  if type(stored) == "table" then
    return nil, "ERR " .. key .. ": " .. stored.err
  end
  return stored
end

local function foreign(key)
  return "ERR " .. key .. " holds something else"
end

-- 366 days.
local MAX_FILL_MS = 31622400000

-- An override has a line for each limit it changes: its name, mode and numbers, as in "burst g 10 1 1000" or "month q
-- 500". A line of another mode than the limit's is left over from another policy. False where numbers are missing, or
-- where a policy with these would be refused: people write overrides by hand, too.
local function apply(override, limit)
  local name = string.match(limit.key, "}:(.*)$")
  local _, found = string.find(override, "\n" .. name .. " " .. limit.mode .. " ", 1, true)
  if not found then
    return true
  end
  local pattern = limit.mode == "q" and "^(%d+)\n" or "^(%d+) (%d+) (%d+)\n"
  local capacity, refill, per = string.match(override, pattern, found + 1)
  limit.capacity, limit.refill, limit.per = tonumber(capacity), tonumber(refill), tonumber(per)
  if not capacity or limit.capacity < 1 or limit.capacity > 2 ^ 53 then
    return false
  end
  if limit.mode == "q" then
    return true
  end
  if limit.refill < 1 or limit.refill > 2 ^ 53 or limit.per < 1 then
    return false
  end
  if limit.mode == "i" then
    return math.ceil(limit.capacity / limit.refill) * limit.per <= MAX_FILL_MS
  end
  local full = limit.capacity * limit.per
  return full <= 2 ^ 53 and full <= limit.refill * MAX_FILL_MS
end

-- The window that holds a time: where it begins and ends.
local function window_at(boundaries, time)
  for i = 1, #boundaries - 1 do
    if boundaries[i] <= time and time < boundaries[i + 1] then
      return boundaries[i], boundaries[i + 1]
    end
  end
end

-- False where somebody else wrote the key. So does `load_bucket`.
local function load_quota(limit, stored)
  local start, finish = window_at(limit.boundaries, now)
  local used, charged = 0, nil
  local digits = stored and string.match(stored, "^%-(%d+)$")
  if digits then
    used, charged = decode(digits)
  end
  if stored and (digits and not used or not digits and not decode_bucket(stored)) then
    return false
  end
  if not charged or charged < start then
    used = 0
  elseif charged > start then
    -- The clock went back: go on in the window that was charged, unless it is further away than the caller looks.
    local _, charged_finish = window_at(limit.boundaries, charged)
    if charged_finish then
      start, finish = charged, charged_finish
    end
  end
  limit.tokens = math.max(0, limit.capacity - used)
  limit.used, limit.last, limit.part = used, start, finish
  return true
end

local function load_bucket(limit, stored)
  local greedy = limit.mode == "g"
  local capacity, refill, per = limit.capacity, limit.refill, limit.per
  local tokens, last, part
  if stored then
    tokens, last, part = decode_bucket(stored)
  end
  if tokens then
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
  else
    -- A quota of this name counted something else.
    if stored and not string.find(stored, "^%-%d+$") then
      return false
    end
    tokens, last, part = capacity, now, 0
  end
  limit.tokens, limit.last, limit.part = tokens, last, part
  return true
end

-- Limits by key: two checks of one call may share them, and then see each other's takes.
local loaded = {}

-- The next limit of KEYS and ARGV, as the store holds it now. One that can't be read has no tokens, and says why in
-- `fault`.
local function next_limit(override)
  local limit = { key = next_key(), mode = next_arg(), capacity = next_number() }
  if limit.mode == "q" then
    local boundaries = {}
    for i = 1, next_number() do
      boundaries[i] = next_number()
    end
    limit.boundaries = boundaries
  else
    limit.refill, limit.per = next_number(), next_number()
  end
  if loaded[limit.key] then
    return loaded[limit.key]
  end
  loaded[limit.key] = limit
  if override and not apply(override, limit) then
    limit.fault = foreign(limit.key .. "'s override")
  else
    local stored
    stored, limit.fault = get(limit.key)
    local load = limit.mode == "q" and load_quota or load_bucket
    if not limit.fault and not load(limit, stored) then
      limit.fault = foreign(limit.key)
    end
  end
  if limit.fault then
    -- The numbers may be an override's that makes no sense.
    limit.capacity, limit.refill, limit.per = 1, 1, 1
    limit.tokens, limit.used, limit.last, limit.part = 0, 0, now, limit.mode == "q" and now + 1 or 0
  end
  return limit
end

-- Stores what is left of a limit, to expire when it is full again.
local function save(limit)
  local tokens = limit.tokens
  local value, ttl
  if limit.mode == "q" then
    value = string.format("-%.0f%013.0f", limit.capacity - tokens, limit.last)
    ttl = math.max(1, limit.part - math.max(now, limit.last))
  else
    local missing = limit.capacity - tokens
    value = encode_bucket(tokens, limit.last, limit.part)
    ttl = limit.mode == "g" and refill_ms(missing, limit.last, limit.part, now, limit.refill, limit.per)
      or steps_ms(missing, limit.last, now, limit.refill, limit.per)
  end
  redis.call("SET", limit.key, value, "PX", string.format("%.0f", ttl))
end

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

local from, till = next_number(), next_number()
if now < from or now >= till then
  return { now }
end
local reply = { now }

-- Returns how much the limit takes of a gift: a quota that was lowered may have more used than it has.
local function give(limit, tokens)
  local missing = limit.mode == "q" and limit.used or limit.capacity - limit.tokens
  local given = math.min(tokens, missing)
  limit.tokens = limit.capacity - missing + given
  limit.used = missing - given
  return given
end

local given = {}
while arg_at < #ARGV do
  local tokens = next_number()
  local check = next_check()
  if check.fault then
    return redis.error_reply(check.fault)
  end
  for _, limit in ipairs(check.limits) do
    local charged = next_number()
    local count = 0
    if charged == 0 or charged == limit.last then
      count = give(limit, tokens)
    end
    if count > 0 then
      given[#given + 1] = limit
    end
    reply[#reply + 1] = count
  end
end

for _, limit in ipairs(given) do
  if limit.tokens >= limit.capacity then
    redis.call("DEL", limit.key)
  else
    save(limit)
  end
end
return reply
