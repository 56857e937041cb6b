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
