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

--@include greedy.lua
--@include interval.lua
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
